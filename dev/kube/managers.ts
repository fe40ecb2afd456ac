import type { FieldSet } from './fieldset.ts'
import {
  decode,
  difference,
  EMPTY,
  encode,
  intersection,
  isEmpty,
  paths,
  sameSet,
  union,
  withoutFields,
} from './fieldset.ts'
import type { JsonObject } from './json.ts'
import { isObject, listAt, metadataOf, objectAt, textAt } from './json.ts'
import type { Cause } from './refusal.ts'
import type { Differences } from './typed.ts'

export type Operation = 'Apply' | 'Update'

/** One entry of managedFields. */
export type Manager = {
  name: string
  operation: Operation
  apiVersion: string
  subresource: string
  time: string
  set: FieldSet
}

/** Metadata that belongs to the server and so to no manager. */
const SERVERS_OWN = [
  'name',
  'generateName',
  'namespace',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'uid',
  'generation',
  'managedFields',
  'resourceVersion',
]

/** `set` without what managers can't own, and without the parts of the object the write can't reach. */
export function ownable(set: FieldSet, subresource: string, hasStatus: boolean): FieldSet {
  const unreachable = subresource === 'status' ? ['metadata', 'spec'] : hasStatus ? ['status'] : []
  const rest = withoutFields(set, 'apiVersion', 'kind', ...unreachable)
  const metadata = rest.kids.get('f:metadata')
  if (metadata === undefined) return rest
  const kept = withoutFields(metadata, ...SERVERS_OWN)
  const kids = new Map(rest.kids)
  if (kept.kids.size === 0) kids.delete('f:metadata')
  else kids.set('f:metadata', { self: false, kids: kept.kids })
  return { self: false, kids }
}

/** Reads an object's managedFields. */
export function readManagers(object: JsonObject): Manager[] {
  return listAt(metadataOf(object), 'managedFields')
    .filter(isObject)
    .map((entry) => ({
      name: textAt(entry, 'manager') ?? '',
      operation: textAt(entry, 'operation') === 'Apply' ? 'Apply' : 'Update',
      apiVersion: textAt(entry, 'apiVersion') ?? '',
      subresource: textAt(entry, 'subresource') ?? '',
      time: textAt(entry, 'time') ?? '',
      set: decode(objectAt(entry, 'fieldsV1')),
    }))
}

/** managedFields as they are written. */
export function writeManagers(managers: Manager[]): JsonObject[] {
  const rank = (one: Manager) => [one.operation, one.time, one.name, one.subresource].join('\u0000')
  return [...managers]
    .sort((a, b) => (rank(a) < rank(b) ? -1 : 1))
    .map((one) => ({
      manager: one.name,
      operation: one.operation,
      apiVersion: one.apiVersion,
      time: one.time,
      fieldsType: 'FieldsV1',
      fieldsV1: encode(one.set),
      ...(one.subresource === '' ? {} : { subresource: one.subresource }),
    }))
}

export const sameManager = (a: Omit<Manager, 'set' | 'time'>, b: Manager): boolean =>
  a.name === b.name && a.operation === b.operation && a.subresource === b.subresource

/** Equal but for their times. */
export const sameManagers = (a: Manager[], b: Manager[]): boolean =>
  a.length === b.length &&
  a.every((one) => b.some((other) => sameManager(one, other) && sameSet(one.set, other.set)))

/** The causes of a conflict: every field of other managers that a write would change. */
export function conflicts(others: Manager[], changes: Differences): Cause[] {
  const changed = union(changes.added, changes.modified)
  return others.flatMap((other) =>
    paths(intersection(other.set, changed)).map((field) => ({
      reason: 'FieldManagerConflict',
      message: `conflict with "${other.name}"${other.subresource === '' ? '' : ` with subresource "${other.subresource}"`} using ${other.apiVersion}`,
      field,
    })),
  )
}

/** Other managers after a write: what it changed or removed is theirs no longer. */
export function disowned(others: Manager[], changes: Differences): Manager[] {
  const lost = union(union(changes.added, changes.modified), changes.removed)
  return others
    .map((other) => {
      const set = difference(other.set, lost)
      return sameSet(set, other.set) ? other : { ...other, set }
    })
    .filter((other) => !isEmpty(other.set))
}

/** The set of a manager that wrote without apply: what it had, and what it changed. */
export const updatedSet = (set: FieldSet, changes: Differences): FieldSet =>
  union(difference(set, changes.removed), union(changes.added, changes.modified))

/** What all of them own together. */
export const ownedByAny = (managers: Manager[]): FieldSet =>
  managers.reduce((all, one) => union(all, one.set), EMPTY)
