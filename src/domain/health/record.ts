import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { transaction } from '../../db/transaction.ts'
import type { Reason } from '../../rules/reasons.ts'
import { appendEvent, type FieldChange, SYSTEM } from '../events/append.ts'
import { hint } from '../hints.ts'
import { refold } from '../loadBalancers/refold.ts'
import { LeaseLost, type Ownership } from '../placements/ownership.ts'
import type { HealthState } from '../records.ts'
import { REST } from '../rests.ts'
import type { Flaps } from './flapping.ts'

/** What a backend's health becomes; `known` is the mark that this was judged from. */
export type Transition = {
  id: string
  known: string
  state: HealthState
  reason: Reason
  message: string
  /** Absent: how it came and went is forgotten. */
  flaps?: Flaps
}

type Moved = {
  id: string
  address: string
  before: HealthState
  messageBefore: string
  state: HealthState
  message: string
  mark: string
}
type Answer =
  | { outcome: 'gone' | 'lease-lost' | 'stale' }
  | { outcome: 'resting'; milliseconds: number }
  | {
      outcome: 'written'
      version: number
      project: string
      name: string
      generation: number
      /** Other backends serve now. */
      rests: boolean
      moved: Moved[]
    }

const EVENTS = {
  HEALTHY: ['BackendHealthy', 'healthy'],
  UNHEALTHY: ['BackendUnhealthy', 'unhealthy'],
  UNKNOWN: ['BackendHealthUnknown', 'of unknown health'],
  NOT_CHECKED: ['BackendNotChecked', 'not checked any more'],
} as const satisfies Record<HealthState, readonly [string, string]>

export type Recorded = {
  /** The new marks of those that were written, by backend. */
  marks: Map<string, string>
  /** The load balancer rests for so long (ms) now: after this, or so that nothing was written. */
  resting: number | undefined
}

/** How many addresses a message names before it only counts them. */
const NAMED = 3

/**
 * Writes what became of backends of one load balancer: with an event for each new state, its status
 * folded anew, and its placements asked where other backends serve now. Those without a new mark were
 * changed by somebody meanwhile (or the load balancer was), and have to be judged from how they are now.
 * Where others serve now the load balancer rests for `rest` ms; one that rests is changed only by what
 * has `waited` for that already. Throws `LeaseLost`.
 */
export async function recordHealth(
  store: Store,
  owner: Ownership,
  loadBalancer: { id: string; rulesGeneration: number },
  transitions: Transition[],
  { rest, waited } = { rest: REST, waited: true },
): Promise<Recorded> {
  const answer = await transaction<Answer | undefined>(store, async (client) => {
    const { rows } = await client.query<{ answer: Answer }>({
      name: 'record-health',
      text: 'SELECT record_health($1, $2, $3, $4, $5, $6, $7) AS answer',
      values: [
        owner.cluster,
        owner.epoch,
        loadBalancer.id,
        loadBalancer.rulesGeneration,
        JSON.stringify(transitions),
        rest,
        waited,
      ],
    })
    const answer = rows[0]?.answer
    if (answer?.outcome === 'lease-lost') {
      throw new LeaseLost(`cluster ${owner.cluster} has another owner`)
    }
    if (answer?.outcome !== 'written') return answer
    await announce(client, loadBalancer.id, answer)
    await refold(client, loadBalancer.id, { announce: false })
    return answer
  })
  if (answer?.outcome === 'resting') return { marks: new Map(), resting: answer.milliseconds }
  if (answer?.outcome !== 'written') return { marks: new Map(), resting: undefined }
  hint(store)
  return {
    marks: new Map(answer.moved.map(({ id, mark }) => [id, mark])),
    resting: answer.rests ? rest : undefined,
  }
}

async function announce(
  client: PoolClient,
  id: string,
  written: Extract<Answer, { outcome: 'written' }>,
): Promise<void> {
  const { project, name, generation, moved } = written
  const states = [...new Set(moved.map(({ state }) => state))]
  for (const [index, state] of states.entries()) {
    const alike = moved.filter((each) => each.state === state)
    const [reason, words] = EVENTS[state]
    await appendEvent(client, {
      project,
      objectKind: 'LoadBalancer',
      objectId: id,
      version: written.version - states.length + 1 + index,
      generation,
      reason,
      message: sentence(name, words, alike),
      actor: SYSTEM,
      changes: alike.flatMap(changesOf),
    })
  }
}

function sentence(name: string, words: string, moved: Moved[]): string {
  const why = moved[0]?.message ?? ''
  if (moved.length === 1) {
    return `Backend ${moved[0]?.address} of load balancer "${name}" is ${words}: ${why}`
  }
  const named = moved.slice(0, NAMED).map(({ address }) => address)
  const more = moved.length > NAMED ? ` and ${moved.length - NAMED} more` : ''
  return `${moved.length} backends of load balancer "${name}" are ${words} (${named.join(', ')}${more}), the first because: ${why}`
}

const changesOf = ({ address, before, messageBefore, state, message }: Moved): FieldChange[] => [
  { path: ['backends', address, 'health', 'state'], before, after: state },
  { path: ['backends', address, 'health', 'message'], before: messageBefore, after: message },
]
