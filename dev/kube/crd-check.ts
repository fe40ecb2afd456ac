import { compileRule } from './cel.ts'
import { servedVersion } from './definition.ts'
import type { JsonObject } from './json.ts'
import { isObject, listAt, metadataOf, objectAt, textAt } from './json.ts'
import type { Cause } from './refusal.ts'
import { cause } from './refusal.ts'

/** Everything for which a CustomResourceDefinition is refused. */
export function crdProblems(crd: JsonObject): Cause[] {
  const spec = objectAt(crd, 'spec')
  if (spec === undefined) return [cause.required('spec')]
  const causes: Cause[] = []
  const group = textAt(spec, 'group') ?? ''
  const names = objectAt(spec, 'names') ?? {}
  const plural = textAt(names, 'plural') ?? ''
  const scope = textAt(spec, 'scope') ?? ''
  const name = textAt(metadataOf(crd), 'name') ?? ''
  if (group === '') causes.push(cause.required('spec.group'))
  if (plural === '') causes.push(cause.required('spec.names.plural'))
  if (textAt(names, 'kind') === undefined) causes.push(cause.required('spec.names.kind'))
  if (scope !== 'Namespaced' && scope !== 'Cluster') {
    causes.push(cause.unsupported('spec.scope', scope, ['Cluster', 'Namespaced']))
  }
  if (name !== `${plural}.${group}`) {
    const why = `must be spec.names.plural+"."+spec.group`
    causes.push(cause.invalid('metadata.name', name, why))
  }
  const version = servedVersion(crd)
  const stored = listAt(spec, 'versions').filter((one) => isObject(one) && one['storage'] === true)
  if (stored.length !== 1 || version === undefined) {
    const why = 'exactly one version must be stored, and that one served'
    causes.push(cause.invalid('spec.versions', stored.length, why))
    return causes
  }
  const schema = objectAt(objectAt(version, 'schema'), 'openAPIV3Schema')
  // A schema that is the only one, or the same for all versions, is looked at in its old place.
  const one = listAt(spec, 'versions').length === 1
  const path = one ? 'spec.validation.openAPIV3Schema' : 'spec.versions[0].schema.openAPIV3Schema'
  if (schema === undefined) causes.push(cause.required(path, 'schemas are required'))
  else checkSchema(schema, path, { root: true, unbounded: false }, causes)
  return causes
}

type Place = {
  root: boolean
  /** Below a list whose length nothing limits: rules run without a bound on their cost. */
  unbounded: boolean
}

function checkSchema(schema: JsonObject, path: string, place: Place, out: Cause[]): void {
  const type = textAt(schema, 'type')
  const free =
    schema['x-kubernetes-preserve-unknown-fields'] === true ||
    schema['x-kubernetes-int-or-string'] === true
  if (type === undefined && !free) {
    out.push(
      cause.required(`${path}.type`, 'Required value: must not be empty for specified fields'),
    )
  }
  if (place.root && type !== 'object') {
    out.push(cause.invalid(`${path}.type`, type ?? '', 'must be object at the root'))
  }
  const pattern = textAt(schema, 'pattern')
  if (pattern !== undefined && !compiles(pattern)) {
    out.push(cause.invalid(`${path}.pattern`, pattern, 'must be a valid regular expression'))
  }
  checkList(schema, path, out)
  const unbounded = place.unbounded || (type === 'array' && typeof schema['maxItems'] !== 'number')
  checkRules(schema, path, unbounded, out)

  const inner = { root: false, unbounded }
  for (const [name, field] of Object.entries(objectAt(schema, 'properties') ?? {})) {
    if (place.root && name === 'metadata') continue
    if (isObject(field)) checkSchema(field, `${path}.properties[${name}]`, inner, out)
  }
  const items = objectAt(schema, 'items')
  if (items !== undefined) checkSchema(items, `${path}.items`, inner, out)
  const values = objectAt(schema, 'additionalProperties')
  if (values !== undefined) checkSchema(values, `${path}.additionalProperties`, inner, out)
}

function compiles(pattern: string): boolean {
  try {
    new RegExp(pattern)
    return true
  } catch {
    return false
  }
}

function checkList(schema: JsonObject, path: string, out: Cause[]): void {
  if (schema['type'] === 'array' && objectAt(schema, 'items') === undefined) {
    out.push(cause.required(`${path}.items`, 'Required value: must be specified'))
  }
  const listType = textAt(schema, 'x-kubernetes-list-type')
  const items = objectAt(schema, 'items')
  const composite =
    textAt(items, 'type') === 'object' && items?.['x-kubernetes-map-type'] !== 'atomic'
  if (listType === 'set' && composite) {
    out.push(cause.invalid(`${path}.items`, 'object', 'items of a set must be scalar or atomic'))
  }
  if (listType !== 'map') return
  const keys = listAt(schema, 'x-kubernetes-list-map-keys')
  const required = new Set(listAt(items, 'required'))
  if (keys.length === 0) out.push(cause.required(`${path}.x-kubernetes-list-map-keys`))
  for (const key of keys) {
    const field = typeof key === 'string' ? objectAt(objectAt(items, 'properties'), key) : undefined
    if (field === undefined || (!required.has(key) && field['default'] === undefined)) {
      const why = 'a key must be a required field or have a default'
      out.push(cause.invalid(`${path}.x-kubernetes-list-map-keys`, key, why))
    }
  }
}

/** Functions whose cost grows with the text they read; in a list without maxItems it has no bound. */
const COSTLY = /\b(isIP|isCIDR|matches)\(/

function checkRules(schema: JsonObject, path: string, unbounded: boolean, out: Cause[]): void {
  listAt(schema, 'x-kubernetes-validations').forEach((rule, i) => {
    const where = `${path}.x-kubernetes-validations[${i}].rule`
    const text = isObject(rule) ? (textAt(rule, 'rule') ?? '') : ''
    const result = compileRule({ rule: text, message: undefined, reason: undefined })
    if ('problem' in result) {
      out.push(cause.invalid(where, text, `compilation failed: ${result.problem}`))
    } else if (unbounded && COSTLY.test(text)) {
      const why = 'estimated rule cost exceeds budget; set maxItems on the lists around it'
      out.push(cause.forbidden(where, why))
    }
  })
}
