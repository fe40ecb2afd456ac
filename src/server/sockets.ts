import type { IncomingMessage } from 'node:http'
import { CloseCode, handleProtocols, makeServer, type ServerOptions } from 'graphql-ws'
import type { Logger } from 'pino'
import { type WebSocket, WebSocketServer } from 'ws'
import { present } from './present.ts'

/** A query is far smaller; variables with 64 backends fit many times. */
const LARGEST_MESSAGE = 1_048_576
/** A socket is asked this often whether it is alive, and cut when it hasn't answered until then, in milliseconds. */
const ALIVE = 12_000
/** Open sockets have this long to close when the server does. */
const GRACE = 1_000

export type SocketExtra = { socket: WebSocket; request: IncomingMessage }
export type Protocol = ServerOptions<Record<string, unknown> | undefined, SocketExtra>

/** Websockets that speak graphql-ws's protocol. What goes wrong in them is logged, and not told. */
export function socketServer(protocol: Protocol, logger: Logger, { alive = ALIVE } = {}) {
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload: LARGEST_MESSAGE,
    handleProtocols,
  })
  const speaking = makeServer(protocol)
  const failed = (socket: WebSocket, error: unknown) => {
    socket.close(CloseCode.InternalServerError, present(error, logger).message)
  }
  sockets.on('connection', (socket, request) => {
    // What is no websocket frame, or too large, has been closed with the code for it.
    socket.on('error', (err) => logger.debug({ err }, 'a websocket broke'))
    let isAlive = true
    socket.on('pong', () => {
      isAlive = true
    })
    const asking = setInterval(() => {
      if (!isAlive) return socket.terminate()
      isAlive = false
      socket.ping()
    }, alive)
    const closed = speaking.opened(
      {
        protocol: socket.protocol,
        send: (text) => send(socket, text),
        close: (code, reason) => socket.close(code, reason),
        onMessage: (handle) =>
          socket.on('message', (data) => {
            handle(String(data)).catch((error: unknown) => failed(socket, error))
          }),
      },
      { socket, request },
    )
    socket.once('close', (code, reason) => {
      clearInterval(asking)
      closed(code, String(reason)).catch((error: unknown) => failed(socket, error))
    })
  })
  return {
    sockets,
    /** Ends all streams; clients are told to connect again. */
    async close(): Promise<void> {
      const closed = new Promise<void>((resolve, reject) => {
        sockets.close((error) => (error === undefined ? resolve() : reject(error)))
      })
      for (const socket of sockets.clients) socket.close(1001, 'Going away')
      const impatient = setTimeout(() => {
        for (const socket of sockets.clients) socket.terminate()
      }, GRACE)
      await closed
      clearTimeout(impatient)
    },
  }
}

/** Resolves when the system has taken the message. */
function send(socket: WebSocket, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    if (socket.readyState !== socket.OPEN) return resolve()
    socket.send(text, (error) => {
      // It went while this was sent, which its end tells.
      if (error == null || socket.readyState !== socket.OPEN) resolve()
      else reject(error)
    })
  })
}

/**
 * Sends a message whose end is the same for many, by one write to the connection: `ws` would make a frame of it by
 * two. Between its own frames, which it writes whole, there is room for others. Answers nothing where the
 * system takes it at once, or else a promise of when it has.
 */
export function sendShared(
  { socket, request: { socket: connection } }: SocketExtra,
  head: string,
  end: Buffer,
): Promise<void> | undefined {
  if (socket.readyState !== socket.OPEN) return undefined
  const frame = textFrame(head, end)
  if (connection.writableLength === 0) {
    connection.write(frame)
    return undefined
  }
  // That it failed is told by the socket's end.
  return new Promise((resolve) => connection.write(frame, () => resolve()))
}

/** The final bit, and the opcode of text: RFC 6455, 5.2. */
const WHOLE_TEXT = 0x81

/** A text message as one frame, unmasked as servers send it. */
function textFrame(head: string, end: Buffer): Buffer {
  const size = Buffer.byteLength(head) + end.length
  const extended = size > 65_535 ? 8 : size > 125 ? 2 : 0
  const frame = Buffer.allocUnsafe(2 + extended + size)
  frame[0] = WHOLE_TEXT
  frame[1] = extended === 8 ? 127 : extended === 2 ? 126 : size
  if (extended === 8) frame.writeBigUInt64BE(BigInt(size), 2)
  else if (extended === 2) frame.writeUInt16BE(size, 2)
  const at = 2 + extended
  end.copy(frame, at + frame.write(head, at))
  return frame
}
