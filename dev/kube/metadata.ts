import type { JsonObject } from './json.ts'
import { isObject, listAt, metadataOf, objectAt, textAt } from './json.ts'
import type { Cause } from './refusal.ts'
import { cause } from './refusal.ts'

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const NAME_PART = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/

/** 256 KiB for all annotations together, keys and values. */
const ANNOTATIONS_LIMIT = 256 * 1024

const isSubdomain = (text: string): boolean => text.length <= 253 && SUBDOMAIN.test(text)
const isLabel = (text: string): boolean => text.length <= 63 && LABEL.test(text)

/** `name` or `prefix/name`, as keys of labels and annotations and as finalizers. */
export function isQualifiedName(text: string): boolean {
  const parts = text.split('/')
  const name = parts.at(-1) ?? ''
  if (parts.length > 2 || name.length > 63 || !NAME_PART.test(name)) return false
  return parts.length === 1 || isSubdomain(parts[0] ?? '')
}

export const isLabelValue = (text: string): boolean =>
  text === '' || (text.length <= 63 && NAME_PART.test(text))

/** What of an object's metadata isn't of the kind it should be, so that it can't even be read. */
export function metadataMisfit(object: JsonObject): string | undefined {
  const metadata = object['metadata']
  if (metadata === undefined || metadata === null) return undefined
  if (!isObject(metadata)) return 'metadata'
  const is = (value: unknown, type: 'string' | 'object') =>
    value === null || (type === 'object' ? isObject(value) : typeof value === type)
  for (const key of ['labels', 'annotations']) {
    const map = metadata[key] ?? {}
    if (!isObject(map)) return `metadata.${key}`
    if (!Object.values(map).every((value) => is(value, 'string'))) return `metadata.${key}`
  }
  const finalizers = metadata['finalizers'] ?? []
  if (!Array.isArray(finalizers) || !finalizers.every((one) => is(one, 'string'))) {
    return 'metadata.finalizers'
  }
  const owners = metadata['ownerReferences'] ?? []
  return Array.isArray(owners) && owners.every((one) => is(one, 'object'))
    ? undefined
    : 'metadata.ownerReferences'
}

/** Everything that is wrong with an object's metadata, whatever its kind. */
export function validateMetadata(
  object: JsonObject,
  old: JsonObject | undefined,
  namesAreLabels: boolean,
): Cause[] {
  const metadata = metadataOf(object)
  const causes: Cause[] = []
  const name = textAt(metadata, 'name') ?? ''
  if (old === undefined && !(namesAreLabels ? isLabel(name) : isSubdomain(name))) {
    const kind = namesAreLabels ? 'RFC 1123 label' : 'RFC 1123 subdomain'
    causes.push(
      name === ''
        ? cause.required('metadata.name', 'Required value: name or generateName is required')
        : cause.invalid('metadata.name', name, `not a lowercase ${kind}`),
    )
  }
  for (const [key, value] of Object.entries(objectAt(metadata, 'labels') ?? {})) {
    if (!isQualifiedName(key)) {
      causes.push(cause.invalid('metadata.labels', key, 'not a qualified name'))
    }
    const text = typeof value === 'string' ? value : ''
    if (text.length > 63) {
      causes.push(cause.invalid('metadata.labels', text, 'must be no more than 63 bytes'))
    } else if (!isLabelValue(text)) {
      causes.push(cause.invalid('metadata.labels', text, 'not a valid label value'))
    }
  }
  causes.push(...annotations(metadata), ...finalizers(metadata, old), ...owners(metadata))
  return causes
}

function annotations(metadata: JsonObject): Cause[] {
  const causes: Cause[] = []
  let size = 0
  for (const [key, value] of Object.entries(objectAt(metadata, 'annotations') ?? {})) {
    size += Buffer.byteLength(key) + (typeof value === 'string' ? Buffer.byteLength(value) : 0)
    if (!isQualifiedName(key.toLowerCase())) {
      causes.push(cause.invalid('metadata.annotations', key, 'not a qualified name'))
    }
  }
  if (size > ANNOTATIONS_LIMIT) {
    causes.push(cause.tooLong('metadata.annotations', ANNOTATIONS_LIMIT))
  }
  return causes
}

function owners(metadata: JsonObject): Cause[] {
  return listAt(metadata, 'ownerReferences')
    .filter(isObject)
    .flatMap((owner) =>
      ['apiVersion', 'kind', 'name', 'uid']
        .filter((key) => (textAt(owner, key) ?? '') === '')
        .map((key) => cause.invalid(`metadata.ownerReferences.${key}`, '', 'must not be empty')),
    )
}

function finalizers(metadata: JsonObject, old: JsonObject | undefined): Cause[] {
  const causes: Cause[] = []
  const names = listAt(metadata, 'finalizers').filter((name) => typeof name === 'string')
  for (const name of names) {
    if (!isQualifiedName(name)) {
      causes.push(cause.invalid('metadata.finalizers', name, 'not a qualified name'))
    }
  }
  const before = old === undefined ? {} : metadataOf(old)
  if (textAt(before, 'deletionTimestamp') !== undefined) {
    const known = new Set(listAt(before, 'finalizers'))
    const added = names.filter((name) => !known.has(name))
    if (added.length > 0) {
      const why = `no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`
      causes.push(cause.forbidden('metadata.finalizers', why))
    }
  }
  return causes
}
