import type { Dispatcher } from 'undici'
import { type Clock, systemClock } from './clock.ts'
import { Unreachable } from './cluster.ts'
import { Credentials } from './credentials.ts'
import type { ClusterContext } from './kubeconfig.ts'
import { Limit } from './limit.ts'
import { Line } from './line.ts'

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

/** A streamed answer: `chunks` must be read to its end, or the request's signal aborted. */
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
  /** Told of every call when its answer has come, or the beginning of it where that has no end. */
  onCall?: (call: ApiCall) => void
}

/** One call as it is counted. */
export type ApiCall = {
  /** WATCH: a GET whose answer has no end. */
  method: Method | 'WATCH'
  /** Undefined: no answer came. */
  status: number | undefined
  seconds: number
}

const CONNECTIONS = 32
const DEADLINE_MS = 8_000

/**
 * HTTP to one API server: kept-alive connections, credentials by client-node, a deadline on every
 * call. client-node's own HTTP makes a TLS connection per call: that costs more than the call.
 */
export class Transport {
  readonly #connections: number
  readonly #deadlineMs: number
  readonly #clock: Clock
  readonly #onCall: (call: ApiCall) => void
  #line: Line | { missing: string }
  readonly #retired = new Set<Line>()
  /** Of the calls under way. */
  readonly #limits = new Set<Limit>()
  #closed = false

  constructor(context: ClusterContext | { missing: string }, options: TransportOptions = {}) {
    this.#connections = options.connections ?? CONNECTIONS
    this.#deadlineMs = options.deadlineMs ?? DEADLINE_MS
    this.#clock = options.clock ?? systemClock
    this.#onCall = options.onCall ?? (() => undefined)
    this.#line = this.#lineTo(context)
  }

  /** From now on calls go to this context; those under way end where they are. */
  use(context: ClusterContext | { missing: string }): void {
    if (this.#line instanceof Line) this.#retire(this.#line)
    this.#line = this.#lineTo(context)
  }

  /** One call and its whole answer, whatever its status. Rejects with `Unreachable` only. */
  async call(request: ApiRequest): Promise<ApiAnswer> {
    const limit = this.#begin(request.signal)
    const told = this.#measured(request.method)
    try {
      const answer = await this.#send(request, 'calls', limit.signal)
      const whole = { ...head(answer), text: await answer.body.text() }
      told(whole.status)
      return whole
    } catch (error) {
      told(undefined)
      throw unreachable(error, limit)
    } finally {
      this.#end(limit)
    }
  }

  /** A call whose answer has no end in sight: the deadline is for its beginning. */
  async stream(request: ApiRequest & { signal: AbortSignal }): Promise<ApiStream> {
    const limit = this.#begin(request.signal)
    const told = this.#measured('WATCH')
    try {
      const answer = await this.#send(request, 'watches', limit.signal)
      told(answer.statusCode)
      // The body of a refusal has an end, and the deadline is for that too.
      if (answer.statusCode === 200) limit.lift()
      return { ...head(answer), chunks: this.#chunks(answer.body, limit) }
    } catch (error) {
      told(undefined)
      this.#end(limit)
      throw unreachable(error, limit)
    }
  }

  /** Ends all calls and closes all connections. */
  async close(): Promise<void> {
    this.#closed = true
    for (const limit of this.#limits) limit.cut()
    const lines = [...this.#retired]
    if (this.#line instanceof Line) lines.push(this.#line)
    await Promise.all(lines.map((line) => line.destroy()))
  }

  /** Begins to measure a call; what it answers is called with how it ended. */
  #measured(method: ApiCall['method']): (status: number | undefined) => void {
    const begun = performance.now()
    return (status) => this.#onCall({ method, status, seconds: (performance.now() - begun) / 1000 })
  }

  #begin(signal: AbortSignal | undefined): Limit {
    const limit = new Limit(this.#deadlineMs, signal)
    this.#limits.add(limit)
    return limit
  }

  #end(limit: Limit): void {
    limit.end()
    this.#limits.delete(limit)
  }

  async *#chunks(body: AsyncIterable<Uint8Array>, limit: Limit): AsyncGenerator<Uint8Array> {
    try {
      yield* body
    } catch (error) {
      throw unreachable(error, limit)
    } finally {
      this.#end(limit)
    }
  }

  #lineTo(context: ClusterContext | { missing: string }): Line | { missing: string } {
    if ('missing' in context) return context
    return new Line(new Credentials(context, this.#clock), context, {
      connections: this.#connections,
      connectMs: this.#deadlineMs,
    })
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
    const { renewals } = line.credentials
    const answer = await line.send(request, purpose, signal)
    if (answer.statusCode !== 401 || !line.credentials.renew(renewals)) return answer
    await answer.body.dump()
    return line.send(request, purpose, signal)
  }
}

function head(answer: Dispatcher.ResponseData): { status: number; retryAfter: string | undefined } {
  const retryAfter = answer.headers['retry-after']
  return {
    status: answer.statusCode,
    retryAfter: Array.isArray(retryAfter) ? retryAfter[0] : retryAfter,
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
