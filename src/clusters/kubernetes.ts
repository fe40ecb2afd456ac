import { FIELD_MANAGER, type KubeObject, type Resource } from '../rules/objects.ts'
import { systemClock } from './clock.ts'
import {
  type CallOptions,
  type Cluster,
  type Follow,
  type FollowHandler,
  type Selection,
  Unreachable,
} from './cluster.ts'
import { failureOfAnswer, isRecord, parseJson } from './failure.ts'
import { ListWatch } from './follow.ts'
import type { ClusterContext } from './kubeconfig.ts'
import { listAll } from './listing.ts'
import { type ApiAnswer, type ApiRequest, Transport, type TransportOptions } from './transport.ts'
import { eventsOf, type WatchEvent } from './watch-events.ts'
import { type ListPage, objectFromText, pageFromText } from './wire.ts'

export type KubernetesOptions = TransportOptions & {
  /** A follow's handler threw, which it should not; the follow goes on. */
  onHandlerError(error: unknown, about: Mishandled): void
  random?: () => number
}

/** What a handler threw on; `object`: its key, where it was about one. */
export type Mishandled = { cluster: string; kind: string; object: string | undefined }

type Place = { namespace?: string | undefined; name?: string }

const PAGE_SIZE = '500'

/** A cluster behind an API server of Kubernetes, by a context of a kubeconfig. */
export class KubernetesCluster implements Cluster {
  readonly name: string
  readonly #options: KubernetesOptions
  readonly #transport: Transport
  readonly #follows = new Set<{ restart(): void; close(): Promise<void> }>()
  #server: string | undefined
  #closed = false

  /** Without a context every call fails as `Unreachable`, until `use` gives one. */
  constructor(
    name: string,
    context: ClusterContext | { missing: string },
    options: KubernetesOptions,
  ) {
    this.name = name
    this.#options = options
    this.#server = serverOf(context)
    this.#transport = new Transport(context, options)
  }

  /**
   * Changes credentials or server. Follows go on: with another server they list anew, and what they
   * know of the old one is compared with the new by uid.
   */
  use(context: ClusterContext | { missing: string }): void {
    this.#transport.use(context)
    const server = serverOf(context)
    if (server === this.#server) return
    this.#server = server
    for (const follow of this.#follows) follow.restart()
  }

  async apply<T extends KubeObject>(
    resource: Resource,
    object: T,
    options: CallOptions = {},
  ): Promise<T> {
    const query = new URLSearchParams({ fieldManager: FIELD_MANAGER, force: 'true' })
    const answer = await this.#call({
      method: 'PATCH',
      path: pathOf(resource, object.metadata, query),
      // JSON is YAML, and the only other type for an apply is CBOR.
      contentType: 'application/apply-patch+yaml',
      body: JSON.stringify(object),
      signal: options.signal,
    })
    return aboutSame(objectFromText<T>(succeeded(answer, resource).text), resource, object.metadata)
  }

  async remove(
    resource: Resource,
    where: { name: string; namespace?: string; uid?: string },
    options: CallOptions = {},
  ): Promise<'deleted' | 'deleting' | 'absent'> {
    const { uid } = where
    const answer = await this.#call({
      method: 'DELETE',
      path: pathOf(resource, where),
      contentType: 'application/json',
      body: JSON.stringify({
        apiVersion: 'v1',
        kind: 'DeleteOptions',
        ...(uid === undefined ? {} : { preconditions: { uid } }),
      }),
      signal: options.signal,
    })
    if (tellsAbsent(answer) || (answer.status === 409 && uid !== undefined)) return 'absent'
    const body = parseJson(succeeded(answer, resource).text)
    // A Status when it is gone at once; the object itself while finalizers keep it.
    if (!isRecord(body)) throw new Unreachable('the answer to a delete is no Kubernetes object')
    return isRecord(body['metadata']) && body['metadata']['deletionTimestamp'] !== undefined
      ? 'deleting'
      : 'deleted'
  }

  async merge<T extends KubeObject>(
    resource: Resource,
    where: { name: string; namespace?: string },
    patch: object,
    options: CallOptions = {},
  ): Promise<T | undefined> {
    const answer = await this.#call({
      method: 'PATCH',
      path: pathOf(resource, where, new URLSearchParams({ fieldManager: FIELD_MANAGER })),
      contentType: 'application/merge-patch+json',
      body: JSON.stringify(patch),
      signal: options.signal,
    })
    if (tellsAbsent(answer)) return undefined
    return aboutSame(objectFromText<T>(succeeded(answer, resource).text), resource, where)
  }

  async list<T extends KubeObject>(
    resource: Resource,
    selection: Selection = {},
    options: CallOptions = {},
  ): Promise<T[]> {
    const { items } = await listAll<T>((token) =>
      this.#page<T>(resource, selection, token, options.signal),
    )
    return items
  }

  follow<T extends KubeObject>(
    resource: Resource,
    selection: Selection,
    handler: FollowHandler<T>,
  ): Follow<T> {
    const { clock = systemClock, random = Math.random, onHandlerError } = this.#options
    const follow = new ListWatch<T>(
      {
        page: (token, signal) => this.#page<T>(resource, selection, token, signal),
        watch: (from, signal) => this.#watch<T>(resource, selection, from, signal),
      },
      handler,
      {
        clock,
        random,
        onHandlerError: (error, object) =>
          onHandlerError(error, { cluster: this.name, kind: resource.plural, object }),
      },
    )
    this.#follows.add(follow)
    if (this.#closed) void follow.close()
    return {
      get objects() {
        return follow.objects
      },
      synced: follow.synced,
      learn: (object) => follow.learn(object),
      hurry: () => follow.hurry(),
      close: () => {
        this.#follows.delete(follow)
        return follow.close()
      },
    }
  }

  async openapi(
    group: string,
    version: string,
    options: CallOptions = {},
  ): Promise<unknown | undefined> {
    const path = `/openapi/v3/${group === '' ? 'api' : `apis/${group}`}/${version}`
    const answer = await this.#call({ method: 'GET', path, signal: options.signal })
    if (answer.status === 404) return undefined
    const document = parseJson(succeeded(answer).text)
    if (document === undefined) throw new Unreachable('the OpenAPI document is not JSON')
    return document
  }

  async close(): Promise<void> {
    this.#closed = true
    const follows = [...this.#follows]
    this.#follows.clear()
    await Promise.all(follows.map((follow) => follow.close()))
    await this.#transport.close()
  }

  #call(request: ApiRequest): Promise<ApiAnswer> {
    return this.#transport.call(request)
  }

  async #page<T extends KubeObject>(
    resource: Resource,
    selection: Selection,
    token: string | undefined,
    signal: AbortSignal | undefined,
  ): Promise<ListPage<T>> {
    const query = queryOf(selection, { limit: PAGE_SIZE })
    if (token !== undefined) query.set('continue', token)
    const path = pathOf(resource, { namespace: selection.namespace }, query)
    const answer = await this.#call({ method: 'GET', path, signal })
    return pageFromText<T>(succeeded(answer).text, resource)
  }

  async #watch<T extends KubeObject>(
    resource: Resource,
    selection: Selection,
    from: { resourceVersion: string; timeoutSeconds: number },
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent<T>>> {
    const query = queryOf(selection, {
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: from.resourceVersion,
      timeoutSeconds: String(from.timeoutSeconds),
    })
    const path = pathOf(resource, { namespace: selection.namespace }, query)
    const answer = await this.#transport.stream({ method: 'GET', path, signal })
    if (answer.status !== 200) {
      throw failureOfAnswer({ ...answer, text: await textOf(answer.chunks) })
    }
    return eventsOf<T>(answer.chunks)
  }
}

function serverOf(context: ClusterContext | { missing: string }): string | undefined {
  return 'missing' in context ? undefined : context.server
}

function pathOf(resource: Resource, place: Place, query?: URLSearchParams): string {
  const { group, version, plural } = resource
  const { namespace, name } = place
  const parts = group === '' ? ['api', version] : ['apis', group, version]
  if (namespace !== undefined) parts.push('namespaces', encodeURIComponent(namespace))
  parts.push(plural)
  if (name !== undefined) parts.push(encodeURIComponent(name))
  return `/${parts.join('/')}${query === undefined ? '' : `?${query}`}`
}

function queryOf(selection: Selection, more: Record<string, string>): URLSearchParams {
  const query = new URLSearchParams(more)
  if (selection.labelSelector !== undefined) query.set('labelSelector', selection.labelSelector)
  return query
}

function succeeded(answer: ApiAnswer, about?: Resource): ApiAnswer {
  if (answer.status < 200 || answer.status > 299) throw failureOfAnswer(answer, about)
  return answer
}

/** A server (or what stands before it) that answers with another object hasn't done what was asked. */
function aboutSame<T extends KubeObject>(answered: T, resource: Resource, asked: Place): T {
  const { kind, metadata } = answered
  const same =
    kind === resource.kind &&
    metadata.name === asked.name &&
    (asked.namespace === undefined || metadata.namespace === asked.namespace)
  if (same) return answered
  throw new Unreachable('the answer is about another object than was written')
}

/**
 * The object isn't there, said by the API of its kind. A 404 without a Status (the kind itself isn't
 * served: its CRD is gone, or a server is starting) says nothing about objects.
 */
function tellsAbsent(answer: ApiAnswer): boolean {
  return answer.status === 404 && failureOfAnswer(answer).reason === 'NotFound'
}

async function textOf(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = []
  for await (const chunk of chunks) parts.push(chunk)
  return Buffer.concat(parts).toString('utf8')
}
