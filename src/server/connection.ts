import type { IncomingMessage } from 'node:http'
import type { ExecutionArgs, ExecutionResult, GraphQLError } from 'graphql'
import type { SubscribePayload } from 'graphql-ws'
import type { Clock } from '../schema/context.ts'
import { badUserInput, tooManyRequests } from '../schema/failures.ts'
import { askedIn } from './asked.ts'
import { type DocumentsByAudience, documentsFor } from './documents.ts'
import type { Places } from './limits/places.ts'
import type { Charged, Toll } from './limits/toll.ts'
import type { Operation } from './operation.ts'
import type { PersistedDocuments } from './persisted.ts'
import { Rights, whileRightsHold } from './rights.ts'
import { type Door, placeOf } from './scope.ts'
import type { Streams } from './streams.ts'

/** What a query or mutation cost, and how a stream is guarded, by what is executed. */
export const costs = new WeakMap<ExecutionArgs, Charged>()
export const guards = new WeakMap<
  ExecutionArgs,
  (source: AsyncIterable<ExecutionResult>) => AsyncIterable<ExecutionResult>
>()
/** What is noted of an operation, by what is executed. */
export const operations = new WeakMap<ExecutionArgs, Operation>()

type Parts = {
  door: Door
  documents: DocumentsByAudience
  persisted: PersistedDocuments
  toll: Toll
  streams: Streams
  clock: Clock
}

type Opened = {
  request: IncomingMessage
  /** The client's. */
  address: string | undefined
  /** Gives back its place among those who wait. */
  free: () => void
}

/** One websocket: who it belongs to, and what is under way on it. Everything refuses by throwing. */
export class Connection {
  readonly #parts: Parts
  readonly #opened: Opened
  readonly #place: string
  readonly #underWay = new Map<string, () => void>()
  #rights: Rights | undefined
  #free: (() => void) | undefined
  #closed = false

  constructor(parts: Parts, opened: Opened) {
    this.#parts = parts
    this.#opened = opened
    this.#place = placeOf(opened.request.url ?? '') ?? ''
  }

  /** Lets it in, as whom its first message or its headers tell; `close` ends it when that is over. */
  async admit(
    given: Readonly<Record<string, unknown>>,
    { places, close }: { places: Places; close: (error: GraphQLError) => void },
  ): Promise<void> {
    const { door, clock } = this.#parts
    const { request, address, free } = this.#opened
    const authorization = given['authorization'] ?? given['Authorization']
    const headers =
      typeof authorization === 'string' ? { ...request.headers, authorization } : request.headers
    const credentials = { headers, remoteAddress: address }
    const admitted = await door.admit(this.#place, credentials)
    const taken = places.take(admitted.caller.subject)
    if (taken === null) {
      throw tooManyRequests('You have too many sockets open; close one first.', 'sockets')
    }
    free()
    this.#free = taken
    this.#rights = new Rights({
      ...{ door, clock, credentials, admitted },
      place: this.#place,
      onLost: close,
    })
    // It may have gone while it was let in.
    if (this.#closed) this.close()
  }

  /** What to execute, or why not. */
  begin(
    id: string,
    payload: SubscribePayload,
    operation: Operation,
  ): ExecutionArgs | readonly GraphQLError[] {
    const { door, toll, streams, persisted } = this.#parts
    const rights = this.#rights
    if (rights === undefined) throw new Error('an operation before its connection')
    if (rights.lost !== undefined) throw rights.lost
    toll.requireBudget(this.#place)
    const { admitted } = rights
    const { query, variables, operationName, extensions } = payload
    const parameters = persisted.resolve({ query, variables, operationName, extensions })
    const documents = documentsFor(this.#parts.documents, admitted)
    const asked = toll.reading(this.#place, () => askedIn(parameters, documents))
    if (asked === undefined) {
      toll.takeForReading(this.#place, query)
      const { errors } = documents.check(String(parameters['query'] ?? ''))
      return errors.length > 0 ? errors : [badUserInput('The document has no such operation.')]
    }
    operation.begin(asked, admitted, extensions?.['traceparent'])
    const cost = toll.take(this.#place, asked.cost)
    const { schema, document } = asked
    const executed = (contextValue: unknown): ExecutionArgs => ({
      ...{ schema, document, contextValue },
      variableValues: asked.variables,
      operationName: asked.operationName,
      hideSuggestions: asked.hideSuggestions,
    })
    if (asked.operation.operation !== 'subscription') {
      const args = executed(door.context(admitted, operation))
      costs.set(args, cost)
      operations.set(args, operation)
      return args
    }
    const free = streams.take(admitted)
    const { permissions, forget } = rights.watched()
    this.#underWay.set(id, () => {
      forget()
      free()
    })
    const args = executed(door.context({ ...admitted, permissions }, operation))
    operations.set(args, operation)
    guards.set(args, (source) => whileRightsHold(rights, source).stream)
    return args
  }

  /** An operation is over. */
  end(id: string): void {
    this.#underWay.get(id)?.()
    this.#underWay.delete(id)
  }

  close(): void {
    this.#closed = true
    this.#rights?.close()
    this.#free?.()
    for (const id of [...this.#underWay.keys()]) this.end(id)
  }
}
