import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import { rollback, transaction } from '../../db/transaction.ts'
import { inTurn } from '../../db/turns.ts'
import { appendEvent } from '../events/append.ts'
import { hint } from '../hints.ts'
import { findKey, hashOf, keepKey } from '../idempotency.ts'
import { newId } from '../ids.ts'
import { askable, invalidValues, type ValidationIssue } from '../input.ts'
import { byKey } from '../labels.ts'
import { quotaExceeded } from '../loadBalancers/createRefusals.ts'
import type { Planned } from '../plans/plan.ts'
import type { ReservationRecord } from '../records.ts'
import {
  IdempotencyKeyReused,
  NotFound,
  NotReleased,
  PoolExhausted,
  Refusal,
  ValidationFailed,
} from '../refusals.ts'
import type { Scope } from '../scope.ts'
import { idempotencyKeyIssues, textIssues } from '../texts.ts'
import { rehearseReservation, reservationNameTaken } from './change.ts'
import type { CreateIPv4ReservationInput } from './inputs.ts'
import { readReservations } from './read.ts'

const MUTATION = 'createIPv4Reservation'
const RESOURCE = 'networking.datumapis.com/ipv4reservations'

/** Reserves the longest-free IPv4 address of a region for a project; with `validateOnly`, tells which. */
export async function createIPv4Reservation(
  store: Store,
  scope: Scope,
  input: CreateIPv4ReservationInput,
): Promise<{ reservation: ReservationRecord } | Planned | Refusal> {
  const issues = [
    ...invalidValues(input),
    ...textIssues(input),
    ...idempotencyKeyIssues(input.idempotencyKey),
  ]
  const id = newId()
  try {
    const outcome = await inTurn(store, scope.project, () =>
      transaction<string | Planned | Refusal>(store, async (client) => {
        const admitted = await admit(client, scope, input, issues)
        if (admitted instanceof Refusal) return rollback(admitted)
        const make = async () => {
          if ('existing' in admitted) return []
          return (await write(client, scope, input, id, admitted.regionId)) ?? []
        }
        if (input.validateOnly) return rollback(await rehearseReservation(client, id, make))
        if ('existing' in admitted) return admitted.existing
        const refused = await write(client, scope, input, id, admitted.regionId)
        return refused ? rollback(refused) : id
      }),
    )
    if (typeof outcome !== 'string') return outcome
    hint(store)
    const found = await readReservations(store, { project: scope.project, ids: [outcome] })
    const reservation = found.get(outcome)
    return reservation ? { reservation } : keyedOneIsGone(outcome)
  } catch (error) {
    if (violatedConstraint(error) === 'ipv4_reservation_name') {
      return reservationNameTaken(String(input.name))
    }
    throw error
  }
}

/** Released, visible, valid, within quota, free of conflicts: the region, or what the key made before. */
async function admit(
  client: PoolClient,
  scope: Scope,
  input: CreateIPv4ReservationInput,
  issues: ValidationIssue[],
): Promise<{ regionId: string } | { existing: string } | Refusal> {
  const project = await client.query<{ released: boolean }>(
    'SELECT released FROM project WHERE name = $1 FOR NO KEY UPDATE',
    [scope.project],
  )
  if (!project.rows[0]?.released) return new NotReleased(scope.project)
  const region = await client.query<{ id: string }>('SELECT id FROM region WHERE code = $1', [
    askable(input.region),
  ])
  const regionId = region.rows[0]?.id
  if (regionId === undefined) return regionNotFound(input.region)
  if (issues.length > 0) return new ValidationFailed(issues)
  const key = input.idempotencyKey ?? null
  const used = key === null ? undefined : await findKey(client, scope.project, MUTATION, key)
  if (used?.inputHash === hashOf(meant(input))) return { existing: used.objectId }
  const quota = await client.query<{ used: number; limit: number | null }>(
    `SELECT count(*)::integer AS used, quota_limit($1, $3, $2) AS limit
     FROM ipv4_reservation WHERE project = $1 AND region_id = $2`,
    [scope.project, regionId, RESOURCE],
  )
  const { used: count = 0, limit = null } = quota.rows[0] ?? {}
  if (limit !== null && count >= limit) {
    return quotaExceeded({ resource: RESOURCE, limit, used: count })
  }
  if (used !== undefined) return new IdempotencyKeyReused()
  const taken = await client.query(
    'SELECT FROM ipv4_reservation WHERE project = $1 AND region_id = $2 AND name = $3',
    [scope.project, regionId, input.name],
  )
  return taken.rows.length > 0 ? reservationNameTaken(String(input.name)) : { regionId }
}

/** The input with its defaults, but for the key itself. */
const meant = (input: CreateIPv4ReservationInput) => ({
  name: input.name,
  region: input.region,
  displayName: input.displayName ?? null,
  description: input.description ?? null,
  labels: byKey(input.labels ?? []),
  deletionProtection: input.deletionProtection ?? false,
})

/** Takes an address and writes the reservation; refuses where there is none. */
async function write(
  client: PoolClient,
  scope: Scope,
  input: CreateIPv4ReservationInput,
  id: string,
  regionId: string,
): Promise<Refusal | undefined> {
  const allocated = await client.query<{ address: string | null }>(
    'SELECT host(allocate_ipv4_address($1, $2, $3)) AS address',
    [regionId, id, scope.project],
  )
  const address = allocated.rows[0]?.address ?? null
  if (address === null) return new PoolExhausted(input.region, 'IPV4')
  await client.query(
    `INSERT INTO ipv4_reservation (id, project, region_id, name, display_name, description, labels,
       address, deletion_protection, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp(), clock_timestamp())`,
    [
      id,
      scope.project,
      regionId,
      input.name,
      input.displayName ?? null,
      input.description ?? null,
      JSON.stringify(input.labels ?? []),
      address,
      input.deletionProtection ?? false,
    ],
  )
  const key = input.idempotencyKey ?? null
  if (key !== null) {
    const row = { project: scope.project, mutation: MUTATION, key }
    await keepKey(client, { ...row, inputHash: hashOf(meant(input)), objectId: id })
  }
  await appendEvent(client, {
    project: scope.project,
    objectKind: 'IPv4Reservation',
    objectId: id,
    version: 1,
    generation: 1,
    reason: 'IPv4ReservationCreated',
    message: `IPv4 reservation "${String(input.name)}" (${address}) was created.`,
    actor: scope.actor,
  })
  return undefined
}

const regionNotFound = (code: string): NotFound =>
  new NotFound({
    message: `There is no region "${code}".`,
    path: ['region'],
    hint: 'List the regions by the query regions.',
    missingId: null,
  })

const keyedOneIsGone = (id: string): NotFound =>
  new NotFound({
    message: 'The reservation that this idempotency key made is gone.',
    path: ['idempotencyKey'],
    hint: 'Use a new key to make a new one.',
    missingId: id,
  })
