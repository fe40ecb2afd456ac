import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Api } from './api.ts'
import { callerOf, notForAnonymous } from './callers.ts'
import { remove, removeAll } from './deletion.ts'
import { discovery } from './discovery.ts'
import { listJson, listRequest } from './list.ts'
import { openapiDocument, openapiIndex } from './openapi.ts'
import { badRequest, methodNotAllowed, nothingServed, Refusal, unauthorized } from './refusal.ts'
import type { ApiRequest, Target } from './request.ts'
import { routeOf } from './router.ts'
import { selectorOf } from './selectors.ts'
import type { Answer } from './verbs.ts'
import { create, get, patch, update } from './verbs.ts'
import { isTrue, Watch, watchRequest } from './watch.ts'

/** A larger body is refused, as real servers do (3 MiB). */
const BODY_LIMIT = 3 * 1024 * 1024

export type HttpOptions = {
  /** Bearer tokens that may call; who they are makes no difference yet. */
  tokens: ReadonlySet<string>
  /** How long a list waits for a revision that isn't there yet. */
  freshWaitMs: number
  /** True: after a start, what is answered from memory isn't ready yet. */
  initializing: () => boolean
  before: ((request: Asked) => Promise<'reset' | undefined> | undefined) | undefined
}

/** A request on objects before it is carried out. */
export type Asked = { method: string; path: string; watch: boolean }

/** Answers requests to one API server. */
export class HttpFace {
  readonly #api: Api
  readonly #options: HttpOptions
  readonly watches = new Set<Watch>()

  constructor(api: Api, options: HttpOptions) {
    this.#api = api
    this.#options = options
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    this.#answer(request, response).catch((error: unknown) => {
      // A client that left while its body was read is no fault; all else is one, and says so.
      if (response.destroyed || request.destroyed) return
      const message = error instanceof Error ? (error.stack ?? error.message) : `${error}`
      sendRefusal(response, new Refusal({ code: 500, reason: 'InternalError', message }))
    })
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'https://server')
    const route = routeOf(this.#api, url.pathname)
    if (route.to === 'health') {
      const [code, text] = this.#options.initializing() ? [500, 'starting'] : [200, 'ok']
      return send(response, code, text, 'text/plain; charset=utf-8')
    }
    const caller = callerOf(request, this.#options.tokens)
    if (caller === 'stranger') return sendRefusal(response, unauthorized())
    if (caller === 'anonymous' && route.to !== 'version') {
      return sendRefusal(response, notForAnonymous(request.method ?? '', url, route))
    }
    if (route.to === 'object') {
      return this.#object(request, response, route.target, url.searchParams)
    }
    if (route.to === 'nothing') return sendNothing(response)
    if (request.method !== 'GET') return sendRefusal(response, methodNotAllowed())
    switch (route.to) {
      case 'version':
        return sendJson(response, 200, VERSION)
      case 'openapi-index':
        return sendJson(response, 200, openapiIndex(this.#api))
      case 'openapi': {
        const document = this.#options.initializing()
          ? undefined
          : openapiDocument(this.#api, route.group, route.version)
        if (document !== undefined) return sendJson(response, 200, document)
        response.writeHead(404, { 'content-length': 0 }).end()
        return
      }
      case 'discovery': {
        const found = discovery(this.#api, route.path)
        return found === undefined ? sendNothing(response) : sendJson(response, 200, found)
      }
      case 'no-resource':
        return sendRefusal(response, nothingServed())
      case 'no-subresource':
        return sendRefusal(response, nothingServed(route.definition, route.name))
    }
  }

  async #object(
    request: IncomingMessage,
    response: ServerResponse,
    target: Target,
    query: URLSearchParams,
  ): Promise<void> {
    const asked = {
      method: request.method ?? '',
      path: (request.url ?? '').split('?')[0] ?? '',
      watch: isTrue(query.get('watch')),
    }
    if ((await this.#options.before?.(asked)) === 'reset') {
      request.socket.destroy()
      return
    }
    const across = target.definition.namespaced && target.namespace === ''
    if (across && request.method !== 'GET') return sendNothing(response)
    if (request.method === 'GET') {
      if (target.name !== '') return sendAnswer(response, get(this.#api, target))
      return this.#read(response, target, query)
    }
    const body = await readBody(request)
    if (body instanceof Refusal) return sendRefusal(response, body)
    sendAnswer(
      response,
      this.#write(target, {
        method: request.method ?? '',
        query,
        contentType: (request.headers['content-type'] ?? '').split(';')[0]?.trim() ?? '',
        userAgent: request.headers['user-agent'] ?? '',
        body,
      }),
    )
  }

  #write(target: Target, request: ApiRequest): Answer | Refusal {
    const api = this.#api
    switch (request.method) {
      case 'POST':
        return target.subresource === ''
          ? create(api, target, request)
          : methodNotAllowed(target.definition)
      case 'PUT':
        return target.name === ''
          ? badRequest('name must be provided')
          : update(api, target, request)
      case 'PATCH':
        return target.name === ''
          ? badRequest('name must be provided')
          : patch(api, target, request)
      case 'DELETE': {
        if (target.subresource !== '') return methodNotAllowed(target.definition)
        if (target.name !== '') return remove(api, target, request)
        if (target.definition.builtin === 'namespace') return methodNotAllowed(target.definition)
        const selector = selectorOf(request.query, target.namespace)
        return selector instanceof Refusal ? selector : removeAll(api, target, selector, request)
      }
      default:
        return methodNotAllowed(target.definition)
    }
  }

  async #read(response: ServerResponse, target: Target, query: URLSearchParams): Promise<void> {
    const selector = selectorOf(query, target.namespace)
    if (selector instanceof Refusal) return sendRefusal(response, selector)
    const { definition } = target
    const table = this.#api.table(definition)
    // Pages come from the store itself.
    const fromMemory = isTrue(query.get('watch')) || !query.has('limit')
    if (fromMemory && this.#options.initializing()) {
      const message = 'storage is (re)initializing'
      const parts = { code: 429, reason: 'TooManyRequests', message, retryAfterSeconds: 1 }
      return sendRefusal(response, new Refusal(parts))
    }
    if (isTrue(query.get('watch'))) {
      const wanted = watchRequest(query)
      if (wanted instanceof Refusal) return sendRefusal(response, wanted)
      const watch: Watch = new Watch({
        table,
        definition,
        selector,
        request: wanted,
        response,
        ended: () => this.watches.delete(watch),
      })
      this.watches.add(watch)
      return watch.start()
    }
    const wanted = listRequest(query)
    if (wanted instanceof Refusal) return sendRefusal(response, wanted)
    const revision = wanted.exact ?? wanted.atLeast
    if (!(await this.#reached(revision))) {
      return sendRefusal(response, tooLarge(revision, this.#api.store.revision))
    }
    const json = listJson(definition, table, selector, wanted)
    if (json instanceof Refusal) return sendRefusal(response, json)
    send(response, 200, json)
  }

  /** Waits a while for a revision from the future. */
  async #reached(revision: number): Promise<boolean> {
    const { store } = this.#api
    if (store.revision >= revision) return true
    return new Promise((resolve) => {
      const done = (reached: boolean) => {
        clearTimeout(timer)
        store.observers.delete(look)
        resolve(reached)
      }
      const look = () => {
        if (store.revision >= revision) done(true)
      }
      const timer = setTimeout(() => done(false), this.#options.freshWaitMs)
      store.observers.add(look)
    })
  }
}

const VERSION = {
  major: '1',
  minor: '36',
  gitVersion: 'v1.36.3-embedded',
  platform: `${process.platform}/${process.arch === 'x64' ? 'amd64' : process.arch}`,
}

function tooLarge(revision: number, current: number): Refusal {
  const told = 'Too large resource version'
  return new Refusal({
    code: 504,
    reason: 'Timeout',
    message: `${told}: ${revision}, current: ${current}`,
    details: { causes: [{ reason: 'ResourceVersionTooLarge', message: told }] },
    retryAfterSeconds: 1,
  })
}

async function readBody(request: IncomingMessage): Promise<string | Refusal> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) {
    if (!Buffer.isBuffer(chunk)) return badRequest('the body is not bytes')
    size += chunk.length
    // The rest is read all the same: leaving would close the connection under the answer.
    if (size <= BODY_LIMIT) chunks.push(chunk)
  }
  if (size > BODY_LIMIT) {
    const message = `Request entity too large: limit is ${BODY_LIMIT}`
    return new Refusal({ code: 413, reason: 'RequestEntityTooLarge', message })
  }
  return Buffer.concat(chunks).toString()
}

function send(
  response: ServerResponse,
  code: number,
  body: string,
  type = 'application/json',
): void {
  response.writeHead(code, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

const sendJson = (response: ServerResponse, code: number, value: unknown): void =>
  send(response, code, JSON.stringify(value))

/** What isn't there at all is told in plain text, not by a Status. */
const sendNothing = (response: ServerResponse): void =>
  send(response, 404, '404 page not found\n', 'text/plain; charset=utf-8')

function sendRefusal(response: ServerResponse, refusal: Refusal): void {
  if (refusal.retryAfterSeconds !== undefined) {
    response.setHeader('retry-after', `${refusal.retryAfterSeconds}`)
  }
  sendJson(response, refusal.code, refusal.status)
}

function sendAnswer(response: ServerResponse, answer: Answer | Refusal): void {
  if (answer instanceof Refusal) {
    sendRefusal(response, answer)
    return
  }
  const warnings = (answer.warnings ?? []).map((text) => `299 - ${JSON.stringify(text)}`)
  if (warnings.length > 0) response.setHeader('warning', warnings.join(', '))
  send(response, answer.code, answer.json)
}
