import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { rollback, transaction } from '../../db/transaction.ts'
import { inTurn } from '../../db/turns.ts'
import { appendEvent, type FieldChange } from '../events/append.ts'
import type { EventReason } from '../events/reasons.ts'
import { hint } from '../hints.ts'
import { isId } from '../ids.ts'
import type { ValidationIssue } from '../input.ts'
import { carryTrace } from '../placements/trace.ts'
import type { Planned } from '../plans/plan.ts'
import { rehearse } from '../plans/rehearse.ts'
import type { About } from '../plans/scene.ts'
import type { LoadBalancerRecord } from '../records.ts'
import {
  BeingDeleted,
  GenerationConflict,
  NotFound,
  NotReleased,
  Refusal,
  ValidationFailed,
} from '../refusals.ts'
import { regionOf } from '../regions.ts'
import type { Scope } from '../scope.ts'
import { finishDeletion } from './finish.ts'
import { readForFold, refold } from './refold.ts'
import { type StoredLoadBalancer, toRecord } from './stored.ts'

/** What a change of a load balancer does, decided from how it is now. */
export type Decision = {
  /** What is told in the history; empty: nothing changes, and nothing is written. */
  changes: FieldChange[]
  reason: EventReason
  message: string
  /** Whether anything in a cluster has to change. */
  touchesRules: boolean
  /** It was made before and is only answered again: nothing can be in conflict with it. */
  repeated?: boolean
  /** Writes the fields and backends; generation, version and placements are done for it. */
  write: (client: PoolClient) => Promise<void>
}

export type Ask = {
  id: string
  /** Names the argument that held the id. */
  path: string[]
  expectedGeneration: number | null | undefined
  /** Tells that what the input names of the load balancer isn't there. */
  missing?: (current: StoredLoadBalancer) => NotFound | undefined
  /** Everything that isn't valid in the input, given what it is merged with. */
  issues: (current: StoredLoadBalancer) => ValidationIssue[]
  /** May be asked of one that is being deleted too. */
  evenDeleting?: boolean
  /** Only the plan is wanted: what would be done is done and undone. */
  validateOnly?: boolean | undefined
  /** Other load balancers that change with it: they are locked with it, in order. */
  with?: { id: string; path: string[] }[]
  /** What else the change is about, for its plan. */
  reservations?: string[]
  named?: About['named']
}

/**
 * Makes one change of a load balancer as one transaction: released, visible, valid, then what
 * `decide` refuses (what only the store knows to be invalid, quota), then conflicts. Changes of one load
 * balancer queue on its row. With `validateOnly` the answer is the plan, and nothing is changed.
 */
export async function changeLoadBalancer(
  store: Store,
  scope: Scope,
  ask: Ask,
  decide: (
    current: StoredLoadBalancer,
    client: PoolClient,
  ) => Decision | Refusal | Promise<Decision | Refusal>,
): Promise<{ loadBalancer: LoadBalancerRecord } | Planned | Refusal> {
  const outcome = await inTurn(store, scope.project, () =>
    transaction<StoredLoadBalancer | Planned | Refusal>(store, async (client) => {
      const refused = await admit(client, scope, ask)
      if (refused) return rollback(refused)
      const read = await readForFold(client, ask.id)
      if (read === undefined) return rollback(notFound(ask))
      const current = read.stored
      const missing = ask.missing?.(current)
      if (missing) return rollback(missing)
      const issues = ask.issues(current)
      if (issues.length > 0) return rollback(new ValidationFailed(issues))
      const decision = await decide(current, client)
      if (decision instanceof Refusal) return rollback(decision)
      const conflict = decision.repeated ? undefined : conflictOf(current, ask)
      if (conflict) return rollback(conflict)
      if (ask.validateOnly) return rollback(await plan(client, scope, ask, current, decision))
      return make(client, scope, current, decision)
    }),
  )
  if (outcome instanceof Refusal || 'plan' in outcome) return outcome
  hint(store)
  return { loadBalancer: toRecord(outcome, await regionOf(store, outcome.regionId)) }
}

/** Does what was decided; the load balancer as it is then, and was last where that was its end. */
async function make(
  client: PoolClient,
  scope: Scope,
  current: StoredLoadBalancer,
  decision: Decision,
): Promise<StoredLoadBalancer> {
  if (decision.changes.length === 0) return current
  await commit(client, scope, current, decision)
  const changed = (await readForFold(client, current.id))?.stored
  await finishDeletion(client, current.id)
  return changed ?? current
}

async function plan(
  client: PoolClient,
  scope: Scope,
  ask: Ask,
  current: StoredLoadBalancer,
  decision: Decision,
): Promise<Planned | Refusal> {
  const { reservations = [], named = new Map() } = ask
  const others = (ask.with ?? []).map(({ id }) => id)
  const about = { loadBalancers: [current.id, ...others], reservations, named }
  return rehearse(client, about, async () => {
    await make(client, scope, current, decision)
    return decision.changes
  })
}

/** Released, then visible; locks the load balancer's row. */
async function admit(client: PoolClient, scope: Scope, ask: Ask): Promise<Refusal | undefined> {
  const project = await client.query<{ released: boolean }>({
    name: 'is-released',
    text: 'SELECT released FROM project WHERE name = $1 FOR KEY SHARE',
    values: [scope.project],
  })
  if (!project.rows[0]?.released) return new NotReleased(scope.project)
  const all = [{ id: ask.id, path: ask.path }, ...(ask.with ?? [])]
  const unknown = all.find(({ id }) => !isId(id))
  if (unknown) return notFound(unknown)
  const ids = all.map(({ id }) => id)
  // Changes within a VPC queue: they ask each other's placements, and share the limit of its VIPs.
  await client.query({
    name: 'lock-vpc-of-load-balancer',
    text: `
SELECT FROM vpc WHERE id IN (SELECT vpc_id FROM load_balancer WHERE id = ANY ($1::uuid[]) AND project = $2)
ORDER BY id FOR NO KEY UPDATE`,
    values: [ids, scope.project],
  })
  const locked = await client.query<{ id: string }>({
    name: 'lock-load-balancer',
    text: `
SELECT id FROM load_balancer WHERE id = ANY ($1::uuid[]) AND project = $2 ORDER BY id FOR NO KEY UPDATE`,
    values: [ids, scope.project],
  })
  const found = new Set(locked.rows.map(({ id }) => id))
  const missing = all.find(({ id }) => !found.has(id))
  return missing && notFound(missing)
}

const notFound = (ask: { id: string; path: string[] }): NotFound =>
  new NotFound({
    message: 'There is no such load balancer.',
    path: ask.path,
    hint: 'List the load balancers of your project by the query loadBalancers.',
    missingId: ask.id,
  })

function conflictOf(current: StoredLoadBalancer, ask: Ask): Refusal | undefined {
  if (current.deletingSince !== null && !ask.evenDeleting) {
    return new BeingDeleted(current.deletingSince)
  }
  const expected = ask.expectedGeneration
  if (expected !== null && expected !== undefined && expected !== current.generation) {
    return new GenerationConflict(expected, current.generation)
  }
  return undefined
}

/** Counts and writes what was decided, asks whom it concerns, and folds. The caller has locked the row. */
export async function commit(
  client: PoolClient,
  scope: Scope,
  current: StoredLoadBalancer,
  decision: Decision,
): Promise<void> {
  await client.query({
    name: 'count-change',
    text: `
UPDATE load_balancer SET generation = generation + 1, version = version + 1, updated_at = clock_timestamp(),
  rules_generation = CASE WHEN $2 THEN generation + 1 ELSE rules_generation END WHERE id = $1`,
    values: [current.id, decision.touchesRules],
  })
  await decision.write(client)
  if (decision.touchesRules) {
    const { id, protocol, port } = current
    await client.query('SELECT ask_rivals($1, $2, $3), ask_placements($1)', [id, protocol, port])
  }
  await appendEvent(client, {
    project: current.project,
    objectKind: 'LoadBalancer',
    objectId: current.id,
    version: current.version + 1,
    generation: current.generation + 1,
    reason: decision.reason,
    message: decision.message,
    actor: scope.actor,
    changes: decision.changes,
  })
  if (decision.touchesRules) await carryTrace(client, current.id, scope.trace)
  await refold(client, current.id, { announce: false })
}
