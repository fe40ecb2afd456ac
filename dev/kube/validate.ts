import type { CompiledRule } from './cel.ts'
import { celValue, rulesOf } from './cel.ts'
import type { Json, JsonObject } from './json.ts'
import { equal, isObject } from './json.ts'
import type { Cause } from './refusal.ts'
import { cause } from './refusal.ts'
import type { Schema } from './schema.ts'
import { validateScalar } from './validate-scalar.ts'

/** Where these are found, rules in CEL aren't run: they could trip over the value. */
const BLOCKING = new Set([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
])

/**
 * Everything that is wrong with a value by its schema, after `found`, what is known to be wrong with
 * it otherwise. Parts that are equal in `old` pass as they are: an update isn't refused for what it
 * doesn't touch.
 */
export function validate(
  value: Json,
  old: Json | undefined,
  schema: Schema,
  found: Cause[] = [],
): Cause[] {
  const causes = [...found]
  walk(value, old, schema, '', causes)
  if (!schema.hasRules) return causes
  if (causes.some((one) => BLOCKING.has(one.reason))) {
    causes.push(
      cause.invalid('<nil>', null, 'validation rules were not checked: the object is invalid'),
    )
    return causes
  }
  applyRules(value, old, schema, '', causes)
  return causes
}

const at = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`)

function walk(value: Json, old: Json | undefined, schema: Schema, path: string, out: Cause[]) {
  if (old !== undefined && equal(value, old)) return
  if (value === null) {
    if (!schema.nullable && schema.type !== undefined) out.push(cause.type(path, null, schema.type))
    return
  }
  validateScalar(value, schema, path, out)
  if (Array.isArray(value) && schema.type === 'array') {
    walkList(value, Array.isArray(old) ? old : undefined, schema, path, out)
  } else if (isObject(value) && schema.type === 'object') {
    walkObject(value, isObject(old) ? old : undefined, schema, path, out)
  }
}

function walkObject(
  object: JsonObject,
  old: JsonObject | undefined,
  schema: Schema,
  path: string,
  out: Cause[],
) {
  for (const name of schema.required) {
    if (!Object.hasOwn(object, name)) out.push(cause.required(at(path, name)))
  }
  const inner = schema.atomic ? undefined : old
  for (const [name, value] of Object.entries(object)) {
    const field = schema.properties.get(name) ?? schema.values
    if (field !== undefined) walk(value, inner?.[name], field, at(path, name), out)
  }
}

function walkList(
  list: Json[],
  old: Json[] | undefined,
  schema: Schema,
  path: string,
  out: Cause[],
) {
  if (schema.listType !== 'atomic') {
    const seen = new Set<string>()
    list.forEach((item, i) => {
      const key = itemKey(item, schema)
      if (seen.has(key)) out.push(cause.duplicate(`${path}[${i}]`, duplicateShown(item, schema)))
      seen.add(key)
    })
  }
  const items = schema.items
  if (items === undefined) return
  list.forEach((item, i) => {
    walk(item, counterpart(item, old, schema), items, `${path}[${i}]`, out)
  })
}

function duplicateShown(item: Json, schema: Schema): Json {
  if (schema.listType !== 'map' || !isObject(item)) return item
  return Object.fromEntries(schema.mapKeys.map((key) => [key, item[key] ?? null]))
}

/** What tells one item of a set or list-map from another. */
function itemKey(item: Json, schema: Schema): string {
  if (schema.listType !== 'map' || !isObject(item)) return JSON.stringify(item)
  return JSON.stringify(schema.mapKeys.map((key) => item[key] ?? null))
}

/** The old item that a list-map's item follows; other lists have none. */
function counterpart(item: Json, old: Json[] | undefined, schema: Schema): Json | undefined {
  if (old === undefined || schema.listType !== 'map') return undefined
  const key = itemKey(item, schema)
  return old.find((candidate) => itemKey(candidate, schema) === key)
}

function applyRules(
  value: Json,
  old: Json | undefined,
  schema: Schema,
  path: string,
  out: Cause[],
) {
  if (!schema.hasRules || value === null) return
  const rules = rulesOf(schema)
  if (rules.length > 0) runRules(rules, value, old, schema, path, out)
  if (Array.isArray(value)) {
    const items = schema.items
    if (items === undefined) return
    const before = Array.isArray(old) ? old : undefined
    value.forEach((item, i) => {
      applyRules(item, counterpart(item, before, schema), items, `${path}[${i}]`, out)
    })
  } else if (isObject(value)) {
    const before = isObject(old) && !schema.atomic ? old : undefined
    for (const [name, inner] of Object.entries(value)) {
      const field = schema.properties.get(name) ?? schema.values
      if (field !== undefined) applyRules(inner, before?.[name], field, at(path, name), out)
    }
  }
}

function runRules(
  rules: CompiledRule[],
  value: Json,
  old: Json | undefined,
  schema: Schema,
  path: string,
  out: Cause[],
) {
  if (old !== undefined && equal(value, old)) return
  const self = celValue(value, schema)
  const oldSelf = old === undefined ? undefined : celValue(old, schema)
  for (const rule of rules) {
    if (rule.transition && old === undefined) continue
    const result = rule.run(self, oldSelf)
    if (result === true) continue
    const why = result === false ? rule.message : `rule failed to evaluate: ${result}`
    const kind = typeof value === 'string' ? value : Array.isArray(value) ? 'array' : 'object'
    out.push({ ...cause.invalid(path === '' ? '<nil>' : path, kind, why), reason: rule.reason })
  }
}
