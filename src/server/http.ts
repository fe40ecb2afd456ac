import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ExecutionResult, execute, type GraphQLError } from 'graphql'
import { createYoga, isAsyncIterable, type Plugin } from 'graphql-yoga'
import type { Logger } from 'pino'
import type { Context } from '../schema/context.ts'
import { badUserInput } from '../schema/failures.ts'
import { requireAcceptable } from './accepting.ts'
import { askedIn, type Parameters, parametersIn } from './asked.ts'
import { readBody } from './body.ts'
import type { Cors } from './cors.ts'
import { answerDirectly, directly } from './direct.ts'
import { type Documents, type DocumentsByAudience, documentsFor } from './documents.ts'
import { asEvents, streamEvents } from './eventStream.ts'
import { GraphiQL } from './graphiql.ts'
import type { ClientAddress } from './limits/clientAddress.ts'
import type { Toll } from './limits/toll.ts'
import type { ApiMetrics } from './metrics.ts'
import { Operation } from './operation.ts'
import type { PersistedDocuments } from './persisted.ts'
import { forHttp, present, presented, toJson } from './present.ts'
import { type Door, placeOf } from './scope.ts'
import type { Streams } from './streams.ts'
import { mapped, subscribe } from './subscribing.ts'

type Parts = {
  door: Door
  documents: DocumentsByAudience
  persisted: PersistedDocuments
  cors: Cors
  toll: Toll
  streams: Streams
  addressOf: ClientAddress
  metrics: ApiMetrics
  logger: Logger
}

/** What the general way is given besides the context: how a stream is guarded. */
type Served = Context & { operation: Operation; guard?: Guard | undefined }
type Guard = (source: AsyncIterable<ExecutionResult>) => AsyncIterable<ExecutionResult>

/**
 * Answers GraphQL over HTTP: JSON by POST, queries also by GET, streams as server-sent events.
 * Who calls, what may be sent and how large it may be is settled before any of it is parsed.
 */
export function httpHandler(parts: Parts) {
  const { door, cors, toll, streams, persisted, logger } = parts
  const tenants = yogaOver(parts.documents.tenants, logger)
  const operators = yogaOver(parts.documents.operators, logger)
  const graphiql = new GraphiQL()

  const handle = async (
    request: IncomingMessage,
    response: ServerResponse,
    operation: Operation,
  ): Promise<void> => {
    response.setHeader('x-content-type-options', 'nosniff')
    response.setHeader('x-request-id', operation.requestId)
    const place = placeOf(request.url ?? '')
    if (place === null) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('There is nothing here.\n')
      return
    }
    if (cors.answer(request, response)) return
    if (GraphiQL.isWanted(request)) return graphiql.send(request, response)
    const credentials = { headers: request.headers, remoteAddress: parts.addressOf(request) }
    const admitted = await door.admit(place, credentials)
    toll.requireBudget(place)
    const parameters = await parametersOf(request, persisted)
    const known = documentsFor(parts.documents, admitted)
    const asked = parameters && toll.reading(place, () => askedIn(parameters, known))
    const generally = async (context: Served): Promise<void> => {
      const yoga = admitted.project === null ? operators : tenants
      // It reads a body that was read from here.
      if (request.method === 'POST') Object.assign(request, { body: parameters })
      await yoga.handle(request, response, context)
    }
    if (asked === undefined) {
      toll.takeForReading(place, parameters?.['query'])
      requireAcceptable(request, undefined)
      return generally({ ...door.context(admitted, operation), operation })
    }
    operation.begin(asked, admitted, request.headers['traceparent'])
    const cost = toll.take(place, asked.cost)
    requireAcceptable(request, asked.operation.operation)
    const mediaType = directly(request, asked)
    if (mediaType !== undefined) {
      const context = door.context(admitted, operation)
      const to = { response, mediaType }
      return answerDirectly(asked, { context, cost }, to, { operation, logger })
    }
    if (asked.operation.operation !== 'subscription') {
      return generally({ ...door.context(admitted, operation), operation })
    }
    // Who left while they were let in isn't heard to leave any more.
    if (response.closed) return operation.end()
    const { guard, permissions, close } = streams.open({ place, credentials, admitted })
    response.once('close', close)
    const context = door.context({ ...admitted, permissions }, operation)
    if (asEvents(request)) {
      return streamEvents(asked, { context, guard }, response, { operation, logger })
    }
    return generally({ ...context, operation, guard })
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    const operation = new Operation(parts)
    handle(request, response, operation).catch((error: unknown) => {
      const shown = present(error, logger, operation.requestId)
      operation.end({ errors: [shown] })
      refuse(shown, request, response)
    })
  }
}

/** What is asked for, as the client sent it; undefined where it can't be read. */
async function parametersOf(
  request: IncomingMessage,
  persisted: PersistedDocuments,
): Promise<Parameters | undefined> {
  if (request.method === 'POST') {
    const body = persisted.resolve(await readBody(request))
    if (typeof body['query'] !== 'string') throw badUserInput('The body has no query.', 400)
    return body
  }
  const given = request.method === 'GET' ? parametersIn(request) : undefined
  if (given === undefined) return undefined
  const parameters = persisted.resolve(given)
  if (parameters !== given) {
    const texts = Object.entries(parameters).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ])
    const [path] = (request.url ?? '').split('?')
    request.url = `${path}?${new URLSearchParams(texts)}`
  }
  return parameters
}

function yogaOver(documents: Documents, logger: Logger) {
  return createYoga<Served>({
    schema: documents.schema,
    plugins: [remembering(documents), presenting(logger)],
    // All of these are ours, see above.
    maskedErrors: false,
    parserAndValidationCache: false,
    maxRequestBodySize: false,
    multipart: false,
    batching: false,
    cors: false,
    graphiql: false,
    landingPage: false,
    logging: false,
    graphqlEndpoint: '*',
  })
}

/** Answers what never became an operation. */
function refuse(error: GraphQLError, request: IncomingMessage, response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const { status, headers } = forHttp(error)
  const body = JSON.stringify({ errors: [toJson(error)] })
  // graphql-sse: what is wrong with the operation itself is told in a stream that was accepted.
  if (status === 400 && request.headers.accept?.includes('text/event-stream')) {
    response
      .writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
      .end(`event: next\ndata: ${body}\n\nevent: complete\ndata:\n\n`)
    return
  }
  // What is left of a body that wasn't read would be taken for the next request.
  if (!request.complete) response.setHeader('connection', 'close')
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers })
    .end(body)
}

function remembering(documents: Documents): Plugin {
  return {
    onParse({ params, setParsedDocument }) {
      const { document, errors } = documents.check(String(params.source))
      const [error] = errors
      if (document !== undefined) setParsedDocument(document)
      else if (error !== undefined) throw error
    },
    onValidate({ context, setResult }) {
      setResult([...documents.check(String(context['params'].query)).errors])
    },
    // The same as over websockets, and as the short way.
    onExecute({ args, setExecuteFn }) {
      setExecuteFn(execute)
      Object.assign(args, { hideSuggestions: documents.hideSuggestions })
    },
    onSubscribe({ args, setSubscribeFn }) {
      setSubscribeFn(subscribe)
      Object.assign(args, { hideSuggestions: documents.hideSuggestions })
    },
  }
}

/** Whatever the answer is and wherever it comes from: its errors are those that clients may see. */
function presenting(logger: Logger): Plugin<object, Served> {
  return {
    onResultProcess({ result, setResult, serverContext: { guard, operation } }) {
      const { requestId } = operation
      if (isAsyncIterable(result)) {
        operation.end()
        setResult(mapped(guard?.(result) ?? result, (one) => presented(one, logger, requestId)))
      } else if (!Array.isArray(result)) {
        const shown = presented(result, logger, requestId)
        operation.end(shown)
        if (shown !== result) setResult(shown)
      }
    },
  }
}
