import { expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { LIMITS } from '../../../src/server/limits/limits.ts'
import { useService } from '../service.ts'

const service = useService({
  trustedProxies: ['127.0.0.1'],
  limits: { ...LIMITS, waitingPerAddress: 2 },
})

/** Opens a socket, as a client that a proxy passes on; answers it, or the status that refuses it. */
function open(client: string): Promise<WebSocket | number> {
  return new Promise((resolve) => {
    const socket = new WebSocket(service.url().replace('http', 'ws'), 'graphql-transport-ws', {
      headers: { 'x-forwarded-for': client },
    })
    socket.on('open', () => resolve(socket))
    socket.on('unexpected-response', (_request, { statusCode }) => resolve(statusCode ?? 0))
    socket.on('error', () => undefined)
  })
}

async function opened(client: string): Promise<WebSocket> {
  const socket = await open(client)
  if (typeof socket === 'number') throw new Error(`refused with ${socket}`)
  return socket
}

const isLetIn = (socket: WebSocket) =>
  new Promise<string>((resolve) => {
    socket.on('message', (data) => resolve(JSON.parse(String(data)).type))
    const payload = { authorization: 'Bearer alice' }
    socket.send(JSON.stringify({ type: 'connection_init', payload }))
  })

test('sockets that have not said who they are are few for each address, which a trusted proxy tells', async () => {
  const [first, second] = [await opened('198.51.100.1'), await opened('198.51.100.1')]
  expect(await open('198.51.100.1')).toBe(429)
  expect(await open('203.0.113.9, 198.51.100.1')).toBe(429)
  const other = await opened('198.51.100.2')
  // Whoever is let in waits no more.
  expect(await isLetIn(first)).toBe('connection_ack')
  const third = await opened('198.51.100.1')
  expect(await open('198.51.100.1')).toBe(429)
  // Nor does who goes.
  second.terminate()
  await expect.poll(async () => typeof (await open('198.51.100.1'))).toBe('object')
  for (const socket of [first, other, third]) socket.terminate()
})
