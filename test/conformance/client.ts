import { Agent, request } from 'undici'
import type { JsonObject } from '../../dev/kube/json.ts'
import { isObject, metadataOf, textAt } from '../../dev/kube/json.ts'

/** Talks to an API server as any client would: HTTPS, its CA, a bearer token. */

export const APPLY = 'application/apply-patch+yaml'
export const MERGE = 'application/merge-patch+json'
export const JSON_PATCH = 'application/json-patch+json'

export const NETWORK = '/apis/network.datumapis.com/v1alpha1'
export const CLOUD = '/apis/cloud.datumapis.com/v1alpha1'

/** Where a namespace's rules are. */
export const rulesPath = (namespace: string): string =>
  `${NETWORK}/namespaces/${namespace}/networkrules`

export type Answered = {
  code: number
  /** Empty where the body is no JSON object. */
  body: JsonObject
  text: string
  headers: Record<string, string | string[] | undefined>
}

export type WatchLine = { type: string; object: JsonObject }

export class Client {
  readonly url: string
  readonly #token: string
  readonly #agent: Agent

  constructor(server: { url: string; ca: string; token: string }) {
    this.url = server.url
    this.#token = server.token
    this.#agent = new Agent({ connect: { ca: server.ca } })
  }

  async call(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    type = 'application/json',
    headers: Record<string, string> = { authorization: `Bearer ${this.#token}` },
  ): Promise<Answered> {
    const answer = await request(this.url + path, {
      method,
      dispatcher: this.#agent,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': type }) },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await answer.body.text()
    const parsed: unknown = parseOne(text)
    return {
      code: answer.statusCode,
      body: isObject(parsed) ? parsed : {},
      text,
      headers: answer.headers,
    }
  }

  get = (path: string): Promise<Answered> => this.call('GET', path)
  apply = (path: string, body: unknown, query = 'fieldManager=me'): Promise<Answered> =>
    this.call('PATCH', `${path}?${query}`, body, APPLY)
  merge = (path: string, body: unknown): Promise<Answered> => this.call('PATCH', path, body, MERGE)

  /** A watch's events in order; ends with the answer. */
  async *watch(path: string, query = ''): AsyncGenerator<WatchLine, void> {
    const answer = await request(`${this.url}${path}?watch=true&${query}`, {
      dispatcher: this.#agent,
      headers: { authorization: `Bearer ${this.#token}` },
      bodyTimeout: 0,
    })
    let rest = ''
    answer.body.setEncoding('utf8')
    for await (const chunk of answer.body) {
      const lines = `${rest}${chunk}`.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const event: unknown = JSON.parse(line)
        if (!isObject(event) || !isObject(event['object'])) throw new Error(`no event: ${line}`)
        yield { type: textAt(event, 'type') ?? '', object: event['object'] }
      }
    }
  }

  close(): Promise<void> {
    return this.#agent.destroy()
  }
}

/** A watch's answer is several objects, and so none. */
function parseOne(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export const namespaceObject = (name: string): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name },
})

/** A rule of the backends dialect; `spec` replaces fields. */
export const rule = (
  name: string,
  spec: JsonObject = {},
  metadata: JsonObject = {},
): JsonObject => ({
  apiVersion: 'network.datumapis.com/v1alpha1',
  kind: 'NetworkRule',
  metadata: { name, ...metadata },
  spec: {
    vpcRef: '60',
    vpcAttachmentRef: '61',
    vipAddresses: ['2001:db8::1'],
    protocol: 'tcp',
    port: 80,
    backends: [{ address: 'fd00::1', port: 80 }],
    ...spec,
  },
})

export const condition = (type: string, status = 'True'): JsonObject => ({
  type,
  status,
  reason: 'Because',
  message: '',
  lastTransitionTime: '2025-01-01T00:00:00Z',
})

export const versionOf = (object: JsonObject): string =>
  textAt(metadataOf(object), 'resourceVersion') ?? ''

export const nameOf = (object: JsonObject): string => textAt(metadataOf(object), 'name') ?? ''

/** What a refusal's causes say, each once: `reason field`. Real servers say some several times. */
export function causesOf(answer: Answered): string[] {
  const details = answer.body['details']
  const causes = isObject(details) && Array.isArray(details['causes']) ? details['causes'] : []
  return [...new Set(causes.filter(isObject).map((one) => `${one['reason']} ${one['field']}`))]
}

/** The next `count` events. */
export async function take(
  events: AsyncGenerator<WatchLine, void>,
  count: number,
): Promise<WatchLine[]> {
  const taken: WatchLine[] = []
  while (taken.length < count) {
    const next = await events.next()
    if (next.done) break
    taken.push(next.value)
  }
  return taken
}
