import { Agent, request } from 'undici'
import { isObject, type Json, type JsonObject } from '../kube/json.ts'

export type AdminAnswer = { code: number; body: JsonObject; text: string }

/** Plain calls to an API server as its administrator, as `kubectl` would make them. */
export class Admin {
  readonly #url: string
  readonly #agent: Agent

  constructor(server: { url: string; ca: string; clientCertificate: string; clientKey: string }) {
    this.#url = server.url
    this.#agent = new Agent({
      connect: { ca: server.ca, cert: server.clientCertificate, key: server.clientKey },
    })
  }

  /** Undefined where nobody answered. */
  async call(
    method: 'GET' | 'PATCH' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: Json,
    type = 'application/json',
  ): Promise<AdminAnswer | undefined> {
    try {
      const answer = await request(this.#url + path, {
        method,
        dispatcher: this.#agent,
        headersTimeout: 10_000,
        bodyTimeout: 10_000,
        ...(body === undefined
          ? {}
          : { body: JSON.stringify(body), headers: { 'content-type': type } }),
      })
      const text = await answer.body.text()
      const parsed: unknown = text.startsWith('{') ? JSON.parse(text) : undefined
      return { code: answer.statusCode, body: isObject(parsed) ? parsed : {}, text }
    } catch {
      return undefined
    }
  }

  /** A watch of which only the end is of interest. */
  async watch(path: string): Promise<{ ended: Promise<void>; close(): void }> {
    const stop = new AbortController()
    const answer = await request(`${this.#url}${path}?watch=true&resourceVersion=0`, {
      dispatcher: this.#agent,
      signal: stop.signal,
      bodyTimeout: 0,
    })
    // However it ends.
    const ended = answer.body.dump({ limit: Number.POSITIVE_INFINITY }).then(
      () => undefined,
      () => undefined,
    )
    return { ended, close: () => stop.abort() }
  }

  apply(path: string, object: Json): Promise<AdminAnswer | undefined> {
    const query = 'fieldManager=kube-real&force=true'
    return this.call('PATCH', `${path}?${query}`, object, 'application/apply-patch+yaml')
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }
}
