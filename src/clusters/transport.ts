import { Agent, type Dispatcher, ProxyAgent } from 'undici'
import { type Clock, systemClock } from './clock.ts'
import { Unreachable } from './cluster.ts'
import { type Access, Credentials } from './credentials.ts'
import type { ClusterContext } from './kubeconfig.ts'

export type Method = 'GET' | 'PATCH' | 'POST' | 'DELETE'

export type ApiRequest = {
  method: Method
  /** With its query, relative to the server's base URL. */
  path: string
  contentType?: string
  body?: string
  signal?: AbortSignal | undefined
}

export type ApiAnswer = { status: number; retryAfter: string | undefined; text: string }

/** A streamed answer; whoever takes it reads `chunks` to the end or aborts the request's signal. */
export type ApiStream = {
  status: number
  retryAfter: string | undefined
  chunks: AsyncIterable<Uint8Array>
}

export type TransportOptions = {
  /** Calls at once, each on a connection of its own; more wait within their deadline. */
  connections?: number
  /** For a whole call, waiting and body included. Shorter than a worker's lease of 10 s. */
  deadlineMs?: number
  clock?: Clock
}

const CONNECTIONS = 32
/** A cluster has about six watches; the bound is there for a fault that would open more and more. */
const WATCH_CONNECTIONS = 64
const DEADLINE_MS = 8_000
/** kube-apiserver closes idle connections after 90 s: ours go first, so none is written to as it closes. */
const KEEP_ALIVE_MS = 45_000
const USER_AGENT = 'network-load-balancers'

/**
 * HTTP to one API server: kept-alive connections, credentials by client-node, a deadline on every
 * call. client-node's own HTTP makes a TLS connection per call: that costs more than the call.
 */
export class Transport {
  readonly #connections: number
  readonly #deadlineMs: number
  readonly #clock: Clock
  #line: Line | { missing: string }
  readonly #retired = new Set<Line>()
  #closed = false

  constructor(context: ClusterContext | { missing: string }, options: TransportOptions = {}) {
    this.#connections = options.connections ?? CONNECTIONS
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS
    this.#clock = options.clock ?? systemClock
    this.#line = this.#lineTo(context)
  }

  /** From now on calls go to this context; those under way end where they are. */
  use(context: ClusterContext | { missing: string }): void {
    if (this.#line instanceof Line) this.#retire(this.#line)
    this.#line = this.#lineTo(context)
  }

  /** One call and its whole answer, whatever its status. Rejects with `Unreachable` only. */
  async call(request: ApiRequest): Promise<ApiAnswer> {
    const limit = new Limit(this.#deadlineMs, request.signal)
    try {
      const answer = await this.#send(request, 'calls', limit.signal)
      return { ...head(answer), text: await answer.body.text() }
    } catch (error) {
      throw unreachable(error, limit)
    } finally {
      limit.end()
    }
  }

  /** A call whose answer has no end in sight: the deadline is for its beginning. */
  async stream(request: ApiRequest & { signal: AbortSignal }): Promise<ApiStream> {
    const limit = new Limit(this.#deadlineMs, request.signal)
    try {
      const answer = await this.#send(request, 'watches', limit.signal)
      // The body of a refusal has an end, and the deadline is for that too.
      if (answer.statusCode === 200) limit.lift()
      return { ...head(answer), chunks: chunksOf(answer.body, limit) }
    } catch (error) {
      limit.end()
      throw unreachable(error, limit)
    }
  }

  /** Ends all calls and closes all connections. */
  async close(): Promise<void> {
    this.#closed = true
    const lines = [...this.#retired]
    if (this.#line instanceof Line) lines.push(this.#line)
    await Promise.all(lines.map((line) => line.destroy()))
  }

  #lineTo(context: ClusterContext | { missing: string }): Line | { missing: string } {
    return 'missing' in context
      ? context
      : new Line(
          new Credentials(context, this.#clock),
          context,
          this.#connections,
          this.#deadlineMs,
        )
  }

  #retire(line: Line): void {
    this.#retired.add(line)
    void line.drain().finally(() => this.#retired.delete(line))
  }

  async #send(
    request: ApiRequest,
    purpose: 'calls' | 'watches',
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const line = this.#line
    if (this.#closed) throw new Unreachable('the cluster was closed')
    if (!(line instanceof Line)) throw new Unreachable(line.missing)
    const answer = await line.send(request, purpose, signal)
    if (answer.statusCode !== 401 || !line.credentials.renew()) return answer
    await answer.body.dump()
    return line.send(request, purpose, signal)
  }
}

type Wires = { tlsKey: string; calls: Dispatcher; watches: Dispatcher }

/** The connections to one context's server. New certificates get new connections. */
class Line {
  readonly credentials: Credentials
  readonly #origin: string
  readonly #prefix: string
  readonly #proxyUrl: string | undefined
  readonly #connections: number
  readonly #connectMs: number
  #wires: Wires | undefined
  readonly #old = new Set<Wires>()

  constructor(
    credentials: Credentials,
    context: ClusterContext,
    connections: number,
    connectMs: number,
  ) {
    const url = new URL(context.server)
    this.#origin = url.origin
    this.#prefix = url.pathname.replace(/\/+$/, '')
    this.#proxyUrl = context.proxyUrl
    this.#connections = connections
    this.#connectMs = connectMs
    this.credentials = credentials
  }

  async send(
    request: ApiRequest,
    purpose: 'calls' | 'watches',
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const access = await this.credentials.access()
    const headers: Record<string, string> = {
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

  /** Lets what is under way end, then closes. */
  async drain(): Promise<void> {
    if (this.#wires !== undefined) this.#leave(this.#wires)
    this.#wires = undefined
    await Promise.all([...this.#old].flatMap(({ calls, watches }) => [calls, watches]).map(closed))
  }

  async destroy(): Promise<void> {
    const all = this.#wires === undefined ? [...this.#old] : [...this.#old, this.#wires]
    await Promise.all(all.flatMap(({ calls, watches }) => [calls.destroy(), watches.destroy()]))
  }

  #wiresFor(access: Access): Wires {
    if (this.#wires?.tlsKey === access.tlsKey) return this.#wires
    if (this.#wires !== undefined) this.#leave(this.#wires)
    this.#wires = {
      tlsKey: access.tlsKey,
      calls: this.#dispatcher(access, this.#connections),
      watches: this.#dispatcher(access, WATCH_CONNECTIONS),
    }
    return this.#wires
  }

  #leave(wires: Wires): void {
    this.#old.add(wires)
    void Promise.all([closed(wires.calls), closed(wires.watches)]).finally(() =>
      this.#old.delete(wires),
    )
  }

  #dispatcher(access: Access, connections: number): Dispatcher {
    const connect = {
      ...access.tls,
      timeout: this.#connectMs,
      keepAlive: true,
      keepAliveInitialDelay: 30_000,
    }
    const options: Agent.Options = {
      connections,
      connect,
      // One connection per call: over HTTP/2 all calls and watches would share one and its loss.
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

/** Closing what was closed or destroyed meanwhile is no failure. */
async function closed(dispatcher: Dispatcher): Promise<void> {
  if (dispatcher instanceof Agent && (dispatcher.closed || dispatcher.destroyed)) return
  await dispatcher.close()
}

function head(answer: Dispatcher.ResponseData): { status: number; retryAfter: string | undefined } {
  const retryAfter = answer.headers['retry-after']
  return {
    status: answer.statusCode,
    retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
  }
}

async function* chunksOf(
  body: AsyncIterable<Uint8Array>,
  limit: Limit,
): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } catch (error) {
    throw unreachable(error, limit)
  } finally {
    limit.end()
  }
}

function unreachable(error: unknown, limit: Limit): Unreachable {
  if (error instanceof Unreachable) return error
  if (limit.passed) return new Unreachable(`no answer within ${limit.ms} ms`, { cause: error })
  const message = error instanceof Error ? error.message : String(error)
  // Node groups the failures for each address of a name into one error with an empty message.
  const first: unknown = error instanceof AggregateError ? error.errors[0] : undefined
  return new Unreachable(message || (first instanceof Error ? first.message : 'no answer'), {
    cause: error,
  })
}

/** The caller's signal and a deadline in one. Listeners and timers go when the call ends. */
class Limit {
  readonly ms: number
  readonly #controller = new AbortController()
  readonly #outer: AbortSignal | undefined
  readonly #timer: NodeJS.Timeout
  #passed = false

  constructor(ms: number, outer: AbortSignal | undefined) {
    this.ms = ms
    this.#outer = outer
    this.#timer = setTimeout(() => {
      this.#passed = true
      this.#controller.abort()
    }, ms)
    if (outer?.aborted) this.#follow()
    else outer?.addEventListener('abort', this.#follow, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  get passed(): boolean {
    return this.#passed
  }

  readonly #follow = (): void => this.#controller.abort(this.#outer?.reason)

  /** The deadline is met. */
  lift(): void {
    clearTimeout(this.#timer)
  }

  /** The call is over. */
  end(): void {
    this.lift()
    this.#outer?.removeEventListener('abort', this.#follow)
  }
}
