import type { IncomingMessage, ServerResponse } from 'node:http'

/** Pages of other origins may call only from origins that are listed; credentials go in a header. */
export class Cors {
  readonly #allowed: ReadonlySet<string>

  constructor(origins: readonly string[]) {
    this.#allowed = new Set(origins)
  }

  /** Marks the answer for the browser. Answers preflights itself: true when it did. */
  answer(request: IncomingMessage, response: ServerResponse): boolean {
    const { origin } = request.headers
    if (origin !== undefined) {
      response.setHeader('vary', 'Origin')
      if (this.#allowed.has(origin)) {
        response.setHeader('access-control-allow-origin', origin)
        response.setHeader('access-control-expose-headers', 'retry-after, x-request-id')
      }
    }
    if (request.method !== 'OPTIONS') return false
    if (origin !== undefined && this.#allowed.has(origin)) {
      response.setHeader('access-control-allow-methods', 'GET, POST')
      response.setHeader('access-control-allow-headers', 'authorization, content-type, traceparent')
      response.setHeader('access-control-max-age', '600')
    }
    response.writeHead(204, { allow: 'GET, POST, OPTIONS' }).end()
    return true
  }

  /** Whether a page of that origin may open a websocket, which browsers don't ask about first. */
  mayConnect({ headers }: IncomingMessage): boolean {
    const { origin, host } = headers
    if (origin === undefined || this.#allowed.has(origin)) return true
    return URL.canParse(origin) && new URL(origin).host === host
  }
}
