import { isRecord } from './failure.ts'

/** Headers of a request, each with its values. */
export type Headers = Record<string, string[]>

/**
 * By which headers a user of a kubeconfig acts as somebody else, as client-go sends them: `as-uid`,
 * `as-groups` and `as-user-extra`. `as` itself is sent by client-node, which leaves out the others.
 */
export function impersonationOf(user: Record<string, unknown>): Headers {
  const headers: Headers = {}
  if (typeof user['as'] !== 'string' || user['as'] === '') return headers
  if (typeof user['as-uid'] === 'string' && user['as-uid'] !== '')
    headers['impersonate-uid'] = [user['as-uid']]
  const groups = textsIn(user['as-groups'])
  if (groups.length > 0) headers['impersonate-group'] = groups
  const extra = isRecord(user['as-user-extra']) ? user['as-user-extra'] : {}
  for (const [key, values] of Object.entries(extra)) {
    // Keys may hold what a header's name may not, a slash for one.
    headers[`impersonate-extra-${encodeURIComponent(key.toLowerCase())}`] = textsIn(values)
  }
  return headers
}

const textsIn = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
