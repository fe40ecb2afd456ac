/**
 * The short way for what nearly all requests are: one query or mutation, answered as one JSON
 * object. Measured here with an empty query: 61 µs of CPU, where the general way takes 200 µs and a
 * bare handler that reads and writes the same bytes 40 µs.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import {
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLSchema,
  getOperationAST,
} from 'graphql'
import type { Logger } from 'pino'
import type { Context } from '../schema/context.ts'
import type { Documents } from './documents.ts'
import { presented, toJson } from './present.ts'

export type Request = {
  schema: GraphQLSchema
  document: DocumentNode
  variables: { readonly [name: string]: unknown } | null
  operationName: string | null
  mediaType: 'application/json' | 'application/graphql-response+json'
}

const PARAMETERS = new Set(['query', 'variables', 'operationName', 'extensions'])

/** The request, where the short way answers it; whatever is unusual about it is left to the general one. */
export function directly(
  { headers }: IncomingMessage,
  body: Record<string, unknown>,
  documents: Documents,
): Request | undefined {
  const mediaType = mediaTypeFor(headers.accept)
  const { query, variables = null, operationName = null } = body
  if (mediaType === undefined || typeof query !== 'string') return undefined
  if (operationName !== null && typeof operationName !== 'string') return undefined
  if (!isObjectOrNull(variables) || Object.keys(body).some((name) => !PARAMETERS.has(name))) {
    return undefined
  }
  const { document, errors } = documents.check(query)
  if (document === undefined || errors.length > 0) return undefined
  const operation = getOperationAST(document, operationName)?.operation
  if (operation !== 'query' && operation !== 'mutation') return undefined
  return { schema: documents.schema, document, variables, operationName, mediaType }
}

/** Executes and answers it. */
export async function answerDirectly(
  { schema, document, variables, operationName, mediaType }: Request,
  contextValue: Context,
  response: ServerResponse,
  logger: Logger,
): Promise<void> {
  const result = await execute({
    schema,
    document,
    contextValue,
    variableValues: variables,
    operationName,
  })
  const shown = presented(result, logger)
  const errors = shown.errors?.map(toJson)
  const text = JSON.stringify(errors === undefined ? shown : { ...shown, errors })
  if (response.destroyed) return
  response.writeHead(statusOf(shown, mediaType), {
    'content-type': `${mediaType}; charset=utf-8`,
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}

/** What was not executed at all is 400 for clients of the later media type. */
function statusOf(result: ExecutionResult, mediaType: Request['mediaType']): number {
  const early = result.errors !== undefined && result.data === undefined
  return early && mediaType === 'application/graphql-response+json' ? 400 : 200
}

function mediaTypeFor(accept: string | undefined): Request['mediaType'] | undefined {
  if (accept === undefined || accept === '*/*' || accept === 'application/json') {
    return 'application/json'
  }
  if (accept.includes('text/event-stream') || accept.includes('multipart/')) return undefined
  if (accept.includes('application/graphql-response+json')) {
    return 'application/graphql-response+json'
  }
  return accept.includes('application/json') || accept.includes('*/*')
    ? 'application/json'
    : undefined
}

function isObjectOrNull(value: unknown): value is Request['variables'] {
  return value === null || (typeof value === 'object' && !Array.isArray(value))
}
