import type { FieldSet } from './fieldset.ts'
import { EMPTY, LEAF, union, withKids } from './fieldset.ts'
import type { Json, JsonObject } from './json.ts'
import { equal, isObject } from './json.ts'
import type { Schema } from './schema.ts'
import { fieldOf } from './schema.ts'

/** How managers share a value: as one piece, field by field, or item by item. */
export type Sharing = 'leaf' | 'map' | 'set' | 'list-map'

export function sharingOf(value: Json | undefined, schema: Schema | undefined): Sharing {
  if (isObject(value)) return schema?.atomic ? 'leaf' : 'map'
  if (!Array.isArray(value) || schema === undefined || schema.listType === 'atomic') return 'leaf'
  return schema.listType === 'set' ? 'set' : 'list-map'
}

/** The known schema of a field; what the schema lacks is anything. */
export function known(schema: Schema | undefined, name: string): Schema | undefined {
  const field = fieldOf(schema, name)
  return field === 'unknown' ? undefined : field
}

/** The path element that names an item of a set or list-map. */
export function itemElement(item: Json, schema: Schema | undefined): string {
  if (schema?.listType !== 'map' || !isObject(item)) return `v:${JSON.stringify(item)}`
  const keys: JsonObject = {}
  for (const key of [...schema.mapKeys].sort()) {
    keys[key] = item[key] ?? schema.items?.properties.get(key)?.default ?? null
  }
  return `k:${JSON.stringify(keys)}`
}

/** The fields an applied object speaks of: what its manager owns afterwards. */
export function fieldSetOf(value: Json, schema: Schema | undefined): FieldSet {
  const kids = new Map<string, FieldSet>()
  switch (sharingOf(value, schema)) {
    case 'leaf':
      return LEAF
    case 'map':
      for (const [name, field] of Object.entries(isObject(value) ? value : {})) {
        const below = fieldSetOf(field, known(schema, name))
        const empty = isObject(field) && Object.keys(field).length === 0
        const isEntry = schema !== undefined && !schema.properties.has(name)
        kids.set(`f:${name}`, empty || isEntry ? union(below, LEAF) : below)
      }
      return withKids(kids)
    default:
      for (const item of Array.isArray(value) ? value : []) {
        const below = isObject(item) ? fieldSetOf(item, schema?.items) : EMPTY
        kids.set(itemElement(item, schema), union(below, LEAF))
      }
      return withKids(kids)
  }
}

export type Differences = {
  added: FieldSet
  modified: FieldSet
  removed: FieldSet
}

const NOTHING: Differences = { added: EMPTY, modified: EMPTY, removed: EMPTY }

/** Which paths differ between two states of a value. */
export function compare(
  old: Json | undefined,
  next: Json | undefined,
  schema: Schema | undefined,
): Differences {
  if (old === undefined && next === undefined) return NOTHING
  if (old === undefined) return { ...NOTHING, added: allPaths(next, schema) }
  if (next === undefined) return { ...NOTHING, removed: allPaths(old, schema) }
  if (equal(old, next)) return NOTHING
  const sharing = sharingOf(next, schema)
  if (sharing === 'leaf' || sharing !== sharingOf(old, schema)) {
    return { ...NOTHING, modified: LEAF }
  }
  const before = elements(old, schema)
  const after = elements(next, schema)
  const added = new Map<string, FieldSet>()
  const modified = new Map<string, FieldSet>()
  const removed = new Map<string, FieldSet>()
  for (const key of new Set([...before.keys(), ...after.keys()])) {
    const inner = sharing === 'map' ? known(schema, key.slice(2)) : schema?.items
    const found = compare(before.get(key), after.get(key), inner)
    added.set(key, found.added)
    modified.set(key, found.modified)
    removed.set(key, found.removed)
  }
  return { added: withKids(added), modified: withKids(modified), removed: withKids(removed) }
}

/** Every path of a value, containers included. */
function allPaths(value: Json | undefined, schema: Schema | undefined): FieldSet {
  const sharing = sharingOf(value, schema)
  if (value === undefined || sharing === 'leaf') return LEAF
  const kids = new Map<string, FieldSet>()
  for (const [key, inner] of elements(value, schema)) {
    kids.set(key, allPaths(inner, sharing === 'map' ? known(schema, key.slice(2)) : schema?.items))
  }
  return withKids(kids, true)
}

/** The parts of a shared value by their path element. */
function elements(value: Json, schema: Schema | undefined): Map<string, Json> {
  if (Array.isArray(value)) return new Map(value.map((item) => [itemElement(item, schema), item]))
  return new Map(Object.entries(isObject(value) ? value : {}).map(([k, v]) => [`f:${k}`, v]))
}

/**
 * What keeps an object from being applied by its schema: a field that the schema lacks, a value of
 * the wrong kind, the same item twice. Undefined: nothing.
 */
export function typingProblem(
  value: Json,
  schema: Schema | undefined,
  path = '',
): string | undefined {
  if (schema === undefined || value === null) return undefined
  if (schema.type === 'object' || (schema.type === undefined && isObject(value))) {
    if (!isObject(value)) return `${path}: expected map, got ${shownType(value)}`
    for (const [name, inner] of Object.entries(value)) {
      const field = fieldOf(schema, name)
      const where = `${path}.${name}`
      if (field === 'unknown') return `${where}: field not declared in schema`
      const problem = typingProblem(inner, field, where)
      if (problem !== undefined) return problem
    }
    return undefined
  }
  if (schema.type === 'array') return listProblem(value, schema, path)
  return scalarProblem(value, schema, path)
}

function listProblem(value: Json, schema: Schema, path: string): string | undefined {
  if (!Array.isArray(value)) return `${path}: expected list, got ${shownType(value)}`
  const seen = new Set<string>()
  for (const [i, item] of value.entries()) {
    const problem = typingProblem(item, schema.items, `${path}[${i}]`)
    if (problem !== undefined) return problem
    if (schema.listType === 'atomic') continue
    if (schema.listType === 'map') {
      const missing = schema.mapKeys.find(
        (key) =>
          !isObject(item) ||
          (item[key] === undefined && schema.items?.properties.get(key)?.default === undefined),
      )
      if (missing !== undefined) {
        return `${path}: element ${i}: associative list with keys has an element that omits key field "${missing}" (and doesn't have default value)`
      }
    }
    const key = itemElement(item, schema)
    if (seen.has(key)) return `${path}: duplicate entries for key [${key.slice(2)}]`
    seen.add(key)
  }
  return undefined
}

function scalarProblem(value: Json, schema: Schema, path: string): string | undefined {
  const got = typeof value
  if (schema.intOrString) {
    return got === 'string' || got === 'number'
      ? undefined
      : `${path}: expected numeric or string, got ${shownType(value)}`
  }
  if (schema.type === 'integer' || schema.type === 'number') {
    if (got !== 'number') {
      return `${path}: expected numeric (int or float), got ${shownType(value)}`
    }
  } else if ((schema.type === 'string' || schema.type === 'boolean') && got !== schema.type) {
    return `${path}: expected ${schema.type}, got ${shownType(value)}`
  }
  return undefined
}

const shownType = (value: Json): string =>
  Array.isArray(value) ? 'list' : isObject(value) ? 'map' : `${JSON.stringify(value)}`
