import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { ExecutionArgs } from 'graphql'
import { useServer } from 'graphql-ws/use/ws'
import type { Logger } from 'pino'
import { WebSocketServer } from 'ws'
import type { Code } from '../schema/failures.ts'
import type { Cors } from './cors.ts'
import { type DocumentsByAudience, documentsFor } from './documents.ts'
import { present, toJson } from './present.ts'
import { type Admitted, type Door, placeOf } from './scope.ts'

/** A query is far smaller; variables with 64 backends fit many times. */
const LARGEST_MESSAGE = 1_048_576
/** Clients of the protocol give up on these and don't connect again. */
const CLOSE_CODES: Partial<Record<Code, number>> = {
  UNAUTHENTICATED: 4401,
  FORBIDDEN: 4403,
  NOT_FOUND: 4404,
}

type Parts = { door: Door; documents: DocumentsByAudience; cors: Cors; logger: Logger }

/** GraphQL over websockets, as graphql-ws speaks it, at the same paths as over HTTP. */
export function websocketHandler({ door, documents, cors, logger }: Parts) {
  const server = new WebSocketServer({ noServer: true, maxPayload: LARGEST_MESSAGE })
  const admissions = new WeakMap<IncomingMessage, Admitted>()
  const sockets = useServer(
    {
      onConnect: async ({ connectionParams, extra: { request, socket } }) => {
        const given = connectionParams?.['authorization'] ?? connectionParams?.['Authorization']
        const headers =
          typeof given === 'string' ? { ...request.headers, authorization: given } : request.headers
        const { remoteAddress } = request.socket
        try {
          const place = placeOf(request.url ?? '') ?? ''
          admissions.set(request, await door.admit(place, { headers, remoteAddress }))
          return true
        } catch (error) {
          const shown = present(error, logger)
          const code = CLOSE_CODES[shown.extensions['code'] as Code] ?? 4500
          socket.close(code, shown.message.slice(0, 120))
          return false
        }
      },
      onSubscribe: ({ extra: { request } }, _id, { query, variables, operationName }) => {
        const admitted = admissions.get(request)
        if (admitted === undefined) throw new Error('an operation before its connection')
        const known = documentsFor(documents, admitted)
        const { document, errors } = known.check(query)
        if (document === undefined || errors.length > 0) return errors
        const args: ExecutionArgs = {
          schema: known.schema,
          document,
          contextValue: door.context(admitted),
          variableValues: variables ?? null,
          operationName: operationName ?? null,
        }
        return args
      },
      onNext: (_context, _id, _payload, _args, { data, errors }) => {
        if (errors === undefined) return undefined
        const shown = errors.map((error) => toJson(present(error, logger)))
        return data === undefined ? { errors: shown } : { data, errors: shown }
      },
      onError: (_context, _id, _payload, errors) =>
        errors.map((error) => toJson(present(error, logger))),
    },
    server,
  )
  return {
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
      socket.on('error', () => socket.destroy())
      const refuse = (status: string) =>
        socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`)
      if (placeOf(request.url ?? '') === null) return void refuse('404 Not Found')
      if (!cors.mayConnect(request)) return void refuse('403 Forbidden')
      server.handleUpgrade(request, socket, head, (opened) =>
        server.emit('connection', opened, request),
      )
    },
    /** Ends all streams; clients are told to connect again. */
    async close(): Promise<void> {
      const { clients } = server
      const closed = sockets.dispose()
      const impatient = setTimeout(() => {
        for (const client of clients) client.terminate()
      }, 1_000)
      await closed
      clearTimeout(impatient)
    },
  }
}
