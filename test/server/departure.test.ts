import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import type { Caller, Identify } from '../../src/server/caller.ts'
import { ApiMetrics } from '../../src/server/metrics.ts'
import { startServer } from '../../src/server/server.ts'
import { useService } from './service.ts'

const service = useService()
const alice: Caller = {
  subject: 'alice',
  email: null,
  actor: { kind: 'USER', name: 'alice' },
  projects: new Map([['alpha', new Set(['networking.datumapis.com/loadbalancers.list'])]]),
}

async function start(identify: Identify) {
  const metrics = new ApiMetrics()
  const { store } = service
  const server = await startServer({ store, host: '127.0.0.1', port: 0, identify, metrics })
  onTestFinished(() => server.close())
  const query = encodeURIComponent('subscription { loadBalancers { type } }')
  const request = [
    ...[`GET /projects/alpha/graphql?query=${query} HTTP/1.1`, 'host: localhost'],
    ...['accept: text/event-stream', '', ''],
  ].join('\r\n')
  const value = async (name: string) =>
    (await metrics.registry.getSingleMetric(name)?.get())?.values[0]?.value
  return {
    ask(): Socket {
      const socket = connect(server.port, '127.0.0.1')
      socket.write(request)
      return socket
    },
    /** How many streams are open. */
    open: () => value('nlb_open_streams'),
    /** How many subscriptions were answered, or found that nobody is there for an answer. */
    begun: () => value('nlb_requests_total'),
  }
}

test('a stream whose client left while it was let in is not kept open', async () => {
  const asked = Promise.withResolvers<void>()
  const known = Promise.withResolvers<Caller>()
  const answers = [known.promise]
  const { ask, open, begun } = await start(() => {
    asked.resolve()
    return answers.shift() ?? alice
  })
  const gone = ask()
  await asked.promise
  gone.destroy()
  await once(gone, 'close')
  // Who came later is answered, so the server has heard of that.
  const other = ask()
  await once(other, 'data')
  known.resolve(alice)
  await expect.poll(begun).toBe(2)
  expect(await open()).toBe(1)
  other.destroy()
  await expect.poll(open).toBe(0)
})
