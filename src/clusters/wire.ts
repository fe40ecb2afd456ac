import type { KubeObject, Resource } from '../rules/objects.ts'
import { Unreachable } from './cluster.ts'
import { isRecord, parseJson } from './failure.ts'

export type ListPage<T> = { items: T[]; resourceVersion: string; continueToken: string | undefined }

/**
 * An object as the server sent it. Its metadata is checked; that its other fields are those of `T`
 * is the word of the server's schema, here and nowhere else taken on trust.
 */
export function objectFrom<T extends KubeObject>(value: unknown): T | undefined {
  if (!isRecord(value) || !isRecord(value['metadata'])) return undefined
  const { name, resourceVersion } = value['metadata']
  const whole = typeof name === 'string' && typeof resourceVersion === 'string'
  return whole ? (value as T) : undefined
}

/** What a successful write or read answered; whatever isn't an object comes from no API server. */
export function objectFromText<T extends KubeObject>(text: string): T {
  const object = objectFrom<T>(parseJson(text))
  if (object === undefined) throw new Unreachable('the answer is no Kubernetes object')
  return object
}

/**
 * One page of a list. Anything else that comes with status 200 (a proxy's page, half an answer) is
 * a failure: read as an empty list, it would take everything away.
 */
export function pageFromText<T extends KubeObject>(text: string, resource: Resource): ListPage<T> {
  const value = parseJson(text)
  if (!isRecord(value) || value['kind'] !== `${resource.kind}List` || !isRecord(value['metadata']))
    throw new Unreachable(`the answer is no ${resource.kind}List`)
  const { resourceVersion, continue: token } = value['metadata']
  const listed: unknown = value['items'] ?? []
  if (!Array.isArray(listed) || typeof resourceVersion !== 'string' || resourceVersion === '')
    throw new Unreachable(`the ${resource.kind}List is not whole`)
  const items = listed.map((item: unknown) => {
    const object = objectFrom<T>(item)
    if (object === undefined) throw new Unreachable(`the ${resource.kind}List is not whole`)
    // Lists of built-in kinds leave these out of their items.
    object.apiVersion ??= apiVersionOf(resource)
    object.kind ??= resource.kind
    return object
  })
  return {
    items,
    resourceVersion,
    continueToken: typeof token === 'string' && token !== '' ? token : undefined,
  }
}

export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`
}

/** Key of an object in a follow: `namespace/name`, or the name alone. */
export function keyOf(object: KubeObject): string {
  const { namespace, name } = object.metadata
  return namespace === undefined ? name : `${namespace}/${name}`
}

/**
 * Orders two resourceVersions of one resource: below, at, or above 0; undefined where one isn't a
 * number. As text, because they may pass what a double holds.
 */
export function compareVersions(
  one: string | undefined,
  other: string | undefined,
): number | undefined {
  if (one === undefined || other === undefined) return undefined
  if (!/^\d+$/.test(one) || !/^\d+$/.test(other)) return undefined
  if (one.length !== other.length) return one.length - other.length
  return one < other ? -1 : one > other ? 1 : 0
}
