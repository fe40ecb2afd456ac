import type { Json, JsonObject } from './json.ts'
import { isObject } from './json.ts'

/**
 * A set of field paths as a tree: which fields of an object a manager owns. Path elements are
 * spelled as in managedFields: `f:name` a field, `v:json` an item of a set, `k:{json}` an item of a
 * list-map. Sets are never changed once made.
 */
export type FieldSet = {
  /** The path that leads here is in the set itself. */
  readonly self: boolean
  readonly kids: ReadonlyMap<string, FieldSet>
}

export const EMPTY: FieldSet = { self: false, kids: new Map() }
export const LEAF: FieldSet = { self: true, kids: new Map() }

export const isEmpty = (set: FieldSet): boolean => !set.self && set.kids.size === 0

function made(self: boolean, kids: Map<string, FieldSet>): FieldSet {
  for (const [key, kid] of kids) if (isEmpty(kid)) kids.delete(key)
  return !self && kids.size === 0 ? EMPTY : { self, kids }
}

/** A set with the given children; empty ones are left out. */
export const withKids = (kids: Map<string, FieldSet>, self = false): FieldSet => made(self, kids)

export function union(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(a)) return b
  if (isEmpty(b)) return a
  const kids = new Map(a.kids)
  for (const [key, kid] of b.kids) kids.set(key, union(kids.get(key) ?? EMPTY, kid))
  return made(a.self || b.self, kids)
}

/** The paths of `a` that aren't paths of `b`; a path in `b` takes nothing below it away. */
export function difference(a: FieldSet, b: FieldSet): FieldSet {
  if (isEmpty(b)) return a
  const kids = new Map(a.kids)
  for (const [key, kid] of b.kids) {
    const mine = kids.get(key)
    if (mine !== undefined) kids.set(key, difference(mine, kid))
  }
  return made(a.self && !b.self, kids)
}

export function intersection(a: FieldSet, b: FieldSet): FieldSet {
  const kids = new Map<string, FieldSet>()
  for (const [key, kid] of a.kids) {
    const other = b.kids.get(key)
    if (other !== undefined) kids.set(key, intersection(kid, other))
  }
  return made(a.self && b.self, kids)
}

/** `set` without the fields named at the top, whatever is below them. */
export function withoutFields(set: FieldSet, ...names: string[]): FieldSet {
  const kids = new Map(set.kids)
  for (const name of names) kids.delete(`f:${name}`)
  return made(set.self, kids)
}

export const sameSet = (a: FieldSet, b: FieldSet): boolean =>
  a.self === b.self &&
  a.kids.size === b.kids.size &&
  [...a.kids].every(([key, kid]) => {
    const other = b.kids.get(key)
    return other !== undefined && sameSet(kid, other)
  })

/** As `fieldsV1` in managedFields. */
export function encode(set: FieldSet): JsonObject {
  const out: JsonObject = {}
  for (const key of [...set.kids.keys()].sort()) {
    const kid = set.kids.get(key) ?? EMPTY
    const inner = encode(kid)
    out[key] = kid.self && kid.kids.size > 0 ? { '.': {}, ...inner } : inner
  }
  return out
}

/** Reads `fieldsV1`. */
export function decode(fields: Json | undefined): FieldSet {
  if (!isObject(fields)) return EMPTY
  const kids = new Map<string, FieldSet>()
  for (const [key, inner] of Object.entries(fields)) {
    if (key === '.') continue
    const below = decode(inner)
    const leaf = !isObject(inner) || Object.keys(inner).length === 0 || Object.hasOwn(inner, '.')
    kids.set(key, { self: leaf, kids: below.kids })
  }
  return { self: false, kids }
}

/** All paths of a set, as messages show them: `.spec.conditions[type="Ready"].status`. */
export function paths(set: FieldSet, prefix = ''): string[] {
  const out = set.self ? [prefix] : []
  for (const [key, kid] of set.kids) out.push(...paths(kid, prefix + shownElement(key)))
  return out
}

function shownElement(key: string): string {
  const text = key.slice(2)
  if (key.startsWith('f:')) return `.${text}`
  if (key.startsWith('v:')) return `[=${text}]`
  const keys: unknown = JSON.parse(text)
  const pairs = isObject(keys) ? Object.entries(keys) : []
  return `[${pairs.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`
}
