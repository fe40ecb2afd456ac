import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { rollback, transaction } from '../../db/transaction.ts'
import { hint } from '../hints.ts'
import { isId } from '../ids.ts'
import { type Asked, askLiving, askThese, deriveAtFirst, livingIn } from '../placements/later.ts'
import { ClusterInUse, NotFound, Refusal, Refused, ValidationFailed } from '../refusals.ts'
import { refoldReservations } from '../reservations/refold.ts'
import type { ClusterMode, ClusterRecord } from './clusterRecord.ts'
import { contextIssues, readClusters } from './clusters.ts'

export type UpdateClusterInput = {
  id: string
  mode?: ClusterMode | null | undefined
  context?: string | null | undefined
  servesIPv4?: boolean | null | undefined
  resolvesRemoteBackends?: boolean | null | undefined
  hasProber?: boolean | null | undefined
  /** Believes that what vanished from the inventory is gone. */
  acceptInventory?: boolean
  /** Lets the next sweep take what has no owner, and write over what is newer than the store. */
  allowSweep?: boolean
}

type Row = { name: string; mode: ClusterMode; forgotten: boolean; answers: boolean }

/**
 * Changes what is given. Load balancers that a change of mode is about are derived anew: before it answers
 * where that takes no longer than `patience` (ms), else the rest of them by workers.
 */
export async function updateCluster(
  store: Store,
  input: UpdateClusterInput,
  patience?: number,
): Promise<{ cluster: { id: string } } | Refusal> {
  const { id } = input
  const issues = input.context == null ? [] : contextIssues(input.context)
  const answer = await transaction<Refusal | { moved: Asked[] }>(store, async (client) => {
    // Before the cluster's row is locked, which its worker has to write every three seconds.
    const asked = (await wouldMove(client, input)) ? await askLiving(client, id) : undefined
    const cluster = await lockCluster(client, id)
    if (cluster instanceof Refusal) return rollback(cluster)
    if (issues.length > 0) return rollback(new ValidationFailed(issues))
    const mode = input.mode ?? cluster.mode
    if (cluster.forgotten && input.mode != null) return rollback(forgotten(cluster.name))
    await client.query(
      `UPDATE cluster SET mode = $2,
         cordoned_since = CASE WHEN $2 = 'ACTIVE' THEN NULL ELSE coalesce(cordoned_since, clock_timestamp()) END,
         context = coalesce($3, context), serves_ipv4 = coalesce($4, serves_ipv4),
         resolves_remote_backends = coalesce($5, resolves_remote_backends),
         has_prober = coalesce($6, has_prober),
         sweep_allowed_at = CASE WHEN $7 THEN clock_timestamp() ELSE sweep_allowed_at END,
         inventory_accepted = inventory_accepted OR $8
       WHERE id = $1`,
      [
        id,
        mode,
        input.context ?? null,
        input.servesIPv4 ?? null,
        input.resolvesRemoteBackends ?? null,
        input.hasProber ?? null,
        input.allowSweep ?? false,
        input.acceptInventory ?? false,
      ],
    )
    return { moved: mode === cluster.mode ? [] : (asked ?? (await askLiving(client, id))) }
  })
  if (answer instanceof Refusal) return answer
  await deriveAtFirst(store, answer.moved, patience)
  hint(store)
  return { cluster: { id } }
}

/**
 * Takes a cluster out for good, once nothing of ours can be left there. Answers it as it was last; load
 * balancers are derived anew as by `updateCluster`.
 */
export async function removeCluster(
  store: Store,
  id: string,
  patience?: number,
): Promise<{ cluster: ClusterRecord } | Refusal> {
  type Removed = { cluster: ClusterRecord; affected: Asked[] }
  const answer = await transaction<Refusal | Removed>(store, async (client) => {
    const cluster = await lockCluster(client, id)
    if (cluster instanceof Refusal) return rollback(cluster)
    const last = (await readClusters(store, [id], client)).get(id)
    if (last === undefined) return rollback(noCluster(id))
    if (last.state === 'DRAINING' || last.rules > 0) {
      return rollback(new ClusterInUse(cluster.name, last.rules))
    }
    if (last.state !== 'DRAINED' && last.state !== 'FORGOTTEN') {
      return rollback(
        new Refused('CLUSTER_NOT_DRAINED', {
          message: `Cluster "${cluster.name}" is ${last.state}.`,
          path: ['id'],
          hint: 'Set its mode to DRAINED with updateCluster, wait until its state is DRAINED, then remove it.',
        }),
      )
    }
    const affected = await askLiving(client, id)
    await client.query('DELETE FROM cluster WHERE id = $1', [id])
    return { cluster: last, affected }
  })
  if (answer instanceof Refusal) return answer
  await deriveAtFirst(store, answer.affected, patience)
  hint(store)
  return { cluster: answer.cluster }
}

type Forgotten = { leftovers: Leftover[]; asked: Asked[] }

/** A rule that a cluster may still carry. */
export type Leftover = { kind: 'NetworkRule'; name: string; address: string }

/**
 * Gives up on a cluster that can't be reached: its placements leave the status of their load balancers.
 * What may be left there stays held until the cluster answers again and was swept, or is told to be
 * `destroyed`. Answers what may be left; load balancers are derived anew as by `updateCluster`.
 */
export async function forgetCluster(
  store: Store,
  { id, destroyed }: { id: string; destroyed: boolean },
  patience?: number,
): Promise<{ cluster: { id: string }; leftovers: Leftover[] } | Refusal> {
  const affected = isId(id) ? await livingIn(store, id) : []
  const answer = await transaction<Refusal | Forgotten>(store, async (client) => {
    // Load balancers are locked before what belongs to them, always: see the functions' migration.
    await client.query(
      'SELECT FROM load_balancer WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE',
      [affected],
    )
    const cluster = await lockCluster(client, id)
    if (cluster instanceof Refusal) return rollback(cluster)
    if (!cluster.forgotten && cluster.answers) {
      return rollback(
        new Refused('CLUSTER_REACHABLE', {
          message: `Cluster "${cluster.name}" answers.`,
          path: ['id'],
          hint: 'Drain it instead: nothing is left behind then.',
        }),
      )
    }
    await client.query(
      `UPDATE cluster SET forgotten_at = coalesce(forgotten_at, clock_timestamp()),
         cordoned_since = coalesce(cordoned_since, clock_timestamp()), lease_until = NULL
       WHERE id = $1`,
      [id],
    )
    await client.query('DELETE FROM placement WHERE cluster_id = $1', [id])
    const holders = destroyed ? await closeAll(client, id) : []
    const { rows } = await client.query<Leftover>(
      `SELECT 'NetworkRule' AS kind, rule_name AS name, host(vip) AS address FROM hold
       WHERE cluster_id = $1 AND gone_at IS NULL ORDER BY vip, rule_name`,
      [id],
    )
    return { leftovers: rows, asked: await askThese(client, [...affected, ...holders]) }
  })
  if (answer instanceof Refusal) return answer
  await deriveAtFirst(store, answer.asked, patience)
  hint(store)
  return { cluster: { id }, leftovers: answer.leftovers }
}

/** Closes every hold in a cluster that is no more. Answers the load balancers they were of. */
async function closeAll(client: PoolClient, cluster: string): Promise<string[]> {
  const { rows } = await client.query<{ id: string; reserved: boolean }>(
    `UPDATE hold SET gone_at = clock_timestamp() WHERE cluster_id = $1 AND gone_at IS NULL
     RETURNING load_balancer_id AS id, family(vip) = 4 AS reserved`,
    [cluster],
  )
  // Whoever waited for one of the addresses may have it now.
  await client.query(
    `UPDATE placement SET asked = asked + 1, due = clock_timestamp()
     WHERE placed AND load_balancer_id IN (
       SELECT reservation.load_balancer_id FROM ipv4_reservation reservation
       JOIN hold ON hold.vip = reservation.address AND hold.cluster_id = $1)`,
    [cluster],
  )
  const reserved = rows.flatMap(({ id, reserved }) => (reserved ? id : []))
  await refoldReservations(client, [...new Set(reserved)])
  return rows.map(({ id }) => id)
}

async function wouldMove(
  client: PoolClient,
  { id, mode }: Pick<UpdateClusterInput, 'id' | 'mode'>,
): Promise<boolean> {
  if (mode == null || !isId(id)) return false
  const { rows } = await client.query('SELECT FROM cluster WHERE id = $1 AND mode <> $2', [
    id,
    mode,
  ])
  return rows.length > 0
}

async function lockCluster(client: PoolClient, id: string): Promise<Row | NotFound> {
  if (!isId(id)) return noCluster(id)
  const { rows } = await client.query<Row>(
    `SELECT name, mode, forgotten_at IS NOT NULL AS forgotten,
       unreachable_since IS NULL AND coalesce(lease_until > clock_timestamp(), false) AS answers
     FROM cluster WHERE id = $1 FOR NO KEY UPDATE`,
    [id],
  )
  return rows[0] ?? noCluster(id)
}

const noCluster = (id: string): NotFound =>
  new NotFound({
    message: 'There is no such cluster.',
    path: ['id'],
    hint: 'List them by the query clusters.',
    missingId: id,
  })

const forgotten = (name: string): Refused =>
  new Refused('CLUSTER_FORGOTTEN', {
    message: `Cluster "${name}" was forgotten.`,
    path: ['mode'],
    hint: 'Register it again under its name: it is swept, then used as any other.',
  })
