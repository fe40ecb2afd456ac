import type { Json, JsonObject } from './json.ts'
import { isObject, listAt, metadataOf, objectAt, textAt } from './json.ts'
import { METADATA } from './metadata-schema.ts'
import type { Schema } from './schema.ts'
import { parseSchema } from './schema.ts'
import { shapedObject } from './shape.ts'

/** A kind of object as the server serves it. */
export type Definition = {
  /** `plural.group`, or the plural alone for the core group: names the table too. */
  id: string
  group: string
  version: string
  plural: string
  singular: string
  kind: string
  listKind: string
  shortNames: readonly string[]
  namespaced: boolean
  hasStatus: boolean
  schema: Schema
  /** The schema as it is published. */
  published: JsonObject
  /** Kinds the server has by itself do more than store objects. */
  builtin: 'namespace' | 'crd' | undefined
}

export const apiVersionOf = (definition: { group: string; version: string }): string =>
  definition.group === '' ? definition.version : `${definition.group}/${definition.version}`

/** The schema of whole objects: the kind's own, under the metadata that all share. */
function rootSchema(published: JsonObject): Schema {
  const own = parseSchema(published)
  const properties = new Map(own.properties)
  properties.set('apiVersion', parseSchema({ type: 'string' }))
  properties.set('kind', parseSchema({ type: 'string' }))
  properties.set('metadata', METADATA)
  return { ...own, type: 'object', properties }
}

/** Objects read by the schema of now: without what it lacks, with its defaults. */
export const readBy =
  (definition: Definition) =>
  (stored: JsonObject): JsonObject =>
    shapedObject(stored, definition.schema)

/** The one version of a CRD that is stored and served. */
export function servedVersion(crd: JsonObject): JsonObject | undefined {
  return listAt(objectAt(crd, 'spec'), 'versions')
    .filter(isObject)
    .find((version) => version['storage'] === true && version['served'] === true)
}

/** The definition that a (valid) CustomResourceDefinition describes. */
export function definitionOf(crd: JsonObject): Definition {
  const spec = objectAt(crd, 'spec') ?? {}
  const names = objectAt(spec, 'names') ?? {}
  const version = servedVersion(crd) ?? {}
  const published = objectAt(objectAt(version, 'schema'), 'openAPIV3Schema') ?? { type: 'object' }
  const kind = textAt(names, 'kind') ?? ''
  return {
    id: textAt(metadataOf(crd), 'name') ?? '',
    group: textAt(spec, 'group') ?? '',
    version: textAt(version, 'name') ?? '',
    plural: textAt(names, 'plural') ?? '',
    singular: textAt(names, 'singular') ?? kind.toLowerCase(),
    kind,
    listKind: textAt(names, 'listKind') ?? `${kind}List`,
    shortNames: listAt(names, 'shortNames').filter((name) => typeof name === 'string'),
    namespaced: textAt(spec, 'scope') === 'Namespaced',
    hasStatus: objectAt(objectAt(version, 'subresources'), 'status') !== undefined,
    schema: rootSchema(published),
    published,
    builtin: undefined,
  }
}

function builtin(
  names: { group: string; version: string; plural: string; kind: string; short: string[] },
  builtinKind: 'namespace' | 'crd',
  published: JsonObject,
): Definition {
  const { group, version, plural, kind, short } = names
  return {
    id: group === '' ? plural : `${plural}.${group}`,
    group,
    version,
    plural,
    singular: kind.toLowerCase(),
    kind,
    listKind: `${kind}List`,
    shortNames: short,
    namespaced: false,
    hasStatus: true,
    schema: rootSchema(published),
    published,
    builtin: builtinKind,
  }
}

const anything: JsonObject = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
const texts: Json = { type: 'array', items: { type: 'string' } }

export const NAMESPACES = builtin(
  { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', short: ['ns'] },
  'namespace',
  {
    type: 'object',
    properties: {
      spec: { type: 'object', properties: { finalizers: texts } },
      status: anything,
    },
  },
)

export const CRDS = builtin(
  {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    short: ['crd', 'crds'],
  },
  'crd',
  { type: 'object', properties: { spec: anything, status: anything } },
)
