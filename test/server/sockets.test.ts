import { once } from 'node:events'
import { createServer } from 'node:http'
import { pino } from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { schema } from '../../src/server/schema.ts'
import { socketServer } from '../../src/server/sockets.ts'

/** Asks its sockets every 50 ms whether they live. */
async function listen() {
  const gone = Promise.withResolvers<number>()
  const { sockets, close } = socketServer(
    { schema, onClose: (_context, code) => gone.resolve(code ?? 0) },
    pino({ level: 'silent' }),
    { alive: 50 },
  )
  const server = createServer()
  server.on('upgrade', (request, socket, head) =>
    sockets.handleUpgrade(request, socket, head, (opened) =>
      sockets.emit('connection', opened, request),
    ),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(async () => {
    await close()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  const connect = async (autoPong: boolean) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`, 'graphql-transport-ws', { autoPong })
    await once(socket, 'open')
    return socket
  }
  return { connect, gone: gone.promise, sockets }
}

test('a client that answers is kept, one that hangs is cut off and forgotten', async () => {
  const { connect, gone, sockets } = await listen()
  const lives = await connect(true)
  const hangs = await connect(false)
  const [code] = await once(hangs, 'close')
  // 1006: the connection ended without a word (RFC 6455, 7.1.5).
  expect([code, await gone]).toEqual([1006, 1006])
  await expect.poll(() => sockets.clients.size).toBe(1)
  for (let asked = 0; asked < 3; asked += 1) await once(lives, 'ping')
  expect(lives.readyState).toBe(WebSocket.OPEN)
  lives.terminate()
})
