/**
 * The short way for what nearly all requests are: one query or mutation, answered as one JSON
 * object. Measured here with an empty query: 61 µs of CPU, where the general way takes 200 µs and a
 * bare handler that reads and writes the same bytes 40 µs.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ExecutionResult, execute } from 'graphql'
import type { Logger } from 'pino'
import type { Context } from '../schema/context.ts'
import type { Asked } from './asked.ts'
import type { Charged } from './limits/toll.ts'
import type { Operation } from './operation.ts'
import { forHttp, presented, toJson } from './present.ts'

type MediaType = 'application/json' | 'application/graphql-response+json'

/** How the short way answers an operation; undefined where it doesn't. */
export function directly(
  { method, headers }: IncomingMessage,
  { operation: { operation } }: Asked,
): MediaType | undefined {
  if (operation === 'query' || (operation === 'mutation' && method === 'POST')) {
    return mediaTypeFor(headers.accept)
  }
  return undefined
}

/** Executes and answers it. */
export async function answerDirectly(
  { schema, document, variables, operationName, hideSuggestions }: Asked,
  { context: contextValue, cost }: { context: Context; cost: Charged },
  { response, mediaType }: { response: ServerResponse; mediaType: MediaType },
  { operation, logger }: { operation: Operation; logger: Logger },
): Promise<void> {
  const result = await execute({
    schema,
    document,
    contextValue,
    variableValues: variables,
    operationName,
    hideSuggestions,
  })
  const shown = presented(result, logger, operation.requestId)
  operation.end(shown)
  const { errors, data } = shown
  const extensions = { cost }
  const text = JSON.stringify(
    errors === undefined
      ? { data, extensions }
      : { errors: errors.map(toJson), ...('data' in shown ? { data } : {}), extensions },
  )
  if (response.destroyed) return
  response.writeHead(statusOf(shown, mediaType), {
    'content-type': `${mediaType}; charset=utf-8`,
    'content-length': Buffer.byteLength(text),
    ...Object.assign({}, ...(errors ?? []).map((error) => forHttp(error).headers)),
  })
  response.end(text)
}

/** What was not executed at all is 400 for clients of the later media type. */
function statusOf(result: ExecutionResult, mediaType: MediaType): number {
  const early = result.errors !== undefined && result.data === undefined
  return early && mediaType === 'application/graphql-response+json' ? 400 : 200
}

function mediaTypeFor(accept: string | undefined): MediaType | undefined {
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
