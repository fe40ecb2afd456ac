import type { Json, JsonObject } from './json.ts'
import { isObject } from './json.ts'
import type { Schema } from './schema.ts'
import { fieldOf } from './schema.ts'

/**
 * Gives a value the schema's shape: a copy without the fields that the schema lacks, with its
 * defaults filled in. `dropped` collects the paths of what was left out.
 */
export function shaped(
  value: Json,
  schema: Schema | undefined,
  dropped: string[] = [],
  path = '',
): Json {
  if (schema === undefined) return value
  if (Array.isArray(value)) {
    const items = schema.items
    if (items === undefined) return value
    return value.map((item, i) => shaped(item, items, dropped, `${path}[${i}]`))
  }
  if (!isObject(value)) return value
  return shapedObject(value, schema, dropped, path)
}

/** `shaped` for what is known to be an object. */
export function shapedObject(
  object: JsonObject,
  schema: Schema,
  dropped: string[] = [],
  path = '',
): JsonObject {
  const out: JsonObject = {}
  for (const [name, value] of Object.entries(object)) {
    const field = fieldOf(schema, name)
    const where = path === '' ? name : `${path}.${name}`
    if (field === 'unknown') {
      dropped.push(where)
    } else if (value === null && field !== undefined && isTyped(field) && !field.nullable) {
      // A null that isn't allowed counts as absent.
    } else {
      out[name] = shaped(value, field, dropped, where)
    }
  }
  for (const [name, field] of schema.properties) {
    if (!Object.hasOwn(out, name) && field.default !== undefined) {
      out[name] = shaped(structuredClone(field.default), field)
    }
  }
  return out
}

const isTyped = (schema: Schema): boolean => schema.type !== undefined
