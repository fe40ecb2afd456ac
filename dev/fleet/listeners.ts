import { createServer, type Server, type Socket } from 'node:net'

/** Something that answers behind an endpoint. */
export type Listener = {
  /** On 127.0.0.1; stays the same while it is stopped. */
  port: number
  /** Connections are refused from now on. */
  stop(): Promise<void>
  start(): Promise<void>
}

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n'
/** A peer that connects and says nothing is let go after this long. */
const PATIENCE_MS = 10_000

/** A TCP server on loopback that answers whatever it is sent with a line of HTTP. */
export async function startListener(): Promise<Listener> {
  let open = await listen(0)
  const { port } = open
  return {
    port,
    stop: () => open.close(),
    async start() {
      open = await listen(port)
    },
  }
}

async function listen(port: number): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.setTimeout(PATIENCE_MS, () => socket.destroy())
    socket.once('data', () => socket.end(ANSWER))
    // A probe that only connects resets the connection; that is no failure of ours.
    socket.on('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
  })
  await bound(server, port)
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('not a TCP server')
  return {
    port: address.port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

function bound(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}
