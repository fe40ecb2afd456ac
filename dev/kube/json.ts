/** JSON values, and the questions asked of them everywhere. */

export type Json = null | boolean | number | string | Json[] | JsonObject
export type JsonObject = { [key: string]: Json }

/** Whether a value of any origin is a JSON object (not null, not a list). */
export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The object under `key`; undefined where there is something else or nothing. */
export function objectAt(object: JsonObject | undefined, key: string): JsonObject | undefined {
  const value = object?.[key]
  return isObject(value) ? value : undefined
}

/** The string under `key`; undefined where there is something else or nothing. */
export function textAt(object: JsonObject | undefined, key: string): string | undefined {
  const value = object?.[key]
  return typeof value === 'string' ? value : undefined
}

/** The list under `key`; empty where there is something else or nothing. */
export function listAt(object: JsonObject | undefined, key: string): Json[] {
  const value = object?.[key]
  return Array.isArray(value) ? value : []
}

/** The object's metadata; an empty one that isn't tied to it where it has none. */
export const metadataOf = (object: JsonObject): JsonObject => objectAt(object, 'metadata') ?? {}

/** Deep equality; the order of an object's keys doesn't count, that of lists does. */
export function equal(a: Json | undefined, b: Json | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((item, i) => equal(item, b[i]))
  }
  if (!isObject(a) || !isObject(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]))
  )
}

/** `object` without `keys` (a shallow copy). */
export function without(object: JsonObject, ...keys: string[]): JsonObject {
  const rest = { ...object }
  for (const key of keys) delete rest[key]
  return rest
}
