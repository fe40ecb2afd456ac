/**
 * What ends a request instead of being part of its answer: top-level errors, told apart by
 * `extensions.code` alone. What a caller of a mutation can act on is a refusal (errors.ts) instead.
 */
import { GraphQLError } from 'graphql'

/** The only codes that clients ever see. */
export const CODES = [
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'NOT_FOUND',
  'BAD_USER_INPUT',
  'TOO_MANY_REQUESTS',
  'INTERNAL_SERVER_ERROR',
] as const
export type Code = (typeof CODES)[number]

/** What one request, caller or project may not have more of; each is told as `extensions.limit`. */
export const LIMIT_NAMES = [
  'body',
  'tokens',
  'depth',
  'aliases',
  'repeats',
  'cost',
  'page',
  'budget',
  'sockets',
  'streams',
] as const
export type LimitName = (typeof LIMIT_NAMES)[number]

const failure = (code: Code, message: string, status?: number) =>
  new GraphQLError(message, {
    extensions: { code, ...(status === undefined ? {} : { http: { status } }) },
  })

/** The query itself, or a value in it, can't be used. */
export const badUserInput = (message: string, status?: number) =>
  failure('BAD_USER_INPUT', message, status)
/** More was asked for than one request may; `limit` names the limit. */
export const overLimit = (message: string, limit: LimitName, status?: number) =>
  new GraphQLError(message, {
    extensions: {
      code: 'BAD_USER_INPUT' satisfies Code,
      limit,
      ...(status === undefined ? {} : { http: { status } }),
    },
  })
/** Nobody is known to be calling. */
export const unauthenticated = (message: string) => failure('UNAUTHENTICATED', message, 401)
/** The caller is known and may not do this. */
export const forbidden = (message: string, status?: number) => failure('FORBIDDEN', message, status)
/** The project in the path isn't one. */
export const unknownProject = (project: string) =>
  failure('NOT_FOUND', `There is no project "${project}".`, 404)

/** One of our limits is reached; `limit` names it. Worth another try after so many seconds, where any are told. */
export const tooManyRequests = (message: string, limit: LimitName, retryAfter?: number) =>
  new GraphQLError(message, {
    extensions: {
      code: 'TOO_MANY_REQUESTS' satisfies Code,
      limit,
      http: {
        status: 429,
        ...(retryAfter === undefined ? {} : { headers: { 'retry-after': String(retryAfter) } }),
      },
    },
  })
/** Something that we depend on can't be asked now: nobody's mistake, and no bug. */
export const unavailable = (message: string) =>
  new GraphQLError(message, {
    extensions: {
      code: 'INTERNAL_SERVER_ERROR' satisfies Code,
      http: { status: 503, headers: { 'retry-after': '5' } },
    },
  })
