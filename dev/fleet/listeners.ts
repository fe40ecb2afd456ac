import { createServer, type Server, type Socket } from 'node:net'

/**
 * What a listener does with whoever asks it something: `answer` and `fail` with HTTP 200 and 500, `slow` with 200
 * after two seconds, `hang` never, `reset` by breaking the connection off; `refuse`: nobody listens.
 */
export const BEHAVIOURS = ['answer', 'refuse', 'hang', 'reset', 'slow', 'fail'] as const
export type Behaviour = (typeof BEHAVIOURS)[number]

/** Something that answers behind an endpoint. */
export type Listener = {
  /** On 127.0.0.1; stays the same while it is stopped. */
  port: number
  /** Connections are refused from now on. */
  stop(): Promise<void>
  /** It answers, as at first. */
  start(): Promise<void>
  behave(behaviour: Behaviour): Promise<void>
}

const answer = (status: string) =>
  `HTTP/1.1 ${status}\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n`
/** Longer than anything takes on one machine, and within the usual timeouts of health checks. */
const SLOW_MS = 2_000
/** A peer that connects and says nothing is let go after this long. */
const PATIENCE_MS = 10_000

/** A TCP server on loopback that answers whatever it is sent with a line of HTTP, or behaves otherwise. */
export async function startListener(): Promise<Listener> {
  let behaviour: Behaviour = 'answer'
  const react = (socket: Socket) => serve(socket, behaviour)
  let open: Open | undefined = await listen(0, react)
  const { port } = open
  const behave = async (next: Behaviour) => {
    behaviour = next
    if (next === 'refuse') {
      const closing = open
      open = undefined
      await closing?.close()
    } else {
      open ??= await listen(port, react)
    }
  }
  return { port, behave, stop: () => behave('refuse'), start: () => behave('answer') }
}

function serve(socket: Socket, behaviour: Behaviour): void {
  socket.setTimeout(PATIENCE_MS, () => socket.destroy())
  // A probe that only connects resets the connection; that is no failure of ours.
  socket.on('error', () => socket.destroy())
  socket.once('data', () => {
    if (behaviour === 'hang') return
    if (behaviour === 'reset') return void socket.resetAndDestroy()
    const status = behaviour === 'fail' ? '500 Internal Server Error' : '200 OK'
    const late = setTimeout(() => socket.end(answer(status)), behaviour === 'slow' ? SLOW_MS : 0)
    socket.once('close', () => clearTimeout(late))
  })
}

type Open = { port: number; close(): Promise<void> }

async function listen(port: number, react: (socket: Socket) => void): Promise<Open> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    react(socket)
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
