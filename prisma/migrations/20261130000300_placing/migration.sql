-- What each cluster says of VPCs: a VPC is a project's only where all that show it say so.
CREATE TABLE "vpc_sighting" (
  "cluster_id" UUID NOT NULL,
  "namespace" TEXT NOT NULL,
  "name" TEXT NOT NULL,
  "ref" TEXT NOT NULL,
  "project" TEXT,
  CONSTRAINT "vpc_sighting_pkey" PRIMARY KEY ("cluster_id", "namespace", "name")
);
CREATE INDEX "vpc_sighting_ref_idx" ON "vpc_sighting" ("ref");
ALTER TABLE "vpc_sighting" ADD CONSTRAINT "vpc_sighting_cluster_id_fkey" FOREIGN KEY ("cluster_id") REFERENCES "cluster" ("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- An operator said that what vanished from the cluster's inventory is to be believed.
ALTER TABLE "cluster" ADD COLUMN "inventory_accepted" BOOLEAN NOT NULL DEFAULT false;

-- What is wanted of some load balancers in one cluster, for its worker: see src/rules/wanted.ts.
CREATE OR REPLACE FUNCTION wanted_json(the_cluster uuid, ids uuid[]) RETURNS TABLE (id uuid, wanted json)
LANGUAGE sql STABLE AS $$
  SELECT lb.id, json_build_object(
    'loadBalancer', lb.id, 'instance', store.instance, 'vpcRef', vpc.ref, 'protocol', lb.protocol,
    'port', lb.port, 'sessionAffinity', lb.session_affinity, 'generation', lb.generation,
    'rulesGeneration', lb.rules_generation, 'asked', placement.asked, 'placed', placement.placed,
    'applied', placement.applied, 'due', placement.due IS NOT NULL,
    -- It moves: what is here stays until it is in effect where it goes, for a while at most.
    'awaitsSuccessor', NOT placement.placed AND lb.deleting_since IS NULL
      AND placement.due > clock_timestamp() - interval '10 seconds'
      AND EXISTS (SELECT FROM placement successor JOIN cluster ON cluster.id = successor.cluster_id
        WHERE successor.load_balancer_id = lb.id AND successor.placed AND cluster.unreachable_since IS NULL)
      AND NOT EXISTS (SELECT FROM placement successor WHERE successor.load_balancer_id = lb.id
        AND successor.placed AND successor.settled_generation >= lb.rules_generation),
    'vips', coalesce((
      SELECT json_agg(json_build_object('address', host(vip.address), 'family', vip.family,
        'heldBy', (SELECT hold.load_balancer_id FROM hold WHERE hold.vip = vip.address
          AND hold.gone_at IS NULL AND hold.load_balancer_id <> lb.id LIMIT 1)) ORDER BY vip.family DESC, vip.address)
      FROM (
        SELECT block.vip AS address, 'IPV6' AS family FROM ipv6_block block WHERE block.load_balancer_id = lb.id
        UNION ALL
        SELECT reservation.address, 'IPV4' FROM ipv4_reservation reservation WHERE reservation.load_balancer_id = lb.id
      ) vip), '[]'::json),
    'holds', coalesce((
      SELECT json_agg(json_build_object('vip', host(hold.vip), 'rule', hold.rule_name))
      FROM hold WHERE hold.cluster_id = $1 AND hold.load_balancer_id = lb.id AND hold.gone_at IS NULL), '[]'::json),
    'health', (
      SELECT json_build_object('enabled', count(*), 'notUnhealthy', count(*) FILTER (WHERE backend.health_state <> 'UNHEALTHY'))
      FROM backend WHERE backend.load_balancer_id = lb.id AND backend.admin_state = 'ENABLED'
        AND EXISTS (SELECT FROM endpoint JOIN cluster ON cluster.id = endpoint.cluster_id
          WHERE endpoint.vpc_id = lb.vpc_id AND endpoint.address = backend.address AND cluster.region_id = lb.region_id)),
    'minimumHealthyPercent', (lb.health_check ->> 'minimumHealthyPercent')::integer,
    'backends', coalesce((
      SELECT json_agg(json_build_object('id', backend.id, 'address', host(backend.address),
        'adminState', backend.admin_state, 'healthState', backend.health_state,
        'endpoint', endpoint.place,
        'nodeTaken', endpoint.node IS NOT NULL AND EXISTS (
          SELECT FROM load_balancer rival
          JOIN backend older ON older.load_balancer_id = rival.id AND older.admin_state = 'ENABLED'
            AND (older.created_at, older.id) < (backend.created_at, backend.id)
          JOIN endpoint there ON there.cluster_id = $1 AND there.vpc_id = rival.vpc_id
            AND there.address = older.address AND there.node = endpoint.node
            AND (family(older.address) = 6 OR cluster.serves_ipv4)
          WHERE rival.vpc_id = lb.vpc_id AND rival.protocol = lb.protocol AND rival.port = lb.port
            AND rival.region_id = lb.region_id AND rival.id <> lb.id AND rival.deleting_since IS NULL))
        ORDER BY backend.created_at, backend.id)
      FROM backend
      LEFT JOIN LATERAL (
        SELECT node, json_build_object('attachment', json_build_object('namespace', attachment_namespace,
            'name', attachment_name, 'uid', attachment_uid), 'attachmentRef', attachment_ref,
            'node', node, 'egressKind', egress_kind,
            'otherAddresses', coalesce((SELECT json_agg(host(other.address) ORDER BY other.address) FROM endpoint other
              WHERE other.cluster_id = $1 AND other.attachment_uid = endpoint.attachment_uid
                AND other.address <> endpoint.address AND family(other.address) = 6), '[]'::json)) AS place
        FROM endpoint WHERE endpoint.cluster_id = $1 AND endpoint.vpc_id = lb.vpc_id
          AND endpoint.address = backend.address
        ORDER BY seen_at, attachment_uid LIMIT 1) endpoint ON true
      WHERE backend.load_balancer_id = lb.id), '[]'::json))
  FROM placement
  JOIN load_balancer lb ON lb.id = placement.load_balancer_id
  JOIN vpc ON vpc.id = lb.vpc_id
  JOIN cluster ON cluster.id = placement.cluster_id
  CROSS JOIN store
  WHERE placement.cluster_id = $1 AND placement.load_balancer_id = ANY ($2)
$$;
