import { isRecord } from './failure.ts'

/** Headers of a request, each with its values. */
export type Headers = Record<string, string[]>

/**
 * By which headers a user of a kubeconfig acts as somebody else, as client-go sends them: `as-uid`,
 * `as-groups` and `as-user-extra`. `as` itself is sent by client-node, which leaves out the others. undefined: it
 * can't be told as whom, since these are there without a name. Whoever left them out would act as oneself, with
 * other rights.
 */
export function impersonationOf(user: Record<string, unknown>): Headers | undefined {
  const headers: Headers = {}
  const isNamed = typeof user['as'] === 'string' && user['as'] !== ''
  if (!isNamed) return BESIDES.some((key) => isGiven(user[key])) ? undefined : headers
  if (typeof user['as-uid'] === 'string' && user['as-uid'] !== '')
    headers['impersonate-uid'] = [onTheWire(user['as-uid'])]
  const groups = textsIn(user['as-groups'])
  if (groups.length > 0) headers['impersonate-group'] = groups
  const extra = isRecord(user['as-user-extra']) ? user['as-user-extra'] : {}
  for (const [key, values] of Object.entries(extra)) {
    headers[`impersonate-extra-${nameOf(key)}`] = textsIn(values)
  }
  return headers
}

const BESIDES = ['as-uid', 'as-groups', 'as-user-extra']
const isGiven = (value: unknown): boolean =>
  typeof value === 'object' && value !== null ? Object.keys(value).length > 0 : Boolean(value)

/** A header's value, each character of which is sent as one byte: what isn't ASCII goes as UTF-8. */
export const onTheWire = (text: string): string => Buffer.from(text).toString('latin1')

/** Keys may hold what a header's name may not, a slash or a parenthesis for one. */
const nameOf = (key: string): string =>
  onTheWire(key.toLowerCase()).replaceAll(
    /[^\w.~-]/g,
    (byte) => `%${byte.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )

const textsIn = (value: unknown): string[] =>
  Array.isArray(value)
    ? value.filter((each) => typeof each === 'string').map((each) => onTheWire(each))
    : []
