import { chmodSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, expect, test } from 'vitest'
import { type Postgres, startPostgres } from '../../../dev/postgres.ts'
import { openStore } from '../../../src/db/client.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { globalId } from '../../../src/schema/ids.ts'
import { EDITOR, permissionIds } from '../../../src/server/caller.ts'
import { startIssuer } from '../identity/issuer.ts'
import { answerOf, field, fill } from '../service.ts'
import { TRANSPORTS } from '../streams.ts'
import { Chance, seedOf } from './chance.ts'
import { type Ask, Mutations } from './mutations.ts'
import { ApiProcess, balance } from './processes.ts'
import {
  BACKEND,
  LOAD_BALANCER,
  RESERVATION,
  Reader,
  type Shown,
  settledOf,
  textOf,
  viewOf,
  WATCHING,
  type Watching,
} from './readers.ts'
import { Writers } from './writers.ts'

const WRITERS = 8
/** So many transactions are committed between two disturbances. */
const COMMITS = 35

const directory = mkdtempSync(join(tmpdir(), 'load-balancer-coherence-'))
// As root PostgreSQL runs as another account, which has to pass through here.
chmodSync(directory, 0o711)
const ends: (() => Promise<unknown>)[] = [() => rm(directory, { recursive: true, force: true })]
afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

/** Of its own, since it is stopped and started again. */
function database(port = 0): Promise<Postgres> {
  const settings = { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }
  return startPostgres({ dataDir: join(directory, 'postgres'), port, settings })
}

async function installation() {
  let postgres = await database()
  ends.push(() => postgres.stop())
  const url = await postgres.createDatabase('coherence')
  await migrate(url)
  const store = openStore({ connectionString: url })
  ends.push(() => store.close())
  await fill(store)
  const issuer = await startIssuer()
  const processes = [new ApiProcess(url, issuer), new ApiProcess(url, issuer)] as const
  await Promise.all(processes.map((each) => each.start()))
  ends.push(() => Promise.all(processes.map((each) => each.kill())))
  const address = await balance(processes)
  ends.push(() => address.close())
  const permissions = [...permissionIds(EDITOR)].map((id) => `alpha:${id}`)
  const token = await issuer.issue({ permissions })
  return {
    store,
    processes,
    service: { url: () => `${address.url}/projects/alpha/graphql`, token },
    async restartPostgres() {
      await postgres.stop()
      postgres = await database(postgres.port)
    },
  }
}
type Service = Awaited<ReturnType<typeof installation>>['service']

function asking({ url, token }: Service): Ask {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return async (query, variables = {}) => {
    const body = JSON.stringify({ query, variables })
    return field((await answerOf(await fetch(url(), { method: 'POST', headers, body }))).body)
  }
}

/** What each reader has to come to, as the queries give it. */
async function truths(ask: Ask, id: string, events: string[]) {
  const list = async (query: string) => {
    const { nodes } = await ask<{ nodes: Shown[] }>(query)
    return new Map(nodes.map((node) => [node.id, textOf(node)]))
  }
  const loadBalancers = (filter: string) =>
    list(`{ loadBalancers(first: 100, filter: ${filter}) { nodes { ${LOAD_BALANCER} } } }`)
  const reservations = (filter: string) =>
    list(`{ ipv4Reservations(first: 100, filter: ${filter}) { nodes { ${RESERVATION} } } }`)
  const all = await loadBalancers('null')
  const { generation, status, backends } = await ask<{
    generation: number
    status: { observedGeneration: number }
    backends: { nodes: Shown[] }
  }>(`{ loadBalancer(id: "${id}") { generation status { observedGeneration }
    backends(first: 100) { nodes { ${BACKEND} } } } }`)
  const outcome = status.observedGeneration < generation ? 'WAITING' : 'SETTLED'
  const views: Record<Watching, Map<string, string>> = {
    all,
    blue: await loadBalancers('{ nameContains: "blue" }'),
    green: await loadBalancers('{ nameContains: "green" }'),
    one: new Map([[id, all.get(id) ?? '']]),
    health: new Map(backends.nodes.map((backend) => [backend.id, textOf(backend)])),
    reservations: await reservations('null'),
    bound: await reservations('{ bound: true }'),
    log: new Map(events.map((event) => [event, ''])),
    settled: new Map([['settled', settledOf(outcome, generation)]]),
  }
  return views
}

test('whatever is written, restarted and cut off, every reader ends with exactly what the queries give', async () => {
  const seed = seedOf(process.env['SEED'])
  // At once: a run that hangs tells it, too.
  console.log(`SEED=${seed}`)
  const chance = new Chance(seed)
  const { store, service, processes, restartPostgres } = await installation()
  const ask = asking(service)
  const { id: vpc } = await store.prisma.vpc.findFirstOrThrow({ where: { project: 'alpha' } })
  const endpoints = [1, 2, 3, 4].map((host) => `fd00:1::${host}`)
  const mutations = new Mutations(ask, globalId('Vpc', vpc), endpoints)
  await mutations.begin(20, 5)
  const { id: cluster } = await store.prisma.cluster.findFirstOrThrow()
  const writers = new Writers(store, mutations, { cluster, epoch: 0 })
  const id = mutations.first
  const cursor = await ask<string>('{ cursor }')
  const began = (await store.prisma.event.findFirstOrThrow({ orderBy: { seq: 'desc' } })).seq

  const readers = TRANSPORTS.flatMap((transport) =>
    // Several of the one load balancer, who are told together while they know the same.
    [...WATCHING, 'one' as const, 'one' as const].map((watching) => {
      const from = watching === 'log' ? { cursor } : { id }
      return new Reader(service, watching, transport, chance, from)
    }),
  )
  const reading = readers.map((reader) => reader.run())
  const writing = writers.run(WRITERS, chance)
  await writers.written(COMMITS)
  // The other one goes on meanwhile.
  const [restarted] = processes
  await restarted.kill()
  await writers.written(COMMITS)
  await restarted.start()
  await writers.written(COMMITS)
  await restartPostgres()
  await writers.written(COMMITS)
  writers.end()
  await writing

  const events = await store.prisma.event.findMany({ where: { seq: { gt: began } } })
  const logged = events.map((event) => globalId('ChangeEvent', event.id))
  const views = await truths(ask, id, logged)
  for (const reader of readers) reader.settles(viewOf(views[reader.watching]))
  const late = delay(40_000, 'late', { ref: false })
  await Promise.race([Promise.all(reading), late])
  for (const reader of readers) {
    const { watching, transport, wrong } = reader
    expect({ watching, transport, view: reader.view(), wrong }).toEqual({
      ...{ watching, transport, view: viewOf(views[watching]), wrong: [] },
    })
  }
  expect(views.blue.size).toBeGreaterThan(0)
  expect([...writers.ways.keys()]).toEqual(expect.arrayContaining(['transaction', 'probe']))
  expect(writers.ways.size).toBeGreaterThan(6)
  expect(Math.min(...readers.map(({ connections }) => connections))).toBeGreaterThan(1)
})
