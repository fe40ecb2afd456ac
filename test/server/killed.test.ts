import { getEventListeners } from 'node:events'
import { request } from 'node:http'
import { afterAll, expect, test } from 'vitest'
import { LIMITS } from '../../src/server/limits/limits.ts'
import { ApiMetrics } from '../../src/server/metrics.ts'
import { following } from './protocols/following.ts'
import { openSocket } from './protocols/socket.ts'
import { create, useService } from './service.ts'

const EACH = 250
/** A waiting limit (ms), not how long it takes. */
const PATIENCE = 5_000

/** The signals that streams follow the log by: what hangs on to them hangs on to a stream. */
const signals = new Set<AbortSignal>()
const followers = following()
const metrics = new ApiMetrics()
const service = useService({
  log: {
    ...followers.log,
    follow(after, signal, interest) {
      signals.add(signal)
      return followers.log.follow(after, signal, interest)
    },
  },
  metrics,
  limits: {
    ...LIMITS,
    streamsPerCaller: 2 * EACH,
    socketsPerCaller: EACH,
    waitingPerAddress: EACH,
  },
})
followers.over(() => service.store)
afterAll(() => followers.close())

const WATCH = 'subscription { loadBalancers { type loadBalancer { name } } }'

/** A stream of server-sent events whose connection can be cut; it has begun when this resolves. */
async function overSse(): Promise<() => void> {
  const asked = request(service.url(), {
    method: 'POST',
    agent: false,
    headers: {
      ...{ authorization: 'Bearer alice', 'content-type': 'application/json' },
      accept: 'text/event-stream',
    },
  })
  asked.on('error', () => undefined)
  asked.end(JSON.stringify({ query: WATCH }))
  await new Promise<void>((resolve) => {
    asked.once('response', (response) => {
      response.on('error', () => undefined)
      response.on('data', () => resolve())
    })
  })
  return () => asked.destroy()
}

async function overWs(): Promise<() => void> {
  const socket = await openSocket(service.url())
  await socket.init()
  socket.subscribe('1', WATCH)
  await socket.next()
  return () => socket.socket.terminate()
}

const figure = async (name: string): Promise<number> =>
  Object((await metrics.registry.getSingleMetric(name)?.get())?.values[0]).value

const connections = () =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length

test('of 500 streams that were opened and killed nothing is left', async () => {
  await create(service, 'watched')
  const before = connections()
  const cuts: (() => void)[] = []
  for (let number = 0; number < EACH; number += 1) {
    cuts.push(...(await Promise.all([overSse(), overWs()])))
  }
  await followers.count(2 * EACH)
  expect(await figure('nlb_open_streams')).toBe(2 * EACH)
  expect(await figure('nlb_open_sockets')).toBe(EACH)
  expect(connections()).toBeGreaterThanOrEqual(before + 4 * EACH)

  for (const cut of cuts) cut()
  await followers.nobody()
  const left = async () => ({
    streams: await figure('nlb_open_streams'),
    sockets: await figure('nlb_open_sockets'),
    // The store's own may come and go.
    connections: Math.max(0, connections() - before - 20),
    listeners: [...signals].flatMap((signal) => getEventListeners(signal, 'abort')).length,
  })
  const nothing = { streams: 0, sockets: 0, connections: 0, listeners: 0 }
  await expect.poll(left, { timeout: PATIENCE }).toEqual(nothing)
  // Whoever comes next has all the room there was.
  await overSse()
  await overWs()
})
