import { once } from 'node:events'
import { WebSocket } from 'ws'

export type Message = {
  type: string
  id?: string
  payload?: Record<string, unknown> | Record<string, unknown>[]
}

/** A bare websocket: messages as they are, and how it was closed. */
export async function openSocket(url: string, protocol: string | null = 'graphql-transport-ws') {
  const target = url.replace('http', 'ws')
  const socket = protocol === null ? new WebSocket(target) : new WebSocket(target, protocol)
  const received: Message[] = []
  const waiting: ((message: Message) => void)[] = []
  const closed = once(socket, 'close').then(([code, reason]) => ({
    code: Number(code),
    reason: String(reason),
  }))
  socket.on('message', (data) => {
    const message: Message = JSON.parse(String(data))
    const take = waiting.shift()
    if (take === undefined) received.push(message)
    else take(message)
  })
  socket.on('error', () => undefined)
  await once(socket, 'open')
  const send = (message: unknown) =>
    socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  const next = (): Promise<Message> => {
    const message = received.shift()
    if (message !== undefined) return Promise.resolve(message)
    return new Promise((resolve) => waiting.push(resolve))
  }
  return {
    socket,
    send,
    next,
    closed,
    /** Messages that came and that nobody took. */
    received,
    async init(as = 'alice'): Promise<Message> {
      send({ type: 'connection_init', payload: { authorization: `Bearer ${as}` } })
      return next()
    },
    subscribe(id: string, query: string, variables: Record<string, unknown> = {}) {
      send({ id, type: 'subscribe', payload: { query, variables } })
    },
    async end(): Promise<void> {
      socket.terminate()
      await closed
    },
  }
}
