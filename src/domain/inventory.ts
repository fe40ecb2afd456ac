import type { PoolClient } from 'pg'
import type { Store } from '../db/client.ts'
import { transaction } from '../db/transaction.ts'
import { newId } from './ids.ts'
import { rederive } from './placements/derive.ts'
import { demandEpoch, type Ownership } from './placements/ownership.ts'
import { REST } from './rests.ts'

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

/** What a cluster shows under one name; `vpc` undefined: nothing any more. */
export type Sighting = { namespace: string; name: string; vpc: SeenVpc | undefined }

/**
 * Takes in VPCs whose owner is certain, or that nobody owns (`project` undefined). One that had an
 * owner and lost it stays with its project but is no longer certain: changes are refused, what runs stays.
 */
export async function recordVpcs(store: Store, seen: SeenVpc[]): Promise<void> {
  if (seen.length === 0) return
  await transaction(store, (client) => writeVpcs(client, seen))
}

/**
 * Takes in what a cluster says of some VPCs. A VPC is a project's where every cluster that shows it
 * says so; where one says nothing or something else, or none shows it any more, it is nobody's.
 */
export async function recordSightings(
  store: Store,
  owner: Ownership,
  sightings: Sighting[],
): Promise<void> {
  if (sightings.length === 0) return
  const rows = sightings.map(({ namespace, name, vpc }) => ({
    namespace,
    name,
    ref: vpc?.ref ?? null,
    project: vpc?.project ?? null,
  }))
  await transaction(store, async (client) => {
    await demandEpoch(client, owner)
    // Two clusters that say something of one VPC at once would each miss the other.
    await client.query("SELECT pg_advisory_xact_lock(hashtext('vpc sightings'))")
    const { rows: touched } = await client.query<{ ref: string }>(
      `WITH told AS (
         SELECT * FROM jsonb_to_recordset($2) AS told (namespace text, name text, ref text, project text)),
       before AS (
         SELECT sighting.ref FROM vpc_sighting sighting JOIN told USING (namespace, name) WHERE cluster_id = $1),
       forgotten AS (
         DELETE FROM vpc_sighting sighting USING told
         WHERE sighting.cluster_id = $1 AND told.ref IS NULL
           AND (sighting.namespace, sighting.name) = (told.namespace, told.name)),
       noted AS (
         INSERT INTO vpc_sighting (cluster_id, namespace, name, ref, project)
         SELECT $1, namespace, name, ref, project FROM told WHERE ref IS NOT NULL
         ON CONFLICT (cluster_id, namespace, name) DO UPDATE
         SET ref = excluded.ref, project = excluded.project)
       SELECT ref FROM before UNION SELECT ref FROM told WHERE ref IS NOT NULL`,
      [owner.cluster, JSON.stringify(rows)],
    )
    const { rows: judged } = await client.query<SeenVpc & { project: string | null }>(
      `SELECT told.ref, coalesce(min(sighting.name), '') AS name,
         CASE WHEN count(*) = count(sighting.project) AND count(DISTINCT sighting.project) = 1
           THEN min(sighting.project) END AS project
       FROM unnest($1::text[]) AS told (ref) LEFT JOIN vpc_sighting sighting USING (ref) GROUP BY told.ref`,
      [touched.map(({ ref }) => ref)],
    )
    await writeVpcs(
      client,
      judged.map(({ project, ...vpc }) => ({ ...vpc, project: project ?? undefined })),
    )
  })
}

/** The names (`namespace/name`) under which the store knows VPCs of a cluster. */
export async function readSightings(
  store: Store,
  cluster: string,
): Promise<{ namespace: string; name: string }[]> {
  const { rows } = await store.pool.query<{ namespace: string; name: string }>(
    'SELECT namespace, name FROM vpc_sighting WHERE cluster_id = $1',
    [cluster],
  )
  return rows
}

/** A VPC without a name is one that no cluster shows any more. */
async function writeVpcs(client: PoolClient, seen: SeenVpc[]): Promise<void> {
  const rows = seen.map((vpc) => ({ ...vpc, id: newId(), project: vpc.project ?? null }))
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
     SET name = coalesce(nullif(excluded.name, ''), vpc.name),
       project = coalesce(excluded.project, vpc.project), owned = excluded.owned
     WHERE vpc.owned <> excluded.owned OR (excluded.name <> '' AND vpc.name <> excluded.name)
       OR (excluded.project IS NOT NULL AND vpc.project IS DISTINCT FROM excluded.project)`,
    [JSON.stringify(rows)],
  )
}

/**
 * Takes in what some attachments of a cluster carry now (`uids` without an endpoint carry nothing any
 * more), and derives the placements of every load balancer that has one of the changed attachments'
 * addresses as a backend. Answers the ids of those load balancers. `left`: those that are still to be
 * derived; where that fails they stay in it, for the next time.
 */
export async function recordEndpoints(
  store: Store,
  owner: Ownership,
  uids: string[],
  seen: SeenEndpoint[],
  left = new Set<string>(),
): Promise<string[]> {
  if (uids.length === 0) return []
  const touched = await transaction(store, async (client) => {
    await demandEpoch(client, owner)
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
         RETURNING old.attachment_uid, old.vpc_id, old.address),
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
         RETURNING attachment_uid, vpc_id, address),
       moved AS (
         SELECT vpc_id, address FROM vanished UNION SELECT vpc_id, address FROM changed UNION
         -- Its other addresses: an attachment may have to serve with all of them or not at all.
         SELECT vpc_id, address FROM endpoint WHERE cluster_id = $1 AND attachment_uid IN (
           SELECT attachment_uid FROM vanished UNION SELECT attachment_uid FROM changed))
       SELECT DISTINCT lb.id FROM moved
       JOIN backend ON backend.address = moved.address
       JOIN load_balancer lb ON lb.id = backend.load_balancer_id AND lb.vpc_id = moved.vpc_id
       ORDER BY lb.id`,
      [owner.cluster, uids, JSON.stringify(seen)],
    )
    return rows
  })
  for (const { id } of touched) left.add(id)
  for (const id of left) {
    await rederive(store, id, REST)
    left.delete(id)
  }
  return touched.map(({ id }) => id)
}

/**
 * Those of some attachments that carry, or carried, an address of a load balancer that rests, and for how
 * long (ms) it does.
 */
export async function readResting(
  store: Store,
  cluster: string,
  uids: string[],
  seen: SeenEndpoint[],
): Promise<{ uid: string; milliseconds: number }[]> {
  const { rows } = await store.pool.query<{ uid: string; milliseconds: number }>({
    name: 'read-resting',
    text: `
SELECT carried.uid, max(1000 * extract(epoch FROM lb.rests_until - clock_timestamp()))::float8 AS milliseconds
FROM (
  SELECT endpoint."attachmentUid" AS uid, vpc.id AS vpc_id, endpoint.address
  FROM jsonb_to_recordset($3) AS endpoint ("attachmentUid" text, "vpcRef" text, address inet)
  JOIN vpc ON vpc.ref = endpoint."vpcRef"
  UNION
  SELECT attachment_uid, vpc_id, address FROM endpoint
  WHERE cluster_id = $1 AND attachment_uid = ANY ($2::text[])) carried
JOIN backend ON backend.address = carried.address
JOIN load_balancer lb ON lb.id = backend.load_balancer_id AND lb.vpc_id = carried.vpc_id
WHERE lb.rests_until > clock_timestamp()
GROUP BY carried.uid`,
    values: [cluster, uids, JSON.stringify(seen)],
  })
  return rows
}

/** The attachments of a cluster that the store knows endpoints of; `key`: `namespace/name`. */
export async function readKnownAttachments(
  store: Store,
  cluster: string,
): Promise<{ uid: string; key: string }[]> {
  const { rows } = await store.pool.query<{ uid: string; key: string }>(
    `SELECT DISTINCT attachment_uid AS uid, attachment_namespace || '/' || attachment_name AS key
     FROM endpoint WHERE cluster_id = $1`,
    [cluster],
  )
  return rows
}
