import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import { rollback, transaction } from '../../db/transaction.ts'
import { inTurn } from '../../db/turns.ts'
import { appendEvent, type FieldChange, fieldChanges } from '../events/append.ts'
import type { EventReason } from '../events/reasons.ts'
import { hint } from '../hints.ts'
import { isId } from '../ids.ts'
import { invalidValues, setAndReset, type ValidationIssue } from '../input.ts'
import type { Planned } from '../plans/plan.ts'
import { rehearse } from '../plans/rehearse.ts'
import type { ReservationRecord } from '../records.ts'
import {
  DeletionProtected,
  GenerationConflict,
  NameTaken,
  NotFound,
  NotReleased,
  Refusal,
  ReservationInUse,
  ValidationFailed,
} from '../refusals.ts'
import type { Scope } from '../scope.ts'
import { textIssues } from '../texts.ts'
import type {
  DeleteIPv4ReservationInput,
  IPv4ReservationField,
  UpdateIPv4ReservationInput,
} from './inputs.ts'
import { readReservations } from './read.ts'

type Changed = { reservation: ReservationRecord }

/** Fields absent or null are kept, `reset` ones go back to their defaults. */
export async function updateIPv4Reservation(
  store: Store,
  scope: Scope,
  input: UpdateIPv4ReservationInput,
): Promise<Changed | Planned | Refusal> {
  const issues = [...invalidValues(input), ...textIssues(input), ...setAndReset(input, FIELD_OF)]
  try {
    const outcome = await inTurn(store, scope.project, () =>
      transaction<Changed | Planned | Refusal>(store, async (client) => {
        const current = await admitReservation(store, client, scope, input.id, 'id', issues)
        if (current instanceof Refusal) return rollback(current)
        const conflict = generationConflict(current, input.expectedGeneration)
        if (conflict) return rollback(conflict)
        const before = fieldsOf(current)
        const after = merged(before, input)
        const changes = fieldChanges(before, after)
        const make = async () => {
          if (changes.length > 0) await write(client, scope, current, after, changes)
          return changes
        }
        if (input.validateOnly) return rollback(await rehearseReservation(client, current.id, make))
        await make()
        return { reservation: await again(store, client, current) }
      }),
    )
    if ('plan' in outcome) return outcome
    hint(store)
    return outcome
  } catch (error) {
    if (violatedConstraint(error) === 'ipv4_reservation_name') {
      return reservationNameTaken(String(input.name))
    }
    throw error
  }
}

const FIELD_OF = {
  DISPLAY_NAME: 'displayName',
  DESCRIPTION: 'description',
  LABELS: 'labels',
  DELETION_PROTECTION: 'deletionProtection',
} as const satisfies Record<IPv4ReservationField, keyof UpdateIPv4ReservationInput>

async function write(
  client: PoolClient,
  scope: Scope,
  current: ReservationRecord,
  after: Fields,
  changes: FieldChange[],
): Promise<void> {
  await client.query(
    `UPDATE ipv4_reservation SET name = $2, display_name = $3, description = $4, labels = $5,
           deletion_protection = $6 WHERE id = $1`,
    [
      current.id,
      after.name,
      after.displayName,
      after.description,
      JSON.stringify(after.labels),
      after.deletionProtection,
    ],
  )
  await countChange(client, scope, current, {
    reason: 'IPv4ReservationUpdated',
    message: `IPv4 reservation "${after.name}" was changed: ${changes.map(({ path }) => path.join('.')).join(', ')}.`,
    changes,
  })
}

/** The plan of a change of one reservation alone; see `rehearse`. */
export const rehearseReservation = (
  client: PoolClient,
  id: string,
  make: Parameters<typeof rehearse>[2],
): Promise<Planned | Refusal> =>
  rehearse(client, { loadBalancers: [], reservations: [id], named: new Map() }, make)

/** Gives the address back; only of a reservation that is bound to nothing. */
export async function deleteIPv4Reservation(
  store: Store,
  scope: Scope,
  input: DeleteIPv4ReservationInput,
): Promise<Changed | Planned | Refusal> {
  const outcome = await inTurn(store, scope.project, () =>
    transaction<Changed | Planned | Refusal>(store, async (client) => {
      const current = await admitReservation(store, client, scope, input.id, 'id', [])
      if (current instanceof Refusal) return rollback(current)
      const conflict = generationConflict(current, input.expectedGeneration)
      if (conflict) return rollback(conflict)
      const holder = current.bindings.find(({ state }) => state !== 'UNBINDING')
      if (holder !== undefined) return rollback(inUse(current, holder.loadBalancer, 'id'))
      if (current.deletionProtection) return rollback(new DeletionProtected())
      const make = async () => {
        await remove(client, scope, current)
        return []
      }
      if (input.validateOnly) return rollback(await rehearseReservation(client, current.id, make))
      await make()
      return { reservation: current }
    }),
  )
  if ('plan' in outcome) return outcome
  hint(store)
  return outcome
}

async function remove(client: PoolClient, scope: Scope, current: ReservationRecord): Promise<void> {
  await client.query('DELETE FROM ipv4_reservation WHERE id = $1', [current.id])
  // A cluster that may still carry it keeps it from others by its hold, however long that takes.
  await client.query(
    `UPDATE ipv4_address SET reservation_id = NULL, last_project = $2,
         reusable_at = clock_timestamp() + make_interval(secs => pool.cool_down_seconds)
       FROM address_pool pool
       WHERE pool.id = ipv4_address.pool_id AND ipv4_address.reservation_id = $1`,
    [current.id, current.project],
  )
  await appendEvent(client, {
    project: current.project,
    objectKind: 'IPv4Reservation',
    objectId: current.id,
    version: current.version + 1,
    generation: current.generation,
    reason: 'IPv4ReservationDeleted',
    message: `IPv4 reservation "${current.name}" (${current.address}) was deleted.`,
    actor: scope.actor,
    object: { ...current, version: current.version + 1 },
  })
}

/** Released, visible (its row is then locked), valid; the reservation as it is now. */
export async function admitReservation(
  store: Store,
  client: PoolClient,
  scope: Scope,
  id: string,
  path: string,
  issues: ValidationIssue[],
): Promise<ReservationRecord | Refusal> {
  if (!(await isReleased(client, scope.project))) return new NotReleased(scope.project)
  const current = await lockReservation(store, client, scope, id)
  if (current === undefined) return reservationNotFound(id, [path])
  return issues.length > 0 ? new ValidationFailed(issues) : current
}

/** Locks a reservation's row, and reads it after; undefined where the project has none of that id. */
export async function lockReservation(
  store: Store,
  client: PoolClient,
  scope: Scope,
  id: string,
): Promise<ReservationRecord | undefined> {
  if (!isId(id)) return undefined
  await client.query('SELECT FROM ipv4_reservation WHERE id = $1 AND project = $2 FOR UPDATE', [
    id,
    scope.project,
  ])
  return (await readReservations(store, { project: scope.project, ids: [id] }, client)).get(id)
}

/** Whether the project may change anything yet. */
export async function isReleased(client: PoolClient, project: string): Promise<boolean> {
  const { rows } = await client.query<{ released: boolean }>({
    name: 'is-released',
    text: 'SELECT released FROM project WHERE name = $1 FOR KEY SHARE',
    values: [project],
  })
  return rows[0]?.released ?? false
}

/** Counts an accepted change and writes its event. */
export async function countChange(
  client: PoolClient,
  scope: Scope,
  current: ReservationRecord,
  told: { reason: EventReason; message: string; changes: FieldChange[] },
): Promise<void> {
  await client.query(
    `UPDATE ipv4_reservation SET generation = generation + 1, version = version + 1,
       updated_at = clock_timestamp() WHERE id = $1`,
    [current.id],
  )
  await appendEvent(client, {
    project: current.project,
    objectKind: 'IPv4Reservation',
    objectId: current.id,
    version: current.version + 1,
    generation: current.generation + 1,
    actor: scope.actor,
    ...told,
  })
}

/** The reservation as the transaction has it now. */
export async function again(
  store: Store,
  client: PoolClient,
  { id, project }: ReservationRecord,
): Promise<ReservationRecord> {
  const record = (await readReservations(store, { project, ids: [id] }, client)).get(id)
  if (record === undefined) throw new Error(`reservation ${id} vanished in its own transaction`)
  return record
}

/** Refuses where somebody changed it meanwhile. */
export function generationConflict(
  current: ReservationRecord,
  expected: number | null | undefined,
): GenerationConflict | undefined {
  if (expected === null || expected === undefined || expected === current.generation) {
    return undefined
  }
  return new GenerationConflict(expected, current.generation)
}

/** No such reservation, or another project's: the same words. */
export const reservationNotFound = (id: string, path: string[]): NotFound =>
  new NotFound({
    message: 'There is no such IPv4 reservation.',
    path,
    hint: 'List the reservations of your project by the query ipv4Reservations.',
    missingId: id,
  })

/** Another reservation of the project has the name. */
export const reservationNameTaken = (name: string): NameTaken =>
  new NameTaken({
    message: `The region has an IPv4 reservation named "${name}" already.`,
    path: ['name'],
    hint: 'Choose another name.',
    takenName: name,
  })

/** It is bound; what was asked can't be done to it now. */
export const inUse = (
  current: ReservationRecord,
  holder: string,
  field = 'reservation',
): ReservationInUse =>
  new ReservationInUse({
    message: `The reservation "${current.name}" is bound to a load balancer.`,
    path: [field],
    hint: 'Unbind it there first.',
    reservationId: current.id,
    loadBalancerId: holder,
  })

type Fields = Pick<
  ReservationRecord,
  'name' | 'displayName' | 'description' | 'labels' | 'deletionProtection'
>

const fieldsOf = (current: ReservationRecord): Fields => ({
  name: current.name,
  displayName: current.displayName,
  description: current.description,
  labels: current.labels,
  deletionProtection: current.deletionProtection,
})

function merged(before: Fields, input: UpdateIPv4ReservationInput): Fields {
  const reset = new Set<IPv4ReservationField>(input.reset ?? [])
  return {
    name: typeof input.name === 'string' ? input.name : before.name,
    displayName: reset.has('DISPLAY_NAME') ? null : (input.displayName ?? before.displayName),
    description: reset.has('DESCRIPTION') ? null : (input.description ?? before.description),
    labels: reset.has('LABELS') ? [] : (input.labels ?? before.labels),
    deletionProtection: reset.has('DELETION_PROTECTION')
      ? false
      : (input.deletionProtection ?? before.deletionProtection),
  }
}
