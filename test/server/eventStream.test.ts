import { once } from 'node:events'
import { createServer, type IncomingMessage, request } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import { sendEvents } from '../../src/server/eventStream.ts'
import { systemClock } from '../../src/server/server.ts'

/** More than the buffers of a connection hold, in few events. */
const EVENT = Buffer.alloc(1_000_000, 'x')
const frame = {
  event: EVENT,
  chunk: Buffer.concat([Buffer.from('f4240\r\n'), EVENT, Buffer.from('\r\n')]),
}

/** Streams whose client is cut off when it takes nothing for 200 ms; tells which have ended. */
async function listen() {
  const ended: string[] = []
  const server = createServer((asked, response) => {
    const path = asked.url ?? ''
    const quiet = Promise.withResolvers<IteratorResult<object, undefined>>()
    const source: AsyncIterableIterator<object, undefined> = {
      next: async () => (path === '/quiet' ? quiet.promise : { done: false, value: {} }),
      async return() {
        ended.push(path)
        quiet.resolve({ done: true, value: undefined })
        return { done: true, value: undefined }
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }
    void sendEvents(response, source, () => frame, { clock: systemClock, hanging: 200 })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const connect = async (path: string): Promise<IncomingMessage> => {
    const asked = request({ port, host: '127.0.0.1', path, agent: false })
    asked.on('error', () => undefined)
    asked.end()
    const [response] = await once(asked, 'response')
    response.on('error', () => undefined)
    return response
  }
  return { connect, ended }
}

test('a client that takes nothing of what is there is cut off and forgotten; one that reads or waits is kept', async () => {
  const { connect, ended } = await listen()
  const reads = await connect('/reads')
  const waits = (await connect('/quiet')).resume()
  const hangs = await connect('/hangs')
  hangs.pause()
  let taken = 0
  reads.on('data', ({ length }: Buffer) => {
    taken += length
  })
  await expect.poll(() => ended).toEqual(['/hangs'])
  const before = taken
  await expect.poll(() => taken).toBeGreaterThan(before)
  expect(ended).toEqual(['/hangs'])
  waits.destroy()
  await expect.poll(() => ended).toEqual(['/hangs', '/quiet'])
})
