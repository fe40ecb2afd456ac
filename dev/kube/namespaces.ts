import type { Api } from './api.ts'
import type { Definition } from './definition.ts'
import { NAMESPACES } from './definition.ts'
import type { JsonObject } from './json.ts'
import { listAt, metadataOf, textAt } from './json.ts'
import { namespaceLabelled } from './namespace-label.ts'
import { forbidden, notFound, type Refusal } from './refusal.ts'
import { timeText } from './write.ts'

/** Namespaces every server has from its first start. */
export const FIRST_NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease']

/** A namespace's own first state: the server's finalizer, its name as label, phase Active. */
export const namespaceBegun = (object: JsonObject): JsonObject => ({
  ...namespaceLabelled(object),
  spec: { finalizers: ['kubernetes'] },
  status: { phase: 'Active' },
})

/** Why a new object can't be put into a namespace; undefined: it can. */
export function namespaceRefusal(
  api: Api,
  definition: Definition,
  namespace: string,
  name: string,
): Refusal | undefined {
  const found = api.table(NAMESPACES).current.get(namespace)
  if (found === undefined) return notFound(NAMESPACES, namespace)
  if (textAt(metadataOf(found.object), 'deletionTimestamp') === undefined) return undefined
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`
  return forbidden(definition, name, why, [
    {
      reason: 'NamespaceTerminating',
      message: `namespace ${namespace} is being terminated`,
      field: 'metadata.namespace',
    },
  ])
}

/** Marks an object as being deleted; its generation moves, as with any change of what is wanted. */
export function markedDeleted(object: JsonObject, now: Date): JsonObject {
  const metadata = { ...metadataOf(object) }
  metadata['deletionTimestamp'] = timeText(now)
  const generation = metadata['generation']
  // Namespaces have neither.
  if (typeof generation === 'number') {
    metadata['generation'] = generation + 1
    metadata['deletionGracePeriodSeconds'] = 0
  }
  return { ...object, metadata }
}

export const isDeleting = (object: JsonObject): boolean =>
  textAt(metadataOf(object), 'deletionTimestamp') !== undefined

export const hasFinalizers = (object: JsonObject): boolean =>
  listAt(metadataOf(object), 'finalizers').length > 0

/** Empties a namespace that is being deleted, and removes it once nothing is left in it. */
export function drainNamespace(api: Api, name: string): void {
  const prefix = `${name}/`
  let left = 0
  for (const definition of [...api.definitions.values()]) {
    if (!definition.namespaced) continue
    const table = api.table(definition)
    for (const version of [...table.current.values()]) {
      if (!version.key.startsWith(prefix)) continue
      if (!hasFinalizers(version.object)) {
        table.remove(version)
        continue
      }
      left += 1
      if (!isDeleting(version.object)) table.put(markedDeleted(version.object, api.now()))
    }
  }
  const table = api.table(NAMESPACES)
  const namespace = table.current.get(name)
  if (left === 0 && namespace !== undefined && !hasFinalizers(namespace.object)) {
    table.remove(namespace)
  }
}

/** Takes up the draining of a namespace again, after one of its objects is gone. */
export function continueDraining(api: Api, name: string): void {
  const namespace = api.table(NAMESPACES).current.get(name)
  if (namespace !== undefined && isDeleting(namespace.object)) drainNamespace(api, name)
}
