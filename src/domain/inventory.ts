import type { Store } from '../db/client.ts'
import { transaction } from '../db/transaction.ts'
import { newId } from './ids.ts'
import { rederive } from './placements/derive.ts'

/** A VPC as a cluster shows it; `project` undefined: the cluster doesn't say whose it is. */
export type SeenVpc = { ref: string; name: string; project: string | undefined }

/** An address of an attachment that is complete: in a VPC, on a node. */
export type SeenEndpoint = {
  attachmentUid: string
  attachmentNamespace: string
  attachmentName: string
  attachmentRef: string
  vpcRef: string
  address: string
  node: string
  egressKind: 'veth' | 'tap'
}

/**
 * Takes in VPCs. One that has an owner by its label (or its namespace's) belongs to that project,
 * which is known from then on; one that lost it stays with its project but is no longer certain.
 */
export async function recordVpcs(store: Store, seen: SeenVpc[]): Promise<void> {
  if (seen.length === 0) return
  const rows = seen.map((vpc) => ({ ...vpc, id: newId(), project: vpc.project ?? null }))
  await transaction(store, async (client) => {
    await client.query(
      `INSERT INTO project (name) SELECT DISTINCT project FROM jsonb_to_recordset($1) AS seen (project text)
       WHERE project IS NOT NULL ORDER BY project ON CONFLICT DO NOTHING`,
      [JSON.stringify(rows)],
    )
    await client.query(
      `INSERT INTO vpc (id, ref, name, project, owned)
       SELECT DISTINCT ON (ref) id, ref, name, project, project IS NOT NULL
       FROM jsonb_to_recordset($1) AS seen (id uuid, ref text, name text, project text) ORDER BY ref, project
       ON CONFLICT (ref) DO UPDATE
       SET name = excluded.name, project = coalesce(excluded.project, vpc.project), owned = excluded.owned
       WHERE (vpc.name, vpc.owned) IS DISTINCT FROM (excluded.name, excluded.owned)
         OR (excluded.project IS NOT NULL AND vpc.project IS DISTINCT FROM excluded.project)`,
      [JSON.stringify(rows)],
    )
  })
}

/**
 * Takes in what some attachments of a cluster carry now (`uids` without an endpoint carry nothing any
 * more), and derives the placements of every load balancer that has one of the changed addresses as
 * a backend. Answers how many load balancers that were.
 */
export async function recordEndpoints(
  store: Store,
  cluster: string,
  uids: string[],
  seen: SeenEndpoint[],
): Promise<number> {
  if (uids.length === 0) return 0
  const touched = await transaction(store, async (client) => {
    const { rows } = await client.query<{ id: string }>(
      `WITH seen AS (
         SELECT endpoint.*, vpc.id AS vpc_id
         FROM jsonb_to_recordset($3) AS endpoint ("attachmentUid" text, "attachmentNamespace" text,
           "attachmentName" text, "attachmentRef" text, "vpcRef" text, address inet, node text, "egressKind" text)
         JOIN vpc ON vpc.ref = endpoint."vpcRef"),
       vanished AS (
         DELETE FROM endpoint old
         WHERE old.cluster_id = $1 AND old.attachment_uid = ANY ($2::text[])
           AND NOT EXISTS (SELECT FROM seen WHERE seen."attachmentUid" = old.attachment_uid AND seen.address = old.address)
         RETURNING old.vpc_id, old.address),
       changed AS (
         INSERT INTO endpoint (cluster_id, attachment_uid, address, vpc_id, attachment_namespace,
           attachment_name, attachment_ref, node, egress_kind)
         SELECT DISTINCT ON ("attachmentUid", address) $1, "attachmentUid", address, vpc_id,
           "attachmentNamespace", "attachmentName", "attachmentRef", node, "egressKind"
         FROM seen ORDER BY "attachmentUid", address
         ON CONFLICT (cluster_id, attachment_uid, address) DO UPDATE
         SET vpc_id = excluded.vpc_id, attachment_ref = excluded.attachment_ref, node = excluded.node,
           egress_kind = excluded.egress_kind
         WHERE (endpoint.vpc_id, endpoint.attachment_ref, endpoint.node, endpoint.egress_kind)
           IS DISTINCT FROM (excluded.vpc_id, excluded.attachment_ref, excluded.node, excluded.egress_kind)
         RETURNING vpc_id, address)
       SELECT DISTINCT lb.id FROM (SELECT * FROM vanished UNION SELECT * FROM changed) AS moved
       JOIN backend ON backend.address = moved.address
       JOIN load_balancer lb ON lb.id = backend.load_balancer_id AND lb.vpc_id = moved.vpc_id
       ORDER BY lb.id`,
      [cluster, uids, JSON.stringify(seen)],
    )
    return rows
  })
  for (const { id } of touched) await rederive(store, id)
  return touched.length
}

/** The attachments of a cluster that the store knows endpoints of. */
export async function readKnownAttachments(store: Store, cluster: string): Promise<string[]> {
  const { rows } = await store.pool.query<{ uid: string }>(
    'SELECT DISTINCT attachment_uid AS uid FROM endpoint WHERE cluster_id = $1',
    [cluster],
  )
  return rows.map(({ uid }) => uid)
}
