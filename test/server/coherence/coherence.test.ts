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
import { startIssuer } from '../identity/issuer.ts'
import { answerOf, field, fill } from '../service.ts'
import { TRANSPORTS } from '../streams.ts'
import { ApiProcess, balance } from './processes.ts'
import { Reader, type Shown, textOf, viewOf, type Watching } from './readers.ts'
import { Writers } from './writers.ts'

const WRITERS = 8
const WATCHING: Watching[] = ['all', 'blue', 'green', 'one', 'log']
/** So many transactions are committed between two disturbances. */
const COMMITS = 50

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
  const rights = ['get', 'list'].flatMap((verb) =>
    ['loadbalancers', 'ipv4reservations'].map(
      (kind) => `alpha:networking.datumapis.com/${kind}.${verb}`,
    ),
  )
  const token = await issuer.issue({ permissions: rights })
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

async function ask<T>({ url, token }: Service, query: string): Promise<T> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ query })
  return field((await answerOf(await fetch(url(), { method: 'POST', headers, body }))).body)
}

/** What each reader has to come to, as the queries give it. */
async function truths(service: Service, id: string, events: string[]) {
  const list = async (filter: string) => {
    const { nodes } = await ask<{ nodes: Shown[] }>(
      service,
      `{ loadBalancers(first: 100${filter}) { nodes { id displayName deletingSince } } }`,
    )
    return new Map(nodes.map((node) => [node.id, textOf(node)]))
  }
  const all = await list('')
  const views: Record<Watching, Map<string, string>> = {
    all,
    blue: await list(', filter: { nameContains: "blue" }'),
    green: await list(', filter: { nameContains: "green" }'),
    one: new Map([[id, all.get(id) ?? '']]),
    log: new Map(events.map((event) => [event, ''])),
  }
  return views
}

test('whatever is written, restarted and cut off, every reader ends with exactly what the queries give', async () => {
  const { store, service, processes, restartPostgres } = await installation()
  const { id: vpc } = await store.prisma.vpc.findFirstOrThrow({ where: { project: 'alpha' } })
  const writers = new Writers(store, vpc)
  const first = await writers.create()
  while (writers.live < 20) await writers.create()
  const id = globalId('LoadBalancer', first ?? '')
  const cursor = await ask<string>(service, '{ cursor }')
  const began = (await store.prisma.event.findFirstOrThrow({ orderBy: { seq: 'desc' } })).seq

  const readers = TRANSPORTS.flatMap((transport) =>
    WATCHING.map((watching) => {
      const from = watching === 'log' ? { cursor } : watching === 'one' ? { id } : {}
      return new Reader(service, watching, transport, from)
    }),
  )
  const reading = readers.map((reader) => reader.run())
  const writing = writers.run(WRITERS)
  const written = async (more: number) => {
    const goal = writers.committed + more
    while (writers.committed < goal) await delay(10)
  }
  await written(COMMITS)
  // The other one goes on meanwhile.
  const [restarted] = processes
  await restarted.kill()
  await written(COMMITS)
  await restarted.start()
  await written(COMMITS)
  await restartPostgres()
  await written(COMMITS)
  writers.end()
  await writing

  const events = await store.prisma.event.findMany({ where: { seq: { gt: began } } })
  const logged = events.map((event) => globalId('ChangeEvent', event.id))
  const views = await truths(service, id, logged)
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
  expect(Math.min(...readers.map(({ connections }) => connections))).toBeGreaterThan(1)
}, 120_000)
