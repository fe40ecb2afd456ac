/** Errors as clients see them: one of a few codes, and nothing that was not meant for them. */
import { randomUUID } from 'node:crypto'
import { type ExecutionResult, GraphQLError, type GraphQLFormattedError } from 'graphql'
import type { Logger } from 'pino'
import { tookTooLong } from '../db/transaction.ts'
import { CursorLost } from '../domain/events/cursor.ts'
import { InvalidCursor } from '../domain/paging.ts'
import { badUserInput, CODES, unavailable } from '../schema/failures.ts'

const known = new Set<unknown>(CODES)

/**
 * An error that was meant for the client keeps its words; everything that the query itself is to
 * blame for is BAD_USER_INPUT. The rest is a bug: the client gets the id of its request, the log what
 * happened.
 */
export function present(
  error: unknown,
  logger: Logger,
  requestId: string = randomUUID(),
): GraphQLError {
  if (error instanceof GraphQLError) {
    const { code, http } = meant(error).extensions
    if (known.has(code)) return error
    if (isForTheClient(error)) {
      // Of an operation that was not executed at all, the variables don't fit.
      const early = error.path === undefined && error.nodes !== undefined
      const status = early ? { spec: true, status: 400 } : http
      return withExtensions(error, { code: 'BAD_USER_INPUT', http: status })
    }
  }
  const cause = original(error)
  if (cause instanceof InvalidCursor || cause instanceof CursorLost) {
    const words = 'Nothing can be continued from this cursor here: begin without it.'
    return placed(badUserInput(words), error)
  }
  if (tookTooLong(cause)) {
    logger.warn({ requestId, err: cause }, 'a request took too long')
    const words = 'This took too long. Look whether it was done, and try again.'
    return placed(unavailable(words), error)
  }
  logger.error({ requestId, err: original(error) }, 'a request failed')
  return new GraphQLError(`Something went wrong here; it was logged as ${requestId}.`, {
    ...(error instanceof GraphQLError
      ? { nodes: error.nodes ?? null, path: error.path, positions: error.positions }
      : {}),
    extensions: { code: 'INTERNAL_SERVER_ERROR', requestId },
  })
}

/** What is told, where in the answer the error stood. */
function placed(told: GraphQLError, error: unknown): GraphQLError {
  if (!(error instanceof GraphQLError)) return told
  return withExtensions(
    new GraphQLError(told.message, { nodes: error.nodes ?? null, path: error.path }),
    told.extensions,
  )
}

/** The error as it was thrown: the executor wraps it to tell where in the answer it belongs. */
function meant(error: GraphQLError): GraphQLError {
  return error.originalError instanceof GraphQLError ? error.originalError : error
}

function original(error: unknown): unknown {
  return error instanceof GraphQLError ? (error.originalError ?? error) : error
}

/**
 * Parsing, validation and the coercion of arguments name the place in the query; an error without
 * one, in the middle of an execution, comes from a value of ours that its type can't show.
 */
function isForTheClient(error: GraphQLError): boolean {
  const { originalError } = error
  if (originalError === undefined) return true
  if (!(originalError instanceof GraphQLError)) return false
  return error.path === undefined || originalError.nodes !== undefined
}

function withExtensions(error: GraphQLError, extensions: Record<string, unknown>): GraphQLError {
  return new GraphQLError(error.message, {
    nodes: error.nodes ?? null,
    source: error.source,
    positions: error.positions,
    path: error.path,
    extensions: Object.fromEntries(
      Object.entries(extensions).filter(([, value]) => value !== undefined),
    ),
  })
}

/** The answer with its errors as clients see them. */
export function presented(
  result: ExecutionResult,
  logger: Logger,
  requestId?: string,
): ExecutionResult {
  if (result.errors === undefined || result.errors.length === 0) return result
  return { ...result, errors: result.errors.map((error) => present(error, logger, requestId)) }
}

type Answer = { errors?: readonly GraphQLError[] | undefined }

/**
 * What `make` makes of an answer's JSON: once for all who are given the same one. Of errors it is made for
 * each, who is told by which id theirs was logged.
 */
export function onceForAll<T>(make: (json: string) => T) {
  const made = new WeakMap<Answer, T>()
  return (answer: Answer, logger: Logger, requestId?: string): T => {
    const { errors } = answer
    if (errors !== undefined) {
      const shown = errors.map((error) => toJson(present(error, logger, requestId)))
      return make(JSON.stringify({ ...answer, errors: shown }))
    }
    const known = made.get(answer) ?? make(JSON.stringify(answer))
    made.set(answer, known)
    return known
  }
}

/** The error as JSON, without what only HTTP has a use for. */
export function toJson(error: GraphQLError): GraphQLFormattedError {
  const { http, ...extensions } = error.extensions
  return { ...error.toJSON(), extensions }
}

/** What only HTTP has a use for. */
export function forHttp({ extensions: { http } }: GraphQLError): {
  status: number
  headers: Record<string, string>
} {
  const given = typeof http === 'object' && http !== null ? http : {}
  const headers = 'headers' in given ? given.headers : undefined
  return {
    status: 'status' in given ? Number(given.status) : 500,
    headers: typeof headers === 'object' && headers !== null ? { ...headers } : {},
  }
}
