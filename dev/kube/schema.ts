import type { Json, JsonObject } from './json.ts'
import { isObject, listAt, objectAt, textAt } from './json.ts'

export type SchemaType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean'

/** A validation rule in CEL as the schema has it. */
export type SchemaRule = { rule: string; message: string | undefined; reason: string | undefined }

/**
 * A structural OpenAPI schema in the form the server works with. `undefined` in place of a schema
 * means: anything goes (a field under x-kubernetes-preserve-unknown-fields).
 */
export type Schema = {
  type: SchemaType | undefined
  nullable: boolean
  /** int-or-string: both types pass. */
  intOrString: boolean
  properties: ReadonlyMap<string, Schema>
  /** What a map's values look like; undefined: this is no map. */
  values: Schema | undefined
  items: Schema | undefined
  required: readonly string[]
  /** Unknown fields stay. */
  preserve: boolean
  default: Json | undefined
  listType: 'atomic' | 'set' | 'map'
  mapKeys: readonly string[]
  /** The whole object belongs to one field manager. */
  atomic: boolean
  enum: readonly Json[] | undefined
  bounds: Bounds
  pattern: RegExp | undefined
  format: string | undefined
  allOf: readonly Schema[]
  anyOf: readonly Schema[]
  oneOf: readonly Schema[]
  not: Schema | undefined
  rules: readonly SchemaRule[]
  /** A rule stands on this schema or below it. */
  hasRules: boolean
}

type Bounds = {
  minimum?: number
  maximum?: number
  exclusiveMinimum?: boolean
  exclusiveMaximum?: boolean
  multipleOf?: number
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  minProperties?: number
  maxProperties?: number
}

const TYPES: readonly string[] = ['object', 'array', 'string', 'integer', 'number', 'boolean']
const isType = (text: string): text is SchemaType => TYPES.includes(text)

const LENGTHS = [
  'minimum',
  'maximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'minProperties',
  'maxProperties',
] as const

function boundsOf(source: JsonObject): Bounds {
  const bounds: Bounds = {}
  for (const key of LENGTHS) {
    const value = source[key]
    if (typeof value === 'number') bounds[key] = value
  }
  if (source['exclusiveMinimum'] === true) bounds.exclusiveMinimum = true
  if (source['exclusiveMaximum'] === true) bounds.exclusiveMaximum = true
  return bounds
}

const schemas = (source: JsonObject, key: string): Schema[] =>
  listAt(source, key).filter(isObject).map(parseSchema)

/** Reads a schema as a CRD has it. What `crd.ts` refuses about schemas is checked there. */
export function parseSchema(source: JsonObject): Schema {
  const type = textAt(source, 'type')
  const properties = new Map<string, Schema>()
  for (const [name, value] of Object.entries(objectAt(source, 'properties') ?? {})) {
    if (isObject(value)) properties.set(name, parseSchema(value))
  }
  const additional = source['additionalProperties']
  const values = isObject(additional)
    ? parseSchema(additional)
    : additional === true
      ? ANYTHING
      : undefined
  const itemsSource = objectAt(source, 'items')
  const items = itemsSource === undefined ? undefined : parseSchema(itemsSource)
  const rules = listAt(source, 'x-kubernetes-validations')
    .filter(isObject)
    .map((rule) => ({
      rule: textAt(rule, 'rule') ?? '',
      message: textAt(rule, 'message'),
      reason: textAt(rule, 'reason'),
    }))
  const listType = textAt(source, 'x-kubernetes-list-type')
  const pattern = textAt(source, 'pattern')
  const not = objectAt(source, 'not')
  const below = [...properties.values(), values, items]
  return {
    type: type !== undefined && isType(type) ? type : undefined,
    nullable: source['nullable'] === true,
    intOrString: source['x-kubernetes-int-or-string'] === true,
    properties,
    values,
    items,
    required: listAt(source, 'required').filter((name) => typeof name === 'string'),
    preserve: source['x-kubernetes-preserve-unknown-fields'] === true,
    default: source['default'],
    listType: listType === 'set' || listType === 'map' ? listType : 'atomic',
    mapKeys: listAt(source, 'x-kubernetes-list-map-keys').filter((key) => typeof key === 'string'),
    atomic: source['x-kubernetes-map-type'] === 'atomic',
    enum: Array.isArray(source['enum']) ? source['enum'] : undefined,
    bounds: boundsOf(source),
    pattern: pattern === undefined ? undefined : new RegExp(pattern),
    format: textAt(source, 'format'),
    allOf: schemas(source, 'allOf'),
    anyOf: schemas(source, 'anyOf'),
    oneOf: schemas(source, 'oneOf'),
    not: not === undefined ? undefined : parseSchema(not),
    rules,
    hasRules: rules.length > 0 || below.some((schema) => schema?.hasRules ?? false),
  }
}

/** The schema of a field under `schema`; undefined: anything. 'unknown': the schema lacks it. */
export function fieldOf(schema: Schema | undefined, name: string): Schema | undefined | 'unknown' {
  if (schema === undefined) return undefined
  const known = schema.properties.get(name) ?? schema.values
  if (known !== undefined) return known === ANYTHING ? undefined : known
  return schema.preserve || (schema.type === undefined && !schema.intOrString)
    ? undefined
    : 'unknown'
}

const ANYTHING: Schema = {
  type: undefined,
  nullable: true,
  intOrString: false,
  properties: new Map(),
  values: undefined,
  items: undefined,
  required: [],
  preserve: true,
  default: undefined,
  listType: 'atomic',
  mapKeys: [],
  atomic: false,
  enum: undefined,
  bounds: {},
  pattern: undefined,
  format: undefined,
  allOf: [],
  anyOf: [],
  oneOf: [],
  not: undefined,
  rules: [],
  hasRules: false,
}
