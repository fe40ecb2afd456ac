import { randomUUID } from 'node:crypto'
import type { Span } from '@opentelemetry/api'
import { type ExecutionResult, GraphQLError } from 'graphql'
import type { Logger } from 'pino'
import { Refusal } from '../domain/refusals.ts'
import type { Noted } from '../schema/context.ts'
import { decodeId } from '../schema/ids.ts'
import { beginAnswer, endSpan, traceparentOf } from '../telemetry/traces.ts'
import type { Asked } from './asked.ts'
import type { ApiMetrics, Kind } from './metrics.ts'
import type { Admitted } from './scope.ts'

/** Names of operations are the clients' and may be long. */
const LONGEST_NAME = 80

export type Watching = { metrics: ApiMetrics; logger: Logger }

/** One request on its way: what is logged, counted and traced of it. */
export class Operation implements Noted {
  readonly requestId: string = randomUUID()
  readonly #with: Watching
  readonly #begun = performance.now()
  #kind: Kind = 'none'
  #name: string | null = null
  #admitted: Admitted | undefined
  #span: Span | undefined
  #refused = false
  #over = false

  constructor(watching: Watching) {
    this.#with = watching
  }

  /** What is to be carried along to where its changes are applied. */
  get trace(): string | undefined {
    return this.#span && traceparentOf(this.#span)
  }

  /** It is known what is asked for, and by whom; `traceparent` is what the client sent. */
  begin({ operation }: Asked, admitted: Admitted, traceparent: unknown): void {
    this.#kind = operation.operation
    this.#name = operation.name?.value.slice(0, LONGEST_NAME) ?? null
    this.#admitted = admitted
    const title = this.#name === null ? this.#kind : `${this.#kind} ${this.#name}`
    this.#span = beginAnswer(title, traceparent, {
      'graphql.operation.type': this.#kind,
      'nlb.request.id': this.requestId,
      ...(admitted.project === null ? {} : { 'nlb.project': admitted.project }),
    })
  }

  /** One mutation was answered, or failed; there may be several in one request. */
  answered(mutation: string, input: unknown, answer: unknown): void {
    const outcome = outcomeOf(answer)
    if (answer instanceof Refusal) {
      this.#refused = true
      this.#with.metrics.refused(answer.code)
    }
    const object = objectOf(answer) ?? subjectOf(input)
    if (object !== undefined) this.#span?.setAttribute('nlb.object.id', object)
    this.#with.logger.info(
      {
        requestId: this.requestId,
        mutation,
        operation: this.#name,
        project: this.#admitted?.project ?? null,
        caller: this.#admitted?.caller.subject,
        object: object ?? null,
        outcome,
        ms: Math.round(performance.now() - this.#begun),
      },
      'a mutation was answered',
    )
  }

  /** It was answered, with errors as clients see them. A stream is, when it begins. */
  end({ errors = [] }: Pick<ExecutionResult, 'errors'> = {}): void {
    if (this.#over) return
    this.#over = true
    const codes = errors.map(({ extensions }) => String(extensions['code']))
    for (const code of codes) this.#with.metrics.refused(code)
    const [first] = codes
    const failed = codes.includes(OURS) ? OURS : first
    const wrong = failed === OURS ? 'server_error' : 'client_error'
    const right = this.#refused ? 'refused' : 'ok'
    const outcome = failed === undefined ? right : wrong
    const seconds = (performance.now() - this.#begun) / 1000
    this.#with.metrics.requested(this.#kind, outcome, seconds)
    if (this.#span !== undefined) endSpan(this.#span, failed === OURS ? failed : undefined)
  }
}

const OURS = 'INTERNAL_SERVER_ERROR'

function outcomeOf(answer: unknown): string {
  if (answer instanceof Refusal) return answer.code
  if (answer instanceof GraphQLError) return String(answer.extensions['code'] ?? OURS)
  if (answer instanceof Error) return OURS
  return isRecord(answer) && 'plan' in answer ? 'PLANNED' : 'OK'
}

/** The UUID of what was changed: payloads name it first. */
function objectOf(answer: unknown): string | undefined {
  if (!isRecord(answer) || answer instanceof Refusal || answer instanceof Error) return undefined
  for (const one of Object.values(answer)) {
    if (isRecord(one) && typeof one['id'] === 'string') return one['id']
  }
  return undefined
}

/** The UUID of what a change was about, where its input names it. */
function subjectOf(input: unknown): string | undefined {
  if (!isRecord(input)) return undefined
  const { id, loadBalancer, reservation } = input
  for (const given of [id, loadBalancer, reservation]) {
    const decoded = typeof given === 'string' ? decodeId(given) : null
    if (decoded !== null) return decoded.uuid
  }
  return undefined
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null
