import type { Definition } from './definition.ts'
import { apiVersionOf } from './definition.ts'
import type { JsonObject } from './json.ts'
import { isObject } from './json.ts'
import { badRequest, type Cause, cause, expired, invalid, type Refusal } from './refusal.ts'
import type { Selector } from './selectors.ts'
import type { Table, Version } from './storage.ts'

/** Where a page begins: at which revision, after which key. Revision -1: at the present one. */
type Continue = { revision: number; after: string }

const encodeContinue = (at: Continue): string =>
  Buffer.from(JSON.stringify({ v: 'meta.k8s.io/v1', rv: at.revision, start: at.after })).toString(
    'base64url',
  )

function decodeContinue(text: string): Continue | undefined {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(text, 'base64url').toString())
    if (!isObject(parsed)) return undefined
    const { rv, start } = parsed
    return typeof rv === 'number' && typeof start === 'string'
      ? { revision: rv, after: start }
      : undefined
  } catch {
    return undefined
  }
}

/** A list's parameters once understood. */
export type ListRequest = {
  limit: number
  from: Continue | undefined
  /** Exactly this revision. */
  exact: number | undefined
  /** At least this revision. */
  atLeast: number
}

/** 422: a list or watch can't be asked for in this way. */
export const optionsRefused = (...causes: Cause[]): Refusal =>
  invalid({ group: 'meta.k8s.io', kind: 'ListOptions' }, '', causes)

const MATCH = 'resourceVersionMatch'

/** Reads timeoutSeconds, which lists know too; 0 where there is none. */
export function timeoutOf(query: URLSearchParams): number | Refusal {
  const text = query.get('timeoutSeconds') ?? '0'
  return /^-?\d+$/.test(text) ? Number(text) : badRequest('timeoutSeconds: not a whole number')
}

/** Reads limit, continue, resourceVersion and resourceVersionMatch. */
export function listRequest(query: URLSearchParams): ListRequest | Refusal {
  const limit = Number(query.get('limit') ?? 0)
  const version = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const token = query.get('continue') ?? ''
  const revision = version === '' ? 0 : Number(version)
  const timeout = timeoutOf(query)
  if (typeof timeout !== 'number') return timeout
  if (!Number.isSafeInteger(limit)) return badRequest('limit: not a whole number')
  if (query.has('sendInitialEvents')) {
    return optionsRefused(cause.forbidden('sendInitialEvents', 'is forbidden for list'))
  }
  if (!Number.isSafeInteger(revision) || revision < 0) {
    return badRequest(`resourceVersion: Invalid value: ${JSON.stringify(version)}`)
  }
  if (match !== '' && version === '') {
    return optionsRefused(cause.forbidden(MATCH, 'is forbidden unless resourceVersion is provided'))
  }
  if (match !== '' && match !== 'Exact' && match !== 'NotOlderThan') {
    return optionsRefused(cause.unsupported(MATCH, match, ['Exact', 'NotOlderThan']))
  }
  if (match === 'Exact' && revision === 0) {
    return optionsRefused(cause.forbidden(MATCH, 'Exact is forbidden for resourceVersion 0'))
  }
  if (token !== '') {
    const from = decodeContinue(token)
    if (from === undefined) return badRequest('continue key is not valid')
    if (revision !== 0) {
      return badRequest('specifying resource version is not allowed when using continue')
    }
    return { limit, from, exact: undefined, atLeast: 0 }
  }
  const exact = match === 'Exact' || (match === '' && limit > 0 && revision > 0)
  return {
    // What may be of any age comes whole, from memory.
    limit: version === '0' ? 0 : limit,
    from: undefined,
    exact: exact ? revision : undefined,
    atLeast: exact ? 0 : revision,
  }
}

/** The first index whose key is not below `key`. */
function lowerBound(versions: Version[], key: string): number {
  let low = 0
  let high = versions.length
  while (low < high) {
    const middle = (low + high) >> 1
    if ((versions[middle]?.key ?? '') < key) low = middle + 1
    else high = middle
  }
  return low
}

/** A page of objects as the JSON text of a List; objects are written out once per version. */
export function listJson(
  definition: Definition,
  table: Table,
  selector: Selector,
  request: ListRequest,
): string | Refusal {
  const inconsistent = request.from?.revision === -1
  const revision =
    (inconsistent ? undefined : request.from?.revision) ?? request.exact ?? table.store.revision
  if (revision < table.floor) return tooOld(request)

  const versions = table.snapshot(revision)
  const prefix = selector.namespace === '' ? '' : `${selector.namespace}/`
  const start = request.from === undefined ? prefix : `${request.from.after}\u0000`
  const items: string[] = []
  let last: Version | undefined
  let i = lowerBound(versions, start)
  let more = false
  for (; i < versions.length; i++) {
    const version = versions[i]
    if (version === undefined || !version.key.startsWith(prefix)) break
    if (!selector.matches(version)) continue
    if (request.limit > 0 && items.length >= request.limit) {
      more = true
      break
    }
    items.push(itemJson(definition, version))
    last = version
  }
  const metadata: JsonObject = listMetadata(definition, revision)
  if (more && last !== undefined) {
    metadata['continue'] = encodeContinue({ revision, after: last.key })
    if (selector.everything) {
      const end = prefix === '' ? versions.length : lowerBound(versions, `${selector.namespace}0`)
      metadata['remainingItemCount'] = end - i
    }
  }
  const head = JSON.stringify({
    kind: definition.listKind,
    apiVersion: apiVersionOf(definition),
    metadata,
  })
  return `${head.slice(0, -1)},"items":[${items.join(',')}]}`
}

/** Lists of CRDs' kinds have a `continue` even where nothing is left: an empty one. */
export const listMetadata = (definition: Definition, revision: number): JsonObject => ({
  resourceVersion: `${revision}`,
  ...(definition.builtin === undefined ? { continue: '' } : {}),
})

/** Items of built-in kinds come without apiVersion and kind, those of CRDs with both. */
function itemJson(definition: Definition, version: Version): string {
  if (definition.builtin === undefined) return version.json
  const { apiVersion: _, kind: __, ...rest } = version.object
  return JSON.stringify(rest)
}

function tooOld(request: ListRequest): Refusal {
  if (request.from === undefined) {
    return expired(`The resourceVersion for the provided list is too old: ${request.exact}`)
  }
  const metadata = { continue: encodeContinue({ revision: -1, after: request.from.after }) }
  return expired(
    'The continue token is too old for a consistent list; the one in this answer goes on with an inconsistent one.',
    metadata,
  )
}
