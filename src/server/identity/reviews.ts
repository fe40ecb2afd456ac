/**
 * `AUTHZ=sar`: the platform's control plane tells, by SelfSubjectAccessReviews with the caller's own
 * token. A project has a control plane of its own below the platform's, and is asked there; what
 * operators may do is asked at the platform's. Nothing is granted while it can't be asked.
 */
import { createHash } from 'node:crypto'
import { ANYWHERE } from '../caller.ts'
import type { Authorize } from './authorize.ts'

/** How long an answer holds, in milliseconds. */
const REMEMBERED = 15_000
/** A failure is asked about again sooner, but not by every request. */
const FAILED = 1_000
const MOST_REMEMBERED = 10_000
const TIMEOUT = 5_000

/** The control plane didn't answer, or not with a review. */
export class ReviewsUnavailable extends Error {
  override readonly name = 'ReviewsUnavailable'
}

export type ReviewsOptions = {
  /** The platform's API, e.g. `https://api.example.com`. */
  url: string
  /** The permission ids to ask about, in a project and as an operator. */
  permissions: { project: readonly string[]; operators: readonly string[] }
  onError: (error: unknown) => void
  /** Milliseconds since 1970. */
  now?: () => number
}

type Remembered = { granted: Promise<ReadonlySet<string> | null>; until: number }

/** Asks for all permissions in a place at once, and remembers the answers for a while. */
export function byReviews({
  url,
  permissions,
  onError,
  now = Date.now,
}: ReviewsOptions): Authorize {
  const remembered = new Map<string, Remembered>()
  const review = async (text: string, where: string): Promise<ReadonlySet<string>> => {
    const ids = where === ANYWHERE ? permissions.operators : permissions.project
    const target = reviewsOf(url, where)
    const allowed = await Promise.all(ids.map((id) => isAllowed(target, text, id)))
    return new Set(ids.filter((_, index) => allowed[index]))
  }
  const ask = (text: string, where: string): Promise<ReadonlySet<string> | null> => {
    // Not the token itself: what is in memory may be dumped.
    const key = `${where} ${createHash('sha256').update(text).digest('base64')}`
    const known = remembered.get(key)
    if (known !== undefined && now() < known.until) return known.granted
    const entry: Remembered = {
      granted: review(text, where).catch((error: unknown) => {
        onError(error)
        entry.until = now() + FAILED
        return null
      }),
      until: now() + REMEMBERED,
    }
    remembered.delete(key)
    if (remembered.size >= MOST_REMEMBERED) {
      const [oldest] = remembered.keys()
      if (oldest !== undefined) remembered.delete(oldest)
    }
    remembered.set(key, entry)
    return entry.granted
  }
  return async (token, where) => {
    const granted = await ask(token.text, where)
    if (granted === null) throw new ReviewsUnavailable('access could not be reviewed')
    return granted.size === 0 ? new Map() : new Map([[where, granted]])
  }
}

function reviewsOf(url: string, where: string): string {
  const plane =
    where === ANYWHERE
      ? ''
      : `/apis/resourcemanager.miloapis.com/v1alpha1/projects/${where}/control-plane`
  return `${url.replace(/\/$/, '')}${plane}/apis/authorization.k8s.io/v1/selfsubjectaccessreviews`
}

/** One review: `networking.datumapis.com/loadbalancers.create` is group, resource and verb. */
async function isAllowed(url: string, token: string, permission: string): Promise<boolean> {
  const [group, resource, verb] = permission.split(/\/|\.(?=[a-z]+$)/)
  const response = await fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: { group, resource, verb } },
    }),
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT),
  })
  // A control plane that doesn't let them in, or isn't there, has said no.
  if (response.status === 401 || response.status === 403 || response.status === 404) {
    await response.body?.cancel()
    return false
  }
  if (!response.ok) throw new Error(`${url} answers ${response.status}`)
  const body: unknown = await response.json()
  const status = typeof body === 'object' && body !== null && 'status' in body ? body.status : null
  if (typeof status !== 'object' || status === null) throw new Error(`${url} answers no review`)
  const denied = 'denied' in status && status.denied === true
  return 'allowed' in status && status.allowed === true && !denied
}
