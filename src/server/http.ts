import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ExecutionResult, GraphQLError } from 'graphql'
import { createYoga, isAsyncIterable, type Plugin } from 'graphql-yoga'
import type { Logger } from 'pino'
import type { Context } from '../schema/context.ts'
import { readBody } from './body.ts'
import type { Cors } from './cors.ts'
import { answerDirectly, directly } from './direct.ts'
import { type Documents, type DocumentsByAudience, documentsFor } from './documents.ts'
import { GraphiQL } from './graphiql.ts'
import { present, presented, toJson } from './present.ts'
import { type Door, placeOf } from './scope.ts'

type Parts = { door: Door; documents: DocumentsByAudience; cors: Cors; logger: Logger }

/**
 * Answers GraphQL over HTTP: JSON by POST, queries also by GET, streams as server-sent events.
 * Who calls, what may be sent and how large it may be is settled before any of it is parsed.
 */
export function httpHandler(parts: Parts) {
  const { door, cors, logger } = parts
  const tenants = yogaOver(parts.documents.tenants, logger)
  const operators = yogaOver(parts.documents.operators, logger)
  const graphiql = new GraphiQL()

  const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    response.setHeader('x-content-type-options', 'nosniff')
    const place = placeOf(request.url ?? '')
    if (place === null) {
      response.writeHead(404, { 'content-type': 'text/plain' }).end('There is nothing here.\n')
      return
    }
    if (cors.answer(request, response)) return
    if (GraphiQL.isWanted(request)) return graphiql.send(request, response)
    const { headers, socket } = request
    const admitted = await door.admit(place, { headers, remoteAddress: socket.remoteAddress })
    const context = door.context(admitted)
    if (request.method === 'POST') {
      const body = await queryIn(request)
      const short = directly(request, body, documentsFor(parts.documents, admitted))
      if (short !== undefined) return answerDirectly(short, context, response, logger)
      Object.assign(request, { body })
    }
    const yoga = admitted.project === null ? operators : tenants
    await yoga.handle(request, response, context)
  }

  return (request: IncomingMessage, response: ServerResponse): void => {
    handle(request, response).catch((error: unknown) => {
      refuse(present(error, logger), request, response)
    })
  }
}

function yogaOver(documents: Documents, logger: Logger) {
  return createYoga<Context>({
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

async function queryIn(request: IncomingMessage) {
  const body = await readBody(request)
  if (typeof body['query'] !== 'string') {
    throw new GraphQLError('The body has no query.', {
      extensions: { code: 'BAD_USER_INPUT', http: { status: 400 } },
    })
  }
  return body
}

/** Answers what never became an operation. */
function refuse(error: GraphQLError, request: IncomingMessage, response: ServerResponse): void {
  if (response.headersSent) {
    response.destroy()
    return
  }
  const { http } = error.extensions
  const status =
    typeof http === 'object' && http !== null && 'status' in http ? Number(http.status) : 500
  // What is left of a body that wasn't read would be taken for the next request.
  if (!request.complete) response.setHeader('connection', 'close')
  response
    .writeHead(status, { 'content-type': 'application/json; charset=utf-8' })
    .end(JSON.stringify({ errors: [toJson(error)] }))
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
  }
}

/** Whatever the answer is and wherever it comes from: its errors are those that clients may see. */
function presenting(logger: Logger): Plugin {
  return {
    onResultProcess({ result, setResult }) {
      if (isAsyncIterable(result)) {
        setResult(mapped(result, (one) => presented(one, logger)))
      } else if (!Array.isArray(result)) {
        const shown = presented(result, logger)
        if (shown !== result) setResult(shown)
      }
    },
  }
}

function mapped(
  source: AsyncIterable<ExecutionResult>,
  map: (result: ExecutionResult) => ExecutionResult,
): AsyncIterable<ExecutionResult> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]()
      return {
        async next() {
          const next = await iterator.next()
          return next.done === true ? next : { done: false, value: map(next.value) }
        },
        async return(value: unknown) {
          await iterator.return?.(value)
          return { done: true, value: undefined }
        },
      }
    },
  }
}
