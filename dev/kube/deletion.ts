import type { Api } from './api.ts'
import { CRDS } from './definition.ts'
import type { JsonObject } from './json.ts'
import { isObject, listAt, metadataOf, objectAt, textAt } from './json.ts'
import { listMetadata } from './list.ts'
import {
  continueDraining,
  drainNamespace,
  hasFinalizers,
  isDeleting,
  markedDeleted,
} from './namespaces.ts'
import { badRequest, cause, conflict, invalid, notFound, Refusal } from './refusal.ts'
import type { ApiRequest, Target } from './request.ts'
import { parseBody } from './request.ts'
import type { Selector } from './selectors.ts'
import type { Version } from './storage.ts'
import { type Answer, liveOf } from './verbs.ts'

const POLICIES = ['Foreground', 'Background', 'Orphan']

/** Preconditions and options in the body of DELETE; the query may hold them too. */
function deleteOptions(
  request: ApiRequest,
): { uid: string; version: string; dryRun: boolean } | Refusal {
  const policy = request.query.get('propagationPolicy') ?? ''
  if (policy !== '' && !POLICIES.includes(policy)) {
    const why = cause.unsupported('propagationPolicy', policy, POLICIES)
    return invalid({ group: 'meta.k8s.io', kind: 'DeleteOptions' }, '', [why])
  }
  const query = request.query.getAll('dryRun').includes('All')
  if (request.body.trim() === '') return { uid: '', version: '', dryRun: query }
  const body = parseBody(request.body)
  if (body instanceof Refusal) return body
  if (!isObject(body)) return badRequest('DeleteOptions expected')
  const kind = textAt(body, 'kind') ?? ''
  if (kind !== '' && kind !== 'DeleteOptions') return badRequest(`no kind "${kind}" is expected`)
  const preconditions = objectAt(body, 'preconditions')
  return {
    uid: textAt(preconditions, 'uid') ?? '',
    version: textAt(preconditions, 'resourceVersion') ?? '',
    dryRun: query || listAt(body, 'dryRun').includes('All'),
  }
}

export function remove(api: Api, target: Target, request: ApiRequest): Answer | Refusal {
  const options = deleteOptions(request)
  if (options instanceof Refusal) return options
  const { definition, name } = target
  const live = liveOf(api, target)
  if (live === undefined) return notFound(definition, name)
  const uid = textAt(metadataOf(live.object), 'uid') ?? ''
  // Here the details name the kind, not the plural.
  const subject = { ...definition, plural: definition.kind }
  if (options.uid !== '' && options.uid !== uid) {
    return conflict(subject, name, `uid mismatch: the precondition is ${options.uid}`)
  }
  if (options.version !== '' && options.version !== `${live.revision}`) {
    return conflict(subject, name, `version mismatch: the precondition is ${options.version}`)
  }
  const kept = options.dryRun ? undefined : removeOne(api, target, live)
  if (kept !== undefined) return { code: 200, json: kept.json }
  const status: JsonObject = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name,
      ...(definition.group === '' ? {} : { group: definition.group }),
      kind: definition.plural,
      uid,
    },
  }
  return { code: 200, json: JSON.stringify(status) }
}

/** Deletes an object, or begins to; answers its state while finalizers keep it. */
function removeOne(api: Api, target: Target, live: Version): Version | undefined {
  const { definition } = target
  const table = api.table(definition)
  if (definition.builtin === 'namespace') {
    if (isDeleting(live.object)) return live
    const marked = { ...markedDeleted(live.object, api.now()), status: { phase: 'Terminating' } }
    const version = table.put(marked)
    drainNamespace(api, live.name)
    return version
  }
  if (hasFinalizers(live.object)) {
    return isDeleting(live.object) ? live : table.put(markedDeleted(live.object, api.now()))
  }
  table.remove(live)
  if (definition === CRDS) api.dropCrd(live.name)
  if (definition.namespaced) continueDraining(api, live.namespace)
  return undefined
}

/** Deletes all that is selected in one namespace; answers the objects as a list. */
export function removeAll(
  api: Api,
  target: Target,
  selector: Selector,
  request: ApiRequest,
): Answer | Refusal {
  const options = deleteOptions(request)
  if (options instanceof Refusal) return options
  const table = api.table(target.definition)
  const found = table.snapshot(api.store.revision).filter((one) => selector.matches(one))
  if (!options.dryRun)
    for (const live of found) removeOne(api, { ...target, name: live.name }, live)
  const head = {
    kind: target.definition.listKind,
    apiVersion: metadataVersion(target),
    metadata: listMetadata(target.definition, api.store.revision),
  }
  const items = found.map((version) => version.json).join(',')
  return { code: 200, json: `${JSON.stringify(head).slice(0, -1)},"items":[${items}]}` }
}

const metadataVersion = ({ definition }: Target): string =>
  definition.group === '' ? definition.version : `${definition.group}/${definition.version}`
