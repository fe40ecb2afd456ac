import { randomUUID } from 'node:crypto'
import type { Definition } from './definition.ts'
import { apiVersionOf } from './definition.ts'
import { EMPTY, isEmpty } from './fieldset.ts'
import type { Json, JsonObject } from './json.ts'
import { equal, isObject, metadataOf, textAt, without } from './json.ts'
import type { Manager, Operation } from './managers.ts'
import {
  conflicts,
  disowned,
  ownable,
  ownedByAny,
  readManagers,
  sameManager,
  sameManagers,
  updatedSet,
  writeManagers,
} from './managers.ts'
import { merged, withdrawn } from './merge.ts'
import { validateMetadata } from './metadata.ts'
import { namespaceLabelled } from './namespace-label.ts'
import { conflict, invalid, Refusal, untypable } from './refusal.ts'
import { shapedObject } from './shape.ts'
import { compare, fieldSetOf, typingProblem } from './typed.ts'
import { validate } from './validate.ts'

/** Who writes, when, and to which part of the object. */
export type Writer = {
  manager: string
  subresource: '' | 'status'
  now: Date
}

/** What a write comes to: the object to store, whether it differs from the live one, and warnings. */
export type Written = {
  object: JsonObject
  changed: boolean
  unknown: string[]
  /** An apply gave up the last field of metadata that anybody owned. */
  lostMetadata?: boolean
}

/** Times are kept to the second. */
export const timeText = (now: Date): string => `${now.toISOString().slice(0, 19)}Z`

/** What the server itself keeps in metadata; a writer's values for it are ignored. */
const KEPT_BY_SERVER = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
  'namespace',
  'name',
  'resourceVersion',
]

/** A new object by POST, or by an apply or update that found none. */
export function newObject(
  definition: Definition,
  proposed: JsonObject,
  writer: Writer,
): Written | Refusal {
  const unknown: string[] = []
  const started = begun(definition, named(definition, proposed), writer)
  const object = shapedObject(started, definition.schema, unknown)
  const base = emptyOf(object)
  const managers = afterUpdate(definition, base, object, [], writer)
  return checked(definition, undefined, withManagers(object, managers), unknown)
}

/** An existing object with what PUT or a patch makes of it. */
export function updatedObject(
  definition: Definition,
  live: JsonObject,
  proposed: JsonObject,
  writer: Writer,
): Written | Refusal {
  const unknown: string[] = []
  const kept = reached(definition, live, named(definition, proposed), writer.subresource)
  const object = shapedObject(kept, definition.schema, unknown)
  const managers = afterUpdate(definition, live, object, readManagers(live), writer)
  return settled(definition, live, object, managers, unknown)
}

/** Server-side apply: `applied` holds only the fields that its manager wants to own. */
export function appliedObject(
  definition: Definition,
  live: JsonObject | undefined,
  applied: JsonObject,
  writer: Writer,
  force: boolean,
): Written | Refusal {
  const { schema, hasStatus } = definition
  const problem = typingProblem(applied, schema)
  if (problem !== undefined) return untypable(toldName(definition, applied), problem)

  const base = live ?? emptyOf(applied)
  const managers = readManagers(base)
  const entry = entryOf(definition, writer, 'Apply')
  const last = managers.find((one) => sameManager(entry, one))
  const others = managers.filter((one) => one !== last)
  const set = ownable(fieldSetOf(applied, schema), writer.subresource, hasStatus)

  const laid = merged(base, reachable(definition, applied, writer.subresource), schema)
  const owned = ownedByAny([...others, { ...entry, set }])
  const pruned = last === undefined ? laid : withdrawn(laid, last.set, owned, schema)
  const next = isObject(pruned) ? pruned : base

  const changes = changesOf(definition, base, next, writer)
  const causes = force ? [] : conflicts(others, changes)
  if (causes.length > 0) {
    const told = causes.map((one) => `${one.message}: ${one.field}`).join(', ')
    const count =
      causes.length === 1
        ? 'Apply failed with 1 conflict'
        : `Apply failed with ${causes.length} conflicts`
    return conflict(
      { group: definition.group, plural: definition.plural, kind: definition.kind },
      textAt(metadataOf(applied), 'name') ?? '',
      `${count}: ${told}`,
      causes,
    )
  }
  const left = disowned(others, changes)
  const all = isEmpty(set) ? left : [...left, { ...entry, set }]
  if (live === undefined) {
    const object = shapedObject(begun(definition, next, writer), schema)
    return checked(definition, undefined, withManagers(object, all), [])
  }
  const kept = reached(definition, live, named(definition, next), writer.subresource)
  const written = settled(definition, live, shapedObject(kept, schema), all, [])
  return written instanceof Refusal
    ? written
    : { ...written, lostMetadata: next['metadata'] === undefined }
}

/** A namespace always has its name as a label. */
const named = (definition: Definition, object: JsonObject): JsonObject =>
  definition.builtin === 'namespace' ? namespaceLabelled(object) : object

const toldName = (definition: Definition, object: JsonObject): string => {
  const metadata = metadataOf(object)
  const namespace = textAt(metadata, 'namespace') ?? ''
  return `${namespace}/${textAt(metadata, 'name') ?? ''}; ${apiVersionOf(definition)}, Kind=${definition.kind}`
}

const emptyOf = (object: JsonObject): JsonObject => ({
  apiVersion: object['apiVersion'] ?? '',
  kind: object['kind'] ?? '',
  metadata: {},
})

const entryOf = (definition: Definition, writer: Writer, operation: Operation): Manager => ({
  name: writer.manager,
  operation,
  apiVersion: apiVersionOf(definition),
  subresource: writer.subresource,
  time: timeText(writer.now),
  set: EMPTY,
})

/** The parts of an applied object that its endpoint writes. */
function reachable(
  definition: Definition,
  applied: JsonObject,
  subresource: Writer['subresource'],
): JsonObject {
  if (!definition.hasStatus) return applied
  if (subresource === '') return without(applied, 'status')
  const status = applied['status']
  return status === undefined ? {} : { status }
}

/** A new object's first state: what the server fills in, and no status where that has its own way. */
function begun(definition: Definition, proposed: JsonObject, writer: Writer): JsonObject {
  const { name, namespace, generateName, labels, annotations, finalizers, ownerReferences } =
    metadataOf(proposed)
  const given = { name, generateName, namespace, labels, annotations, finalizers, ownerReferences }
  const metadata: JsonObject = {}
  for (const [key, value] of Object.entries(given)) {
    if (value !== undefined && value !== null) metadata[key] = value
  }
  // What ObjectMeta lacks stays in, to be told as unknown.
  for (const [key, value] of Object.entries(metadataOf(proposed))) {
    if (!METADATA_FIELDS.has(key)) metadata[key] = value
  }
  metadata['uid'] = randomUUID()
  metadata['creationTimestamp'] = timeText(writer.now)
  if (definition.builtin !== 'namespace') metadata['generation'] = 1
  const rest = without(proposed, 'metadata', ...(definition.hasStatus ? ['status'] : []))
  return {
    apiVersion: apiVersionOf(definition),
    kind: definition.kind,
    ...without(rest, 'apiVersion', 'kind'),
    metadata,
  }
}

const METADATA_FIELDS = new Set([
  ...KEPT_BY_SERVER,
  'selfLink',
  'managedFields',
  'generateName',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
])

/** The live object with the parts of `proposed` that this endpoint may write. */
function reached(
  definition: Definition,
  live: JsonObject,
  proposed: JsonObject,
  subresource: Writer['subresource'],
): JsonObject {
  const status = (from: JsonObject): JsonObject =>
    from['status'] === undefined ? {} : { status: from['status'] }
  if (subresource === 'status') return { ...without(live, 'status'), ...status(proposed) }
  const metadata = without(metadataOf(proposed), ...KEPT_BY_SERVER, 'managedFields', 'selfLink')
  for (const key of KEPT_BY_SERVER) {
    const value = metadataOf(live)[key]
    if (value !== undefined) metadata[key] = value
  }
  for (const [key, value] of Object.entries(metadata)) {
    const empty = Array.isArray(value) ? value.length === 0 : isObject(value) && isBare(value)
    if (value === null || empty) delete metadata[key]
  }
  const body = definition.hasStatus
    ? { ...without(proposed, 'status'), ...status(live) }
    : { ...proposed }
  return { ...body, apiVersion: apiVersionOf(definition), kind: definition.kind, metadata }
}

const isBare = (object: JsonObject): boolean => Object.keys(object).length === 0

function changesOf(definition: Definition, base: JsonObject, next: JsonObject, writer: Writer) {
  const found = compare(base, next, definition.schema)
  const mine = (set: typeof found.added) => ownable(set, writer.subresource, definition.hasStatus)
  return {
    added: mine(found.added),
    modified: mine(found.modified),
    removed: mine(found.removed),
  }
}

function afterUpdate(
  definition: Definition,
  base: JsonObject,
  object: JsonObject,
  managers: Manager[],
  writer: Writer,
): Manager[] {
  const changes = changesOf(definition, base, object, writer)
  const entry = entryOf(definition, writer, 'Update')
  const mine = managers.find((one) => sameManager(entry, one))
  const left = disowned(
    managers.filter((one) => one !== mine),
    changes,
  )
  const set = updatedSet(mine?.set ?? EMPTY, changes)
  return isEmpty(set) ? left : [...left, { ...entry, set }]
}

function withManagers(object: JsonObject, managers: Manager[]): JsonObject {
  const metadata = without(metadataOf(object), 'managedFields')
  if (managers.length > 0) metadata['managedFields'] = writeManagers(managers)
  return { ...object, metadata }
}

/** Nothing changed: the live object as it is. Else: the next generation where the spec moved. */
function settled(
  definition: Definition,
  live: JsonObject,
  object: JsonObject,
  managers: Manager[],
  unknown: string[],
): Written | Refusal {
  const bare = (of: JsonObject): Json => ({
    ...of,
    metadata: without(metadataOf(of), 'managedFields', 'generation'),
  })
  if (equal(bare(live), bare(object)) && sameManagers(readManagers(live), managers)) {
    return { object: live, changed: false, unknown }
  }
  const body = (of: JsonObject): Json =>
    without(of, 'metadata', ...(definition.hasStatus ? ['status'] : []))
  const generation = metadataOf(live)['generation']
  if (typeof generation === 'number' && !equal(body(live), body(object))) {
    metadataOf(object)['generation'] = generation + 1
  }
  return checked(definition, live, withManagers(object, managers), unknown)
}

function checked(
  definition: Definition,
  live: JsonObject | undefined,
  object: JsonObject,
  unknown: string[],
): Written | Refusal {
  const causes = validate(
    without(object, 'metadata'),
    live && without(live, 'metadata'),
    definition.schema,
    validateMetadata(object, live, definition.builtin === 'namespace'),
  )
  if (causes.length > 0) {
    return invalid(definition, textAt(metadataOf(object), 'name') ?? '', causes)
  }
  return { object, changed: true, unknown }
}
