import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { updateLoadBalancer } from '../../src/domain/loadBalancers/update.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { LIMITS } from '../../src/server/limits/limits.ts'
import { openSocket } from './protocols/socket.ts'
import { create, useService } from './service.ts'

const STREAMS = 1_000
const SOCKETS = 10
const service = useService({
  limits: { ...LIMITS, streamsPerCaller: 3 * STREAMS, budget: { most: 1e7, perSecond: 1e6 } },
})
const scope = { project: 'alpha', actor: { kind: 'USER' as const, name: 'bob' } }

/** Of another process, so that what the API reads is all that is counted. */
let elsewhere: Store
beforeAll(() => {
  elsewhere = openStore({ connectionString: service.store.pool.options.connectionString ?? '' })
})
afterAll(() => elsewhere.close())

async function rename(id: string, displayName: string): Promise<void> {
  const changed = await updateLoadBalancer(elsewhere, scope, {
    id: decodeId(id)?.uuid ?? '',
    displayName,
  })
  expect(changed).toMatchObject({ loadBalancer: { displayName } })
}

type Sockets = Awaited<ReturnType<typeof openSocket>>[]

/** How many waited for a connection at most while `work` was under way. */
async function longestLine(work: () => Promise<unknown>): Promise<number> {
  const { pool } = service.store
  let most = 0
  const release = pool.on('acquire', () => {
    most = Math.max(most, pool.waitingCount)
  })
  await work()
  release.removeAllListeners('acquire')
  return most
}

/** Opens streams over a few sockets, and waits until each is synced. */
async function open(query: string, variables: (stream: number) => Record<string, unknown>) {
  const sockets: Sockets = []
  for (let number = 0; number < SOCKETS; number += 1) {
    const socket = await openSocket(service.url())
    await socket.init()
    sockets.push(socket)
  }
  for (let stream = 0; stream < STREAMS; stream += 1) {
    sockets[stream % SOCKETS]?.subscribe(String(stream), query, variables(stream))
  }
  await told(sockets, 'SYNCED')
  return sockets
}

/** Waits until every stream was told an event of this type; answers what it told of the object. */
async function told(sockets: Sockets, type: string): Promise<Set<unknown>> {
  const shown = new Set<unknown>()
  const each = async (socket: Sockets[number]) => {
    for (let left = STREAMS / SOCKETS; left > 0; ) {
      const { type: kind, ...message } = await socket.next()
      const payload = Object(message.payload)
      if (kind !== 'next' || payload.errors) throw new Error(JSON.stringify([kind, message]))
      const [event] = Object.values<{ type: string; loadBalancer: unknown }>(payload.data)
      if (event?.type !== type) continue
      shown.add(JSON.stringify(event.loadBalancer))
      left -= 1
    }
  }
  await Promise.all(sockets.map(each))
  return shown
}

/** Counts the statements that read load balancers, and tells what else is asked but the log. */
function counting() {
  const queries = vi.spyOn(service.store.pool, 'query')
  const named = (name: string) =>
    queries.mock.calls.filter(([query]) => Object(query).name === name).length
  return {
    reads: () => named('read-load-balancers'),
    others: () =>
      queries.mock.calls
        .map(([query]) => String(Object(query).name ?? query))
        .filter((name) => !/log|cursor|read-load-balancers/.test(name)),
    [Symbol.dispose]: () => queries.mockRestore(),
  }
}

const close = (sockets: Sockets) => Promise.all(sockets.map((socket) => socket.end()))

test('a change is read once for a thousand subscribers of one load balancer', async () => {
  const { id } = await create(service, 'watched')
  const watch = `subscription ($id: ID!) { loadBalancer(id: $id) {
    type loadBalancer { displayName generation status { phase } } } }`
  let sockets: Sockets = []
  const waiting = await longestLine(async () => {
    sockets = await open(watch, () => ({ id }))
  })
  // However many begin at once, whoever asks for something else isn't kept waiting by them.
  expect(waiting).toBeLessThan(10)
  using counted = counting()
  for (const [index, displayName] of ['One', 'Two', 'Three'].entries()) {
    await rename(id, displayName)
    const shown = [...(await told(sockets, 'MODIFIED'))].map((text) => JSON.parse(String(text)))
    expect(shown).toMatchObject([{ displayName, generation: index + 2 }])
    expect(counted.reads()).toBe(index + 1)
  }
  // What is known of regions is read anew now and then.
  expect(counted.others().length).toBeLessThan(10)
  await close(sockets)
})

test('a change is read once for a thousand lists with different filters', async () => {
  const some = await Promise.all(
    [1, 2].map((number) =>
      create(service, `listed-${number}`, { labels: [{ key: 'tier', value: 'web' }] }),
    ),
  )
  const watch = `subscription ($filter: LoadBalancerFilter) { loadBalancers(filter: $filter) {
    type loadBalancer { displayName } } }`
  const sockets = await open(watch, (stream) => ({
    filter: { labels: [{ key: 'tier', values: ['web', `other-${stream}`] }] },
  }))
  using counted = counting()
  for (const [index, { id }] of some.entries()) {
    await rename(id, `Number ${index}`)
    await told(sockets, 'MODIFIED')
    expect(counted.reads()).toBe(index + 1)
  }
  await close(sockets)
})
