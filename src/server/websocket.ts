import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { isAsyncIterable } from 'graphql-yoga'
import type { Logger } from 'pino'
import type { Clock } from '../schema/context.ts'
import type { Code } from '../schema/failures.ts'
import { Connection, costs, guards, operations } from './connection.ts'
import type { Cors } from './cors.ts'
import type { DocumentsByAudience } from './documents.ts'
import type { ClientAddress } from './limits/clientAddress.ts'
import type { Limits } from './limits/limits.ts'
import { Places } from './limits/places.ts'
import type { Toll } from './limits/toll.ts'
import type { ApiMetrics } from './metrics.ts'
import { Operation } from './operation.ts'
import type { PersistedDocuments } from './persisted.ts'
import { onceForAll, present, toJson } from './present.ts'
import { type Door, placeOf } from './scope.ts'
import { sendShared, socketServer } from './sockets.ts'
import type { Streams } from './streams.ts'
import { subscribe } from './subscribing.ts'

/** By the protocol, and by the same pattern where it has none. */
const CLOSE_CODES: Partial<Record<Code, number>> = {
  UNAUTHENTICATED: 4401,
  FORBIDDEN: 4403,
  NOT_FOUND: 4404,
  TOO_MANY_REQUESTS: 4429,
}
/** RFC 6455's registry: clients connect again later. */
const TRY_AGAIN = 1013
/** Bytes of a reason, RFC 6455, 5.5. */
const LONGEST_REASON = 123

type Parts = {
  door: Door
  documents: DocumentsByAudience
  persisted: PersistedDocuments
  cors: Cors
  toll: Toll
  streams: Streams
  addressOf: ClientAddress
  limits: Limits
  clock: Clock
  metrics: ApiMetrics
  logger: Logger
}

/** GraphQL over websockets, as graphql-ws speaks it, at the same paths as over HTTP. */
export function websocketHandler(parts: Parts) {
  const { cors, limits, addressOf, logger } = parts
  const places = new Places(limits.socketsPerCaller)
  const waiting = new Places(limits.waitingPerAddress)
  const connections = new WeakMap<IncomingMessage, Connection>()
  const connectionOf = (request: IncomingMessage): Connection => {
    const connection = connections.get(request)
    if (connection === undefined) throw new Error('a socket that was never upgraded')
    return connection
  }
  const { sockets, close } = socketServer(
    {
      onConnect: async ({ connectionParams, extra: { request, socket } }) => {
        const close = (error: unknown) => {
          const shown = present(error, logger)
          const code = CLOSE_CODES[shown.extensions['code'] as Code] ?? TRY_AGAIN
          socket.close(code, Buffer.from(shown.message).subarray(0, LONGEST_REASON).toString())
        }
        try {
          await connectionOf(request).admit(connectionParams ?? {}, { places, close })
          return true
        } catch (error) {
          close(error)
          return false
        }
      },
      onSubscribe: ({ extra: { request } }, id, payload) => {
        const operation = new Operation(parts)
        try {
          const begun = connectionOf(request).begin(id, payload, operation)
          if ('schema' in begun) return begun
          operation.end({ errors: begun })
          return begun
        } catch (error) {
          const shown = present(error, logger, operation.requestId)
          operation.end({ errors: [shown] })
          return [shown]
        }
      },
      subscribe: async (args) => {
        const result = await subscribe(args)
        const guard = guards.get(args)
        if (isAsyncIterable(result)) operations.get(args)?.end()
        return isAsyncIterable(result) && guard !== undefined ? guard(result) : result
      },
      onOperation: ({ extra }, id, _payload, args, result) => {
        if (!isAsyncIterable(result)) return
        const head = `{"id":${JSON.stringify(id)},"type":"next","payload":`
        const requestId = operations.get(args)?.requestId
        return delivered(result, (one) =>
          sendShared(extra, head, payloadAndEnd(one, logger, requestId)),
        )
      },
      onNext: (_context, _id, _payload, args, { data, errors }) => {
        const cost = costs.get(args)
        const extensions = cost === undefined ? {} : { extensions: { cost } }
        const operation = operations.get(args)
        const told = errors?.map((error) => present(error, logger, operation?.requestId))
        operation?.end({ errors: told ?? [] })
        const shown = told?.map(toJson)
        return {
          ...(data === undefined ? {} : { data }),
          ...(shown === undefined ? {} : { errors: shown }),
          ...extensions,
        }
      },
      onError: (_context, _id, _payload, errors) =>
        // Those of a subscription that didn't begin, or such as were presented before.
        errors.map((error) => toJson(present(error, logger))),
      onComplete: ({ extra: { request } }, id) => connectionOf(request).end(id),
      onClose: ({ extra: { request } }) => connectionOf(request).close(),
    },
    logger,
  )
  return {
    upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
      socket.on('error', () => socket.destroy())
      const refuse = (status: string) =>
        socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\n\r\n`)
      if (placeOf(request.url ?? '') === null) return void refuse('404 Not Found')
      if (!cors.mayConnect(request)) return void refuse('403 Forbidden')
      const address = addressOf(request)
      const free = waiting.take(address ?? '')
      if (free === null) return void refuse('429 Too Many Requests')
      // Also where the handshake fails.
      socket.once('close', free)
      connections.set(request, new Connection(parts, { request, address, free }))
      sockets.handleUpgrade(request, socket, head, (opened) =>
        sockets.emit('connection', opened, request),
      )
    },
    /** How many are open. */
    get count(): number {
      return sockets.clients.size
    },
    close,
  }
}

/** What follows the id in a message that tells a result. */
const payloadAndEnd = onceForAll((json) => Buffer.from(`${json}}`))

/**
 * Sends the results of a stream, which graphql-ws would each make a message of anew, and yields none to
 * it: that leaves it with how the stream ends.
 */
function delivered<T>(
  source: AsyncIterable<T>,
  deliver: (result: T) => Promise<void> | undefined,
): AsyncIterable<never> {
  const results = source[Symbol.asyncIterator]()
  let over = false
  const done = { done: true, value: undefined } as const
  const all: AsyncIterableIterator<never> = {
    async next() {
      for (let one = await results.next(); one.done !== true && !over; one = await results.next()) {
        const pending = deliver(one.value)
        if (pending !== undefined) await pending
      }
      return done
    },
    async return() {
      over = true
      await results.return?.()
      return done
    },
    [Symbol.asyncIterator]: () => all,
  }
  return all
}
