import type { JsonObject } from './json.ts'
import { metadataOf, objectAt, textAt } from './json.ts'

/** A namespace with its name among its labels, where the server puts it back on every write. */
export function namespaceLabelled(object: JsonObject): JsonObject {
  const metadata = metadataOf(object)
  const labels = objectAt(metadata, 'labels') ?? {}
  const name = textAt(metadata, 'name') ?? ''
  return {
    ...object,
    metadata: { ...metadata, labels: { ...labels, 'kubernetes.io/metadata.name': name } },
  }
}
