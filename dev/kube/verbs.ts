import type { Api } from './api.ts'
import { crdProblems } from './crd-check.ts'
import type { JsonObject } from './json.ts'
import { isObject, listAt, metadataOf, objectAt, textAt } from './json.ts'
import { metadataMisfit } from './metadata.ts'
import {
  continueDraining,
  hasFinalizers,
  isDeleting,
  namespaceBegun,
  namespaceRefusal,
} from './namespaces.ts'
import { jsonPatched, mergePatched } from './patch.ts'
import {
  alreadyExists,
  badRequest,
  cause,
  conflict,
  invalid,
  notFound,
  noVersion,
  Refusal,
  staleVersion,
  unsupportedMediaType,
} from './refusal.ts'
import type { ApiRequest, Target, WriteOptions } from './request.ts'
import {
  APPLY,
  fitting,
  JSON_PATCH,
  MERGE_PATCH,
  objectBody,
  parseBody,
  wantsForce,
  writeOptions,
} from './request.ts'
import { keyOf, type Version } from './storage.ts'
import type { Writer, Written } from './write.ts'
import { appliedObject, newObject, updatedObject } from './write.ts'

/** What a verb comes to. `warnings` become Warning headers. */
export type Answer = { code: number; json: string; warnings?: string[] }

/** etcd's limit of a request; what is larger can't be stored. */
const OBJECT_LIMIT = 1.5 * 1024 * 1024

export const liveOf = (api: Api, target: Target): Version | undefined =>
  api.table(target.definition).current.get(keyOf(target.namespace, target.name))

const writerOf = (api: Api, target: Target, options: WriteOptions): Writer => ({
  manager: options.manager,
  subresource: target.subresource,
  now: api.now(),
})

export function get(api: Api, target: Target): Answer | Refusal {
  const live = liveOf(api, target)
  return live === undefined
    ? notFound(target.definition, target.name)
    : { code: 200, json: live.json }
}

export function create(api: Api, target: Target, request: ApiRequest): Answer | Refusal {
  const options = writeOptions(request)
  if (options instanceof Refusal) return options
  const body = objectBody(request, target)
  if (body instanceof Refusal) return body
  const metadata = metadataOf(body)
  if (textAt(metadata, 'resourceVersion')) {
    const message = 'resourceVersion should not be set on objects to be created'
    return new Refusal({ code: 500, message })
  }
  const prefix = textAt(metadata, 'generateName')
  if (textAt(metadata, 'name') === undefined && prefix !== undefined) {
    metadata['name'] = `${prefix}${Math.random().toString(36).slice(2, 7).padEnd(5, '0')}`
  }
  const name = textAt(metadata, 'name') ?? ''
  const place = { ...target, name }
  const refused = placeRefusal(api, place)
  if (refused !== undefined) return refused
  if (liveOf(api, place) !== undefined) return alreadyExists(target.definition, name)
  const written = newObject(target.definition, body, writerOf(api, target, options))
  return commit(api, place, undefined, written, options, 201)
}

export function update(api: Api, target: Target, request: ApiRequest): Answer | Refusal {
  const options = writeOptions(request)
  if (options instanceof Refusal) return options
  const body = objectBody(request, target)
  if (body instanceof Refusal) return body
  const { definition, name } = target
  const live = liveOf(api, target)
  if (live === undefined) return notFound(definition, name)
  const version = textAt(metadataOf(body), 'resourceVersion') ?? ''
  const refused = versionRefusal(definition, name, version)
  if (refused !== undefined) return refused
  const uid = textAt(metadataOf(body), 'uid') ?? ''
  if (uid !== '' && uid !== textAt(metadataOf(live.object), 'uid')) {
    return conflict(definition, name, `uid mismatch: the precondition is ${uid}`)
  }
  if (version !== '' && version !== `${live.revision}`) return staleVersion(definition, name)
  const written = updatedObject(definition, live.object, body, writerOf(api, target, options))
  return commit(api, target, live, written, options)
}

/** Why what comes with such a version can't be an update; undefined: it can. */
function versionRefusal(
  definition: Target['definition'],
  name: string,
  version: string,
): Refusal | undefined {
  if (version === '') {
    if (definition.builtin === 'namespace') return undefined
    const why = cause.invalid('metadata.resourceVersion', 0, 'must be specified for an update')
    return invalid({ group: definition.group, kind: definition.plural }, name, [why])
  }
  return /^\d+$/.test(version) ? undefined : noVersion(version)
}

export function patch(api: Api, target: Target, request: ApiRequest): Answer | Refusal {
  const options = writeOptions(request)
  if (options instanceof Refusal) return options
  if (request.contentType === APPLY[0]) return apply(api, target, request, options)
  if (request.contentType !== MERGE_PATCH && request.contentType !== JSON_PATCH) {
    return unsupportedMediaType([JSON_PATCH, MERGE_PATCH, APPLY[0] ?? ''])
  }
  const optionsKind = { group: 'meta.k8s.io', kind: 'PatchOptions' }
  if (wantsForce(request)) {
    const why = 'may not be specified for non-apply patch'
    return invalid(optionsKind, '', [cause.forbidden('force', why)])
  }
  const body = parseBody(request.body)
  if (body instanceof Refusal) return body
  const { definition, name } = target
  const live = liveOf(api, target)
  if (live === undefined) return notFound(definition, name)
  const patched =
    request.contentType === MERGE_PATCH
      ? { object: mergePatched(live.object, body) }
      : Array.isArray(body)
        ? jsonPatched(live.object, body)
        : badRequest('the patch is not a list of operations')
  if (patched instanceof Refusal) return patched
  if ('problem' in patched) {
    return new Refusal({ code: 422, reason: 'Invalid', message: patched.problem, details: {} })
  }
  const fit = fitting(patched.object, target)
  if (fit instanceof Refusal) return fit
  const misfit = metadataMisfit(fit)
  if (misfit !== undefined) return patchRefusal(`${misfit} is of the wrong type`)
  const refused =
    versionRefusal(definition, name, textAt(metadataOf(fit), 'resourceVersion') ?? '') ??
    preconditions(target, live, fit)
  if (refused !== undefined) return refused
  const written = updatedObject(definition, live.object, fit, writerOf(api, target, options))
  if (!(written instanceof Refusal) && options.validation === 'Strict') {
    if (written.unknown.length > 0) return patchRefusal(unknownFields(written).join(', '))
  }
  return commit(api, target, live, written, options)
}

/** 422 for a patch that makes of an object what isn't one of its kind. */
const patchRefusal = (why: string): Refusal => {
  const subject = { group: '', kind: '' }
  const { status } = invalid(subject, '', [cause.invalid('patch', '', why)])
  const causes = listAt(objectAt(status, 'details'), 'causes')
  return new Refusal({
    code: 422,
    reason: 'Invalid',
    message: textAt(status, 'message') ?? '',
    details: { causes },
  })
}

const unknownFields = (written: Written): string[] =>
  written.unknown.map((path) => `unknown field "${path}"`)

/** A patch may say which object and version it is meant for. */
function preconditions(target: Target, live: Version, body: JsonObject): Refusal | undefined {
  const { definition, name } = target
  const metadata = metadataOf(body)
  const version = textAt(metadata, 'resourceVersion') ?? ''
  const uid = textAt(metadata, 'uid') ?? ''
  if (version !== '' && version !== `${live.revision}`) return staleVersion(definition, name)
  if (uid !== '' && uid !== textAt(metadataOf(live.object), 'uid')) {
    return invalid(definition, name, [cause.invalid('metadata.uid', uid, 'field is immutable')])
  }
  return undefined
}

function apply(
  api: Api,
  target: Target,
  request: ApiRequest,
  options: WriteOptions,
): Answer | Refusal {
  const { definition, name } = target
  if ((request.query.get('fieldManager') ?? '') === '') {
    return invalid({ group: 'meta.k8s.io', kind: 'PatchOptions' }, '', [
      cause.required('fieldManager', 'Required value: is required for apply patch'),
    ])
  }
  const parsed = parseBody(request.body)
  if (parsed instanceof Refusal) return parsed
  const body = fitting(parsed, target, true)
  if (body instanceof Refusal) return body
  if ((metadataOf(body)['managedFields'] ?? null) !== null) {
    return badRequest('metadata.managedFields must be nil')
  }
  const live = liveOf(api, target)
  if (live === undefined) {
    if (target.subresource !== '') return notFound(definition, name)
    const given = isObject(parsed) ? textAt(metadataOf(parsed), 'name') : undefined
    if (given === undefined) return withoutName()
    if (textAt(metadataOf(body), 'uid')) {
      return conflict(definition, name, 'uid mismatch: no existing object was found')
    }
    const refused = placeRefusal(api, target)
    if (refused !== undefined) return refused
  } else {
    const refused = preconditions(target, live, body)
    if (refused !== undefined) return refused
  }
  const writer = writerOf(api, target, options)
  const written = appliedObject(definition, live?.object, body, writer, wantsForce(request))
  const silent = isObject(parsed) && parsed['metadata'] === undefined
  if (silent && !(written instanceof Refusal) && written.lostMetadata) return withoutName()
  return commit(api, target, live, written, options, live === undefined ? 201 : 200)
}

/** Where an apply says nothing of metadata, and nobody owns any of it any more. */
const withoutName = (): Refusal => badRequest('the name of the object has to be provided')

const placeRefusal = (api: Api, target: Target): Refusal | undefined =>
  target.definition.namespaced
    ? namespaceRefusal(api, target.definition, target.namespace, target.name)
    : undefined

/** Stores what a write came to, and does what the kind makes follow from it. */
function commit(
  api: Api,
  target: Target,
  live: Version | undefined,
  written: Written | Refusal,
  options: WriteOptions,
  code = 200,
): Answer | Refusal {
  if (written instanceof Refusal) return written
  const { definition } = target
  const unknown = unknownFields(written)
  if (unknown.length > 0 && options.validation === 'Strict') {
    const told = `${definition.kind} in version "${definition.version}" cannot be handled as a ${definition.kind}`
    return badRequest(`${told}: strict decoding error: ${unknown.join(', ')}`)
  }
  const warnings = options.validation === 'Warn' ? unknown : []
  if (!written.changed && live !== undefined) return { code, json: live.json, warnings }
  let object = written.object
  if (definition.builtin === 'crd') {
    const causes = crdProblems(object)
    if (causes.length > 0) return invalid(definition, target.name, causes)
  }
  if (definition.builtin === 'namespace') {
    object = live === undefined ? namespaceBegun(object) : { ...object, ...specOf(live.object) }
  }
  // Small bodies on small objects need no look: an object is written out once, when it is stored.
  if (options.size + (live?.json.length ?? 0) > OBJECT_LIMIT / 8) {
    if (Buffer.byteLength(JSON.stringify(object)) > OBJECT_LIMIT) {
      return new Refusal({ code: 500, message: 'etcdserver: request is too large' })
    }
  }
  if (options.dryRun) return { code, json: JSON.stringify(object), warnings }
  if (definition.builtin === 'crd') {
    return { code, json: JSON.stringify(api.putCrd(object)), warnings }
  }
  const table = api.table(definition)
  const done = live !== undefined && isDeleting(object) && !hasFinalizers(object)
  if (done && definition.builtin !== 'namespace') {
    table.remove(live)
    continueDraining(api, target.namespace)
    return { code, json: JSON.stringify(object), warnings }
  }
  const version = table.put(object)
  if (definition.builtin === 'namespace') continueDraining(api, target.name)
  return { code, json: version.json, warnings }
}

/** A namespace's spec is the server's. */
const specOf = (object: JsonObject): JsonObject => {
  const spec = objectAt(object, 'spec')
  return spec === undefined ? {} : { spec }
}
