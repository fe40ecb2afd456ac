import type { FieldSet } from './fieldset.ts'
import { EMPTY, isEmpty } from './fieldset.ts'
import type { Json, JsonObject } from './json.ts'
import { isObject } from './json.ts'
import type { Schema } from './schema.ts'
import { itemElement, known, sharingOf } from './typed.ts'

/** The live value with an applied one laid over it, by the schema's ways of sharing. */
export function merged(live: Json | undefined, applied: Json, schema: Schema | undefined): Json {
  const sharing = sharingOf(applied, schema)
  if (live === undefined || sharing === 'leaf' || sharing !== sharingOf(live, schema)) {
    return applied
  }
  if (isObject(live) && isObject(applied)) {
    const out: JsonObject = { ...live }
    for (const [name, value] of Object.entries(applied)) {
      out[name] = merged(live[name], value, known(schema, name))
    }
    return out
  }
  if (Array.isArray(live) && Array.isArray(applied)) return mergedList(live, applied, schema)
  return applied
}

/** The applied order rules; items that only the live list has stay before what followed them. */
function mergedList(live: Json[], applied: Json[], schema: Schema | undefined): Json[] {
  const was = new Map(live.map((item) => [itemElement(item, schema), item]))
  const given = new Set(applied.map((item) => itemElement(item, schema)))
  const emitted = new Set<string>()
  const out: Json[] = []
  let next = 0
  const emitOwn = () => {
    for (; next < live.length; next++) {
      const item = live[next]
      if (item === undefined) return
      const key = itemElement(item, schema)
      if (!given.has(key)) out.push(item)
      else if (!emitted.has(key)) return
    }
  }
  for (const item of applied) {
    emitOwn()
    const key = itemElement(item, schema)
    emitted.add(key)
    out.push(merged(was.get(key), item, schema?.items))
  }
  emitOwn()
  return out
}

/** What names a list-map's item stays as long as the item does. */
const keysOf = (item: JsonObject, schema: Schema | undefined): JsonObject =>
  Object.fromEntries(
    Object.entries(item).filter(([name]) => schema?.mapKeys.includes(name) ?? false),
  )

/**
 * Takes out of `value` what the manager owned (`last`) and nobody owns any more; `owned` is the
 * union of all sets that hold now.
 */
export function withdrawn(
  value: Json,
  last: FieldSet,
  owned: FieldSet,
  schema: Schema | undefined,
): Json {
  const sharing = sharingOf(value, schema)
  if (sharing === 'leaf' || last.kids.size === 0) return value
  if (isObject(value)) {
    const out: JsonObject = { ...value }
    for (const [key, mine] of last.kids) {
      const name = key.slice(2)
      const inner = out[name]
      if (inner === undefined) continue
      const still = owned.kids.get(key) ?? EMPTY
      if (isEmpty(still)) delete out[name]
      else out[name] = withdrawn(inner, mine, still, known(schema, name))
    }
    return out
  }
  if (!Array.isArray(value)) return value
  return value.flatMap((item) => {
    const key = itemElement(item, schema)
    const mine = last.kids.get(key)
    if (mine === undefined) return [item]
    const still = owned.kids.get(key) ?? EMPTY
    if (isEmpty(still) && mine.self) return []
    const rest = withdrawn(item, mine, still, schema?.items)
    return [isObject(rest) && isObject(item) ? { ...keysOf(item, schema), ...rest } : rest]
  })
}
