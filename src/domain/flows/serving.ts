import type { Store } from '../../db/client.ts'
import type { SessionAffinity } from '../../rules/wanted.ts'

/** What one cluster sends the connections of a load balancer to, by the last that was heard of it. */
export type Serving = {
  /** The affinity that it keeps, whatever was asked for. */
  affinity: SessionAffinity
  /** The ids of the backends that its rule lists. */
  backends: string[]
}

/**
 * By load balancer, the clusters that serve it, ordered by name; one that no cluster serves isn't in
 * the answer. `project` null: of all projects.
 */
export async function readServing(
  store: Store,
  { project, ids }: { project: string | null; ids: string[] },
): Promise<Map<string, Serving[]>> {
  const { rows } = await store.pool.query<{ id: string; serving: Serving[] }>({
    name: 'read-serving',
    text: `
SELECT lb.id, json_agg(json_build_object(
  'affinity', CASE WHEN placement.report #>> '{affinity,status}' = 'TRUE' THEN lb.session_affinity ELSE 'NONE' END,
  'backends', listed.ids) ORDER BY cluster.name) AS serving
FROM load_balancer lb
JOIN placement ON placement.load_balancer_id = lb.id
JOIN cluster ON cluster.id = placement.cluster_id
CROSS JOIN LATERAL (
  SELECT json_agg(key ORDER BY key) AS ids FROM jsonb_each(placement.report -> 'backends')
  WHERE (value ->> 'serving')::boolean) AS listed
WHERE lb.id = ANY ($1::uuid[]) AND ($2::text IS NULL OR lb.project = $2) AND listed.ids IS NOT NULL
GROUP BY lb.id`,
    values: [ids, project],
  })
  return new Map(rows.map(({ id, serving }) => [id, serving]))
}
