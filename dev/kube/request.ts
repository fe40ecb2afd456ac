import { parse } from 'yaml'
import type { Definition } from './definition.ts'
import { apiVersionOf } from './definition.ts'
import type { Json, JsonObject } from './json.ts'
import { isObject, metadataOf, textAt } from './json.ts'
import { metadataMisfit } from './metadata.ts'
import { badRequest, type Cause, cause, invalid, Refusal, unsupportedMediaType } from './refusal.ts'
import { isTrue } from './watch.ts'

/** An HTTP request as the verbs see it. */
export type ApiRequest = {
  method: string
  query: URLSearchParams
  /** Without parameters. */
  contentType: string
  userAgent: string
  body: string
}

/** What a request is about. */
export type Target = {
  definition: Definition
  namespace: string
  /** '' for a collection. */
  name: string
  subresource: '' | 'status'
}

export const APPLY = ['application/apply-patch+yaml', 'application/apply-patch+cbor']
export const MERGE_PATCH = 'application/merge-patch+json'
export const JSON_PATCH = 'application/json-patch+json'
const JSON_TYPES = ['application/json', 'application/yaml', '']

/** Options that every writing verb knows. */
export type WriteOptions = {
  manager: string
  dryRun: boolean
  validation: 'Ignore' | 'Warn' | 'Strict'
  /** Characters of the request's body. */
  size: number
}

/** Reads fieldManager, dryRun and fieldValidation; without a manager the user agent names it. */
export function writeOptions(request: ApiRequest): WriteOptions | Refusal {
  const { query } = request
  const given = query.get('fieldManager') ?? ''
  const refused = (why: Cause) =>
    invalid({ group: 'meta.k8s.io', kind: OPTIONS[request.method] ?? 'PatchOptions' }, '', [why])
  if (given.length > 128) return refused(cause.tooLong('fieldManager', 128))
  if (/\p{C}/u.test(given)) {
    return refused(cause.invalid('fieldManager', given, 'has characters that can not be printed'))
  }
  const dryRun = query.getAll('dryRun')
  if (dryRun.some((value) => value !== 'All')) {
    return refused(cause.unsupported('dryRun', dryRun, ['All']))
  }
  const validation = query.get('fieldValidation') ?? 'Warn'
  if (validation !== 'Ignore' && validation !== 'Warn' && validation !== 'Strict') {
    const supported = ['', 'Ignore', 'Strict', 'Warn']
    return refused(cause.unsupported('fieldValidation', validation, supported))
  }
  const agent = request.userAgent.split('/')[0] ?? ''
  const manager = given !== '' ? given : agent === '' ? 'unknown' : agent.slice(0, 128)
  return { manager, dryRun: dryRun.length > 0, validation, size: request.body.length }
}

const OPTIONS: Record<string, string> = { POST: 'CreateOptions', PUT: 'UpdateOptions' }

export const wantsForce = (request: ApiRequest): boolean => isTrue(request.query.get('force'))

/** A body as JSON; YAML is read where it isn't JSON. */
export function parseBody(body: string): Json | Refusal {
  try {
    const text = body.trimStart()
    const json = text.startsWith('{') || text.startsWith('[')
    const value: Json = json ? JSON.parse(text) : parse(body)
    return value
  } catch (error) {
    return badRequest(
      `couldn't read the body: ${error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''}`,
    )
  }
}

/** The object in a body of POST or PUT. */
export function objectBody(request: ApiRequest, target: Target): JsonObject | Refusal {
  if (!JSON_TYPES.includes(request.contentType)) return unsupportedMediaType(JSON_TYPES.slice(0, 2))
  const value = parseBody(request.body)
  if (value instanceof Refusal) return value
  const fit = fitting(value, target)
  return fit instanceof Refusal ? fit : readable(fit, target.definition)
}

/** A PUT's or POST's metadata has to be readable at all. */
export function readable(object: JsonObject, definition: Definition): JsonObject | Refusal {
  const misfit = metadataMisfit(object)
  if (misfit === undefined) return object
  const told = `${definition.kind} in version "${definition.version}" cannot be handled as a ${definition.kind}`
  return badRequest(`${told}: ${misfit} is of the wrong type`)
}

/** Checks that an object is of the target's kind and place, and puts it there where it says nothing. */
export function fitting(value: Json, target: Target, applies = false): JsonObject | Refusal {
  const { definition } = target
  const expected = apiVersionOf(definition)
  if (!isObject(value)) return badRequest('the body is not an object')
  const apiVersion = textAt(value, 'apiVersion') ?? ''
  const kind = textAt(value, 'kind') ?? ''
  if (apiVersion === expected && kind !== definition.kind && kind !== '' && !applies) {
    const name = textAt(metadataOf(value), 'name') ?? ''
    const why = cause.invalid('kind', kind, `must be ${definition.kind}`)
    return invalid({ group: definition.group, kind }, name, [why])
  }
  if (apiVersion !== expected || kind !== definition.kind) {
    const told = `${JSON.stringify(apiVersion)}, kind ${JSON.stringify(kind)}`
    return badRequest(
      `the object's apiVersion ${told} is not the expected ${expected}, kind ${definition.kind}`,
    )
  }
  if (value['metadata'] !== undefined && !isObject(value['metadata'])) {
    return badRequest('metadata is not an object')
  }
  const metadata: JsonObject = { ...metadataOf(value) }
  const namespace = textAt(metadata, 'namespace') ?? ''
  if (namespace !== '' && namespace !== target.namespace) {
    return badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    )
  }
  if (target.namespace !== '') metadata['namespace'] = target.namespace
  else delete metadata['namespace']
  if (target.name !== '') {
    const name = textAt(metadata, 'name') ?? ''
    if (name !== '' && name !== target.name) {
      return badRequest(
        `the name of the object (${name}) does not match the name on the URL (${target.name})`,
      )
    }
    metadata['name'] = target.name
  }
  return { ...value, metadata }
}
