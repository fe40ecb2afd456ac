import { expect, onTestFinished, test } from 'vitest'
import { startServer } from '../../src/server/server.ts'
import { following } from './protocols/following.ts'
import { create, useService } from './service.ts'
import { standing } from './standing.ts'
import { subscribe, TRANSPORTS } from './streams.ts'

const service = useService()
const WATCH = 'subscription { loadBalancers { type cursor at } }'
type Event = { type: string; cursor: string; at: string }

async function startCounted() {
  const { store } = service
  const followers = following()
  followers.over(() => store)
  // It holds a connection, which the store's end would wait for.
  onTestFinished(() => followers.close())
  const clock = standing()
  const identify = () => ({
    subject: 'alice',
    email: null,
    actor: { kind: 'USER' as const, name: 'alice' },
    projects: new Map([['alpha', new Set(['networking.datumapis.com/loadbalancers.list'])]]),
  })
  const server = await startServer({
    store,
    log: followers.log,
    host: '127.0.0.1',
    port: 0,
    identify,
    clock,
  })
  const at = { ...service, url: () => `${server.url}/projects/alpha/graphql` }
  return { server, at, followers, clock }
}

test.each(TRANSPORTS)('a stream over %s that nobody reads any more is freed', async (transport) => {
  const { server, at, followers } = await startCounted()
  const streams = [1, 2, 3].map(() => subscribe<Event>(at, transport, WATCH))
  for (const stream of streams) {
    let event = await stream.next()
    while (event?.type !== 'SYNCED') event = await stream.next()
  }
  // One more, so that each is in its wait for the log.
  const made = await create(service, `freed-${transport}`)
  expect(made.id).toBeDefined()
  for (const stream of streams) expect((await stream.next())?.type).toBe('ADDED')
  await followers.count(3)
  await Promise.all(streams.map((stream) => stream.end()))
  await followers.nobody()
  await server.close()
})

test.each(TRANSPORTS)(
  'closing the server cuts streams over %s, and is done within 2 s',
  async (transport) => {
    const { server, at, followers } = await startCounted()
    const stream = subscribe<Event>(at, transport, WATCH)
    let event = await stream.next()
    while (event?.type !== 'SYNCED') event = await stream.next()
    const cut = expect(stream.next()).rejects.toBeDefined()
    const begun = performance.now()
    await server.close()
    expect(performance.now() - begun).toBeLessThan(10_000)
    await cut
    await followers.nobody()
    await expect(fetch(at.url())).rejects.toThrow()
  },
)

/** The transaction up to which the log was read. */
const xidOf = (event: Event | undefined): number =>
  Number(
    Buffer.from(event?.cursor ?? '', 'base64url')
      .toString()
      .split('.')[1],
  )

test('a stream that has been quiet for 10 s says that it is alive, and where the log is', async () => {
  const { server, at, clock } = await startCounted()
  const stream = subscribe<Event>(at, 'sse', WATCH)
  let event = await stream.next()
  while (event?.type !== 'SYNCED') event = await stream.next()
  for (let beat = 1; beat <= 3; beat += 1) {
    const next = stream.next()
    await expect.poll(() => clock.dues).toContain(10_000)
    clock.move(9_999)
    clock.move(1)
    const beating = await next
    expect(beating?.type).toBe('HEARTBEAT')
    // Transactions of other databases of the server move the log's end as well.
    expect(xidOf(beating)).toBeGreaterThanOrEqual(xidOf(event))
    event = beating
  }
  await stream.end()
  await server.close()
})
