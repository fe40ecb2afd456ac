import { createHash } from 'node:crypto'
import type { Api } from './api.ts'
import type { Definition } from './definition.ts'
import { apiVersionOf } from './definition.ts'
import type { Json, JsonObject } from './json.ts'
import { isObject, objectAt } from './json.ts'

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const reference = (name: string): JsonObject => ({ $ref: `#/components/schemas/${name}` })

/** A kind's name among the schemas: the group turned round, version, kind. */
export function schemaName({ group, version, kind }: Definition): string {
  if (group === '') return `io.k8s.api.core.${version}.${kind}`
  return `${group.split('.').reverse().join('.')}.${version}.${kind}`
}

const groupVersionKind = (definition: Definition, kind = definition.kind): JsonObject => ({
  group: definition.group,
  kind,
  version: definition.version,
})

function kindSchemas(definition: Definition): JsonObject {
  const own = definition.published
  const properties = objectAt(own, 'properties') ?? {}
  const name = schemaName(definition)
  const text = { type: 'string' }
  return {
    [name]: {
      ...own,
      type: 'object',
      properties: {
        ...properties,
        apiVersion: text,
        kind: text,
        metadata: { allOf: [reference(`${META}.ObjectMeta`)] },
      },
      'x-kubernetes-group-version-kind': [groupVersionKind(definition)],
    },
    [`${name}List`]: {
      type: 'object',
      required: ['items'],
      properties: {
        apiVersion: text,
        kind: text,
        metadata: { allOf: [reference(`${META}.ListMeta`)] },
        items: { type: 'array', items: reference(name) },
      },
      'x-kubernetes-group-version-kind': [groupVersionKind(definition, definition.listKind)],
    },
  }
}

function kindPaths(definition: Definition): JsonObject {
  const { group, version, plural, namespaced } = definition
  const root = group === '' ? `/api/${version}` : `/apis/${group}/${version}`
  const base = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`
  const operation = (action: string, answer: string): JsonObject => ({
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': groupVersionKind(definition),
    responses: {
      '200': { description: 'OK', content: { 'application/json': { schema: reference(answer) } } },
    },
  })
  const name = schemaName(definition)
  const one: JsonObject = {
    get: operation('get', name),
    put: operation('put', name),
    patch: operation('patch', name),
    delete: operation('delete', name),
  }
  return {
    [base]: { get: operation('list', `${name}List`), post: operation('post', name) },
    [`${base}/{name}`]: one,
  }
}

const shared: JsonObject = {
  [`${META}.ObjectMeta`]: {
    type: 'object',
    properties: {
      name: { type: 'string' },
      namespace: { type: 'string' },
      uid: { type: 'string' },
      resourceVersion: { type: 'string' },
      generation: { type: 'integer', format: 'int64' },
      creationTimestamp: { type: 'string', format: 'date-time' },
      deletionTimestamp: { type: 'string', format: 'date-time' },
      labels: { type: 'object', additionalProperties: { type: 'string' } },
      annotations: { type: 'object', additionalProperties: { type: 'string' } },
      finalizers: { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'set' },
    },
  },
  [`${META}.ListMeta`]: {
    type: 'object',
    properties: { resourceVersion: { type: 'string' }, continue: { type: 'string' } },
  },
}

/** The OpenAPI v3 document of one group and version; undefined where it isn't served. */
export function openapiDocument(api: Api, group: string, version: string): Json | undefined {
  const served = [...api.definitions.values()].filter(
    (one) => one.group === group && one.version === version,
  )
  if (served.length === 0) return undefined
  return {
    openapi: '3.0.0',
    info: { title: 'Kubernetes', version: apiVersionOf({ group, version }) },
    paths: Object.assign({}, ...served.map(kindPaths)),
    components: { schemas: Object.assign({}, ...served.map(kindSchemas), shared) },
  }
}

/** /openapi/v3: where each document is; the hash changes with its content. */
export function openapiIndex(api: Api): JsonObject {
  const paths: JsonObject = {}
  for (const { group, version } of api.definitions.values()) {
    const key = group === '' ? `api/${version}` : `apis/${group}/${version}`
    if (isObject(paths[key])) continue
    const text = JSON.stringify(openapiDocument(api, group, version) ?? null)
    const hash = createHash('sha256').update(text).digest('hex').toUpperCase()
    paths[key] = { serverRelativeURL: `/openapi/v3/${key}?hash=${hash}` }
  }
  return { paths }
}
