import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Pem } from './certificates.ts'

export type Call = {
  method: string
  path: string
  query: URLSearchParams
  headers: http.IncomingHttpHeaders
  body: string
  /** Of the client's connection: tells whether two calls shared one. */
  port: number | undefined
  /** The name in the client's certificate. */
  peer: string | undefined
  answer: http.ServerResponse
  /** The client let go of it. */
  gone: Promise<void>
}

type Handler = (call: Call) => void | Promise<void>

/** An HTTP(S) server that answers as a test says, however badly, and records who asked what. */
export class ScriptedServer {
  readonly calls: Call[] = []
  readonly sockets = new Set<Socket>()
  /** Connections ever made. */
  accepted = 0
  handle: Handler
  readonly #server: http.Server
  readonly #scheme: string
  readonly #waiting: { count: number; matches: (call: Call) => boolean; done: () => void }[] = []

  private constructor(handle: Handler, tls: https.ServerOptions | undefined) {
    this.handle = handle
    this.#scheme = tls === undefined ? 'http' : 'https'
    const listener: http.RequestListener = (request, answer) => void this.#receive(request, answer)
    this.#server =
      tls === undefined ? http.createServer(listener) : https.createServer(tls, listener)
    this.#server.on(tls === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
      this.accepted += 1
      this.sockets.add(socket)
      socket.on('close', () => this.sockets.delete(socket))
      // A client that resets is part of the game.
      socket.on('error', () => undefined)
    })
  }

  static async start(
    handle: Handler,
    tls?: Pem & { ca?: string },
    host = '127.0.0.1',
  ): Promise<ScriptedServer> {
    const server = new ScriptedServer(
      handle,
      tls && { ...tls, requestCert: tls.ca !== undefined, rejectUnauthorized: false },
    )
    server.#server.listen(0, host)
    await once(server.#server, 'listening')
    return server
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `${this.#scheme}://127.0.0.1:${this.port}`
  }

  /** Resolves when `count` calls that match have come, counted from the start. */
  received(count: number, matches: (call: Call) => boolean = () => true): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ count, matches, done: resolve })
    this.#check()
    return promise
  }

  /** Shows this certificate from now on, on new connections; those there are break. */
  showCertificate(tls: Pem): void {
    if (this.#server instanceof https.Server) this.#server.setSecureContext(tls)
    for (const socket of this.sockets) socket.destroy()
  }

  async close(): Promise<void> {
    this.#server.close()
    this.#server.closeAllConnections()
    for (const socket of this.sockets) socket.destroy()
    await once(this.#server, 'close')
  }

  async #receive(request: http.IncomingMessage, answer: http.ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    const { promise: gone, resolve } = Promise.withResolvers<void>()
    answer.on('close', resolve)
    for await (const part of request) parts.push(part)
    const url = new URL(request.url ?? '/', 'http://server')
    const call: Call = {
      method: request.method ?? '',
      path: url.pathname,
      query: url.searchParams,
      headers: request.headers,
      body: Buffer.concat(parts).toString('utf8'),
      port: request.socket.remotePort,
      peer: peerOf(request.socket),
      answer,
      gone,
    }
    this.calls.push(call)
    this.#check()
    await this.handle(call)
  }

  #check(): void {
    for (const waiting of this.#waiting) {
      if (this.calls.filter(waiting.matches).length >= waiting.count) waiting.done()
    }
  }
}

export function json(answer: http.ServerResponse, code: number, body: unknown, headers = {}): void {
  answer.writeHead(code, { 'content-type': 'application/json', ...headers })
  answer.end(JSON.stringify(body))
}

/** A `Status` as an API server sends it. */
export function status(code: number, reason?: string, message = 'no', details?: object): object {
  return { kind: 'Status', apiVersion: 'v1', status: 'Failure', code, reason, message, details }
}

function peerOf(socket: Socket): string | undefined {
  const name = socket instanceof TLSSocket ? socket.getPeerCertificate().subject?.CN : undefined
  return Array.isArray(name) ? name[0] : name
}
