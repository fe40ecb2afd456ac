import type { Store } from '../../db/client.ts'
import type { Wanted, WantedBackend } from '../../rules/wanted.ts'
import { failsOpen } from '../folding/backends.ts'
import type { HealthState } from '../records.ts'

/** A placement as its worker takes it up. */
export type TakenPlacement = {
  wanted: Wanted
  /** The asked number that was applied last. */
  applied: number
  /** Holds of this load balancer that are open in this cluster: the VIP and the name of its rule. */
  holds: { vip: string; rule: string }[]
  /** The `traceparent` of the change that asked for it, while that isn't applied. */
  trace?: string | null
}

/** A placement as `wanted_json` answers it. */
export type WantedRow = {
  wanted: Omit<Wanted, 'backends'> & {
    applied: number
    holds: { vip: string; rule: string }[]
    /** null: none of its backends is unhealthy. */
    health: { enabled: number; notUnhealthy: number } | null
    minimumHealthyPercent: number
    backends: (Omit<WantedBackend, 'unhealthy'> & { healthState: HealthState })[]
  }
  /** The ids of the backends that the cluster doesn't take. */
  cordoned: string[]
}

/** A load balancer that is due in a cluster, and the number that was asked last. */
export type DuePlacement = { loadBalancer: string; asked: number }

/** By cluster, the load balancers that are due there, the longest due first; at most `limit` each. */
export async function readDue(
  store: Store,
  clusters: string[],
  limit: number,
): Promise<Map<string, DuePlacement[]>> {
  const { rows } = await store.pool.query<{ cluster: string; due: DuePlacement[] }>({
    name: 'read-due-placements',
    text: `
SELECT cluster, json_agg(json_build_object('loadBalancer', due.id, 'asked', due.asked) ORDER BY due.due) AS due
FROM unnest($1::uuid[]) AS cluster CROSS JOIN LATERAL (
  SELECT load_balancer_id AS id, asked, due FROM placement
  WHERE cluster_id = cluster AND due <= clock_timestamp() ORDER BY due LIMIT $2) AS due
GROUP BY cluster`,
    values: [clusters, limit],
  })
  return new Map(rows.map(({ cluster, due }) => [cluster, due]))
}

/** The ids of all load balancers that are, or were, placed in a cluster. */
export async function readPlaced(store: Store, cluster: string): Promise<string[]> {
  const { rows } = await store.pool.query<{ id: string }>(
    'SELECT load_balancer_id AS id FROM placement WHERE cluster_id = $1',
    [cluster],
  )
  return rows.map(({ id }) => id)
}

/** What is wanted now of some load balancers in a cluster; those without a placement there are left out. */
export async function readWanted(
  store: Store,
  cluster: string,
  ids: string[],
): Promise<Map<string, TakenPlacement>> {
  const { rows } = await store.pool.query<
    { id: string; trace: string | null; behind: boolean } & WantedRow
  >({
    name: 'read-wanted',
    text: 'SELECT id, wanted, cordoned::text[], trace, behind FROM wanted_json($1, $2::uuid[])',
    values: [cluster, ids],
  })
  return new Map(
    rows.map(({ id, trace, behind, ...row }) => {
      const taken = toTaken(row)
      if (behind) taken.wanted.storeBehind = true
      return [id, { ...taken, trace }]
    }),
  )
}

/**
 * What is wanted, with health and cordons judged: a backend that fails its check is out, unless
 * failing open, and so is one that the cluster doesn't take.
 */
export function toTaken({ wanted: row, cordoned }: WantedRow): TakenPlacement {
  const { applied, holds, health, minimumHealthyPercent, backends, ...wanted } = row
  const open =
    health !== null && failsOpen(health.enabled, health.notUnhealthy, minimumHealthyPercent)
  return {
    applied,
    holds,
    wanted: {
      ...wanted,
      backends: backends.map(({ healthState, ...backend }) => ({
        ...backend,
        ...(cordoned.includes(backend.id) ? { cordoned: true } : {}),
        unhealthy: healthState === 'UNHEALTHY' && !open,
      })),
    },
  }
}
