import { expect, test } from 'vitest'
import type { EventLog } from '../../src/domain/events/log.ts'
import { openEventLog } from '../../src/domain/events/log.ts'
import { startServer } from '../../src/server/server.ts'
import { create, useService } from './service.ts'
import { standing } from './standing.ts'
import { subscribe, TRANSPORTS } from './streams.ts'

const service = useService()
const WATCH = 'subscription { loadBalancers { type cursor at } }'
type Event = { type: string; cursor: string; at: string }

/** A log that knows how many follow it. */
function counted(log: EventLog) {
  const following = new Set<AbortSignal>()
  const waiting: (() => void)[] = []
  return {
    log: {
      ...log,
      async *follow(after: string, signal: AbortSignal) {
        following.add(signal)
        try {
          yield* log.follow(after, signal)
        } finally {
          following.delete(signal)
          if (following.size === 0) for (const wake of waiting.splice(0)) wake()
        }
      },
    },
    following,
    nobody: () =>
      new Promise<void>((resolve) => {
        if (following.size === 0) resolve()
        else waiting.push(resolve)
      }),
  }
}

async function startCounted() {
  const { store } = service
  const events = openEventLog(store)
  const { log, following, nobody } = counted(events)
  const clock = standing()
  const identify = () => ({
    subject: 'alice',
    email: null,
    actor: { kind: 'USER' as const, name: 'alice' },
    projects: new Map([['alpha', new Set(['networking.datumapis.com/loadbalancers.list'])]]),
  })
  const server = await startServer({ store, log, host: '127.0.0.1', port: 0, identify, clock })
  const at = { ...service, url: () => `${server.url}/projects/alpha/graphql` }
  return { server, at, events, following, nobody, clock }
}

test.each(TRANSPORTS)('a stream over %s that nobody reads any more is freed', async (transport) => {
  const { server, at, events, following, nobody } = await startCounted()
  const streams = [1, 2, 3].map(() => subscribe<Event>(at, transport, WATCH))
  for (const stream of streams) {
    let event = await stream.next()
    while (event?.type !== 'SYNCED') event = await stream.next()
  }
  // One more, so that each is in its wait for the log.
  const made = await create(service, `freed-${transport}`)
  expect(made.id).toBeDefined()
  for (const stream of streams) expect((await stream.next())?.type).toBe('ADDED')
  expect(following.size).toBe(3)
  await Promise.all(streams.map((stream) => stream.end()))
  await nobody()
  await server.close()
  events.close()
})

test.each(TRANSPORTS)(
  'closing the server cuts streams over %s, and is done within 2 s',
  async (transport) => {
    const { server, at, events, nobody } = await startCounted()
    const stream = subscribe<Event>(at, transport, WATCH)
    let event = await stream.next()
    while (event?.type !== 'SYNCED') event = await stream.next()
    const cut = expect(stream.next()).rejects.toBeDefined()
    const begun = performance.now()
    await server.close()
    expect(performance.now() - begun).toBeLessThan(2_000)
    await cut
    await nobody()
    await expect(fetch(at.url())).rejects.toThrow()
    events.close()
  },
)

test('a stream that has been quiet for 10 s says that it is alive, and where the log is', async () => {
  const { server, at, events, clock } = await startCounted()
  const stream = subscribe<Event>(at, 'sse', WATCH)
  let event = await stream.next()
  while (event?.type !== 'SYNCED') event = await stream.next()
  for (let beat = 1; beat <= 3; beat += 1) {
    const next = stream.next()
    await expect.poll(() => clock.dues).toContain(10_000)
    clock.move(9_999)
    clock.move(1)
    expect(await next).toMatchObject({ type: 'HEARTBEAT', cursor: event?.cursor })
  }
  await stream.end()
  await server.close()
  events.close()
})
