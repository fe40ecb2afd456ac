import { createSecureContext } from 'node:tls'
import { Agent, type Dispatcher, ProxyAgent } from 'undici'
import { Unreachable } from './cluster.ts'
import type { Access, Credentials } from './credentials.ts'
import type { ClusterContext } from './kubeconfig.ts'
import type { ApiRequest } from './transport.ts'

/** A cluster has about six watches; the bound is there for a fault that would open more and more. */
const WATCH_CONNECTIONS = 64
/** kube-apiserver closes idle connections after 90 s: ours go first, so none is written to as it closes. */
const KEEP_ALIVE_MS = 45_000
/** On the wire too, so that a peer that vanished is noticed under a silent watch. */
const PROBE_AFTER_MS = 30_000
const USER_AGENT = 'network-load-balancers'

/** Connections of one kind of TLS: calls can't be held up by watches, nor watches by calls. */
type Wires = { tlsKey: string; calls: Dispatcher; watches: Dispatcher }

/** The connections to one context's server. New certificates get new connections. */
export class Line {
  readonly credentials: Credentials
  readonly #origin: string
  readonly #prefix: string
  readonly #proxyUrl: string | undefined
  readonly #connections: number
  readonly #connectMs: number
  #wires: Wires | undefined
  /** Those that end what is under way, and when they will have. */
  readonly #leaving = new Map<Wires, Promise<unknown>>()
  #ended = false

  constructor(
    credentials: Credentials,
    context: ClusterContext,
    limits: { connections: number; connectMs: number },
  ) {
    const url = new URL(context.server)
    this.#origin = url.origin
    this.#prefix = url.pathname.replace(/\/+$/, '')
    this.#proxyUrl = context.proxyUrl
    this.#connections = limits.connections
    this.#connectMs = limits.connectMs
    this.credentials = credentials
  }

  async send(
    request: ApiRequest,
    purpose: 'calls' | 'watches',
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const access = await this.credentials.access()
    if (this.#ended) throw new Unreachable('the connection was given up')
    const headers: Access['headers'] = {
      ...access.headers,
      accept: 'application/json',
      'user-agent': USER_AGENT,
    }
    if (request.contentType !== undefined) headers['content-type'] = request.contentType
    return this.#wiresFor(access)[purpose].request({
      origin: this.#origin,
      path: this.#prefix + request.path,
      method: request.method,
      headers,
      body: request.body ?? null,
      signal,
    })
  }

  /** Takes no more calls, lets what is under way end, then closes. */
  async drain(): Promise<void> {
    this.#ended = true
    this.#leave()
    await Promise.all(this.#leaving.values())
  }

  /** Closes at once. Calls under way on connections left before must be aborted by their signals. */
  async destroy(): Promise<void> {
    this.#ended = true
    await Promise.all([this.#wires?.calls.destroy(), this.#wires?.watches.destroy()])
    await Promise.all(this.#leaving.values())
  }

  #wiresFor(access: Access): Wires {
    if (this.#wires?.tlsKey === access.tlsKey) return this.#wires
    this.#leave()
    this.#wires = {
      tlsKey: access.tlsKey,
      calls: this.#dispatcher(access, this.#connections),
      watches: this.#dispatcher(access, WATCH_CONNECTIONS),
    }
    return this.#wires
  }

  #leave(): void {
    const wires = this.#wires
    if (wires === undefined) return
    this.#wires = undefined
    // A failure to close leaves nothing that could be done about it.
    const closing = Promise.allSettled([wires.calls.close(), wires.watches.close()])
    this.#leaving.set(
      wires,
      closing.then(() => this.#leaving.delete(wires)),
    )
  }

  #dispatcher(access: Access, connections: number): Dispatcher {
    const { servername, rejectUnauthorized, ...certificates } = access.tls
    const connect = {
      ...(servername === undefined ? {} : { servername }),
      ...(rejectUnauthorized === undefined ? {} : { rejectUnauthorized }),
      // Certificates are parsed once, not for every connection: that takes as long as the handshake.
      secureContext: createSecureContext(certificates),
      timeout: this.#connectMs,
      keepAlive: true,
      keepAliveInitialDelay: PROBE_AFTER_MS,
    }
    const options: Agent.Options = {
      connections,
      connect,
      // One connection per call: over HTTP/2 all calls and watches would share one and its loss. And it
      // isn't faster: applies to kube-apiserver 1.36.3, in turns on two busy cores, 16 at a time 98/s
      // against 87/s over HTTP/2 (medians), one at a time 81/s against 59/s.
      allowH2: false,
      keepAliveTimeout: KEEP_ALIVE_MS,
      keepAliveMaxTimeout: KEEP_ALIVE_MS,
      connectTimeout: this.#connectMs,
      // Calls have a deadline of ours; a watch may be silent for its whole life.
      headersTimeout: 0,
      bodyTimeout: 0,
    }
    return this.#proxyUrl === undefined
      ? new Agent(options)
      : new ProxyAgent({ ...options, uri: this.#proxyUrl, requestTls: connect })
  }
}
