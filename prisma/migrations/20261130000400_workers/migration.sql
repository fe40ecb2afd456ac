-- What the owners of clusters ask and tell.

-- What is wanted of some load balancers in one cluster, for its worker: see src/rules/wanted.ts. "health" is
-- only told where a backend is unhealthy: nothing depends on it otherwise. `cordoned`: the backends that the
-- cluster doesn't take; `trace`: of the change that isn't applied yet; `behind`: it carried a newer generation.
-- Plans are made once and kept, also those that were made while the tables were small. Where several indexes
-- could serve then, only the one may that serves when they are large: hence OFFSET 0 and IS NOT DISTINCT FROM.
CREATE FUNCTION wanted_json(the_cluster uuid, ids uuid[])
RETURNS TABLE (id uuid, wanted json, cordoned uuid[], trace text, behind boolean)
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
    'health', CASE WHEN (SELECT bool_or(health_state = 'UNHEALTHY') FROM backend WHERE load_balancer_id = lb.id) THEN (
      SELECT json_build_object('enabled', count(*), 'notUnhealthy', count(*) FILTER (WHERE backend.health_state <> 'UNHEALTHY'))
      FROM backend WHERE backend.load_balancer_id = lb.id AND backend.admin_state = 'ENABLED'
        AND EXISTS (SELECT FROM endpoint JOIN cluster ON cluster.id = endpoint.cluster_id
          WHERE endpoint.vpc_id = lb.vpc_id AND endpoint.address = backend.address
            AND cluster.region_id = lb.region_id AND cluster.forgotten_at IS NULL)) END,
    'minimumHealthyPercent', (lb.health_check ->> 'minimumHealthyPercent')::integer,
    'backends', coalesce((
      SELECT json_agg(json_build_object('id', backend.id, 'address', host(backend.address),
        'adminState', backend.admin_state, 'healthState', backend.health_state,
        'endpoint', endpoint.place,
        'nodeTaken', endpoint.node IS NOT NULL AND EXISTS (
          SELECT FROM (
            SELECT id, region_id, deleting_since FROM load_balancer
            WHERE vpc_id = lb.vpc_id AND protocol = lb.protocol AND port = lb.port OFFSET 0) rival
          JOIN backend older ON older.load_balancer_id = rival.id AND older.admin_state = 'ENABLED'
            AND (older.created_at, older.id) < (backend.created_at, backend.id)
          JOIN endpoint there ON there.cluster_id = $1 AND there.vpc_id = lb.vpc_id
            AND there.address = older.address AND there.node = endpoint.node
            AND (family(older.address) = 6 OR cluster.serves_ipv4)
          WHERE rival.region_id = lb.region_id AND rival.id <> lb.id AND rival.deleting_since IS NULL))
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
      WHERE backend.load_balancer_id = lb.id), '[]'::json)),
    CASE WHEN cluster.mode = 'ACTIVE' THEN '{}' ELSE ARRAY(SELECT cordoned_backends(cluster.id, lb.id)) END,
    CASE WHEN placement.asked > placement.applied THEN placement.trace END,
    coalesce(placement.report #>> '{cluster,reason}' = 'StoreBehind', false)
  FROM placement
  JOIN load_balancer lb ON lb.id = placement.load_balancer_id
  JOIN vpc ON vpc.id = lb.vpc_id
  JOIN cluster ON cluster.id = placement.cluster_id
  CROSS JOIN store
  WHERE placement.load_balancer_id = ANY ($2) AND placement.cluster_id IS NOT DISTINCT FROM $1
$$;

-- Opens holds before the first apply of rules, and answers those for which it may be done: the VIPs
-- that the load balancer owns now and that no other one has an open hold on. The rows of the addresses
-- are locked, so that two load balancers never both find an address free. Only for the cluster's
-- present owner and load balancers that are to be there: a hold that a former owner opened late would be
-- closed by nobody.
CREATE FUNCTION open_holds(the_cluster uuid, epoch bigint, load_balancers uuid[], vips inet[], rules text[])
RETURNS TABLE (load_balancer uuid, vip inet)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  here uuid[];
  held inet[];
  holders uuid[];
BEGIN
  PERFORM FROM cluster WHERE id = the_cluster AND lease_epoch = epoch FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'LB002', MESSAGE = 'the cluster has another owner';
  END IF;
  SELECT array_agg(address), array_agg(load_balancer_id) INTO held, holders FROM (
    SELECT address, load_balancer_id FROM ipv4_reservation WHERE address = ANY (vips) ORDER BY id FOR UPDATE) locked;
  SELECT array_agg(load_balancer_id) INTO here FROM (
    SELECT load_balancer_id FROM placement WHERE load_balancer_id = ANY (load_balancers) AND cluster_id IS NOT DISTINCT FROM the_cluster AND placed
    ORDER BY load_balancer_id FOR SHARE) locked;
  SELECT held || array_agg(vip), holders || array_agg(load_balancer_id) INTO held, holders FROM (
    SELECT vip, load_balancer_id FROM ipv6_block WHERE vip = ANY (vips) ORDER BY vip FOR UPDATE) locked;
  RETURN QUERY
  INSERT INTO hold (cluster_id, vip, load_balancer_id, rule_name)
  SELECT the_cluster, wanted.vip, wanted.load_balancer, wanted.rule
  FROM unnest(load_balancers, vips, rules) AS wanted (load_balancer, vip, rule)
  WHERE wanted.load_balancer = ANY (here)
    AND EXISTS (SELECT FROM unnest(held, holders) AS one (vip, holder)
      WHERE one.vip = wanted.vip AND one.holder = wanted.load_balancer)
    -- With OFFSET it is looked up for each, never joined with all holds there are.
    AND NOT EXISTS (SELECT FROM hold other WHERE other.vip = wanted.vip AND other.gone_at IS NULL
      AND other.load_balancer_id <> wanted.load_balancer OFFSET 0)
  ON CONFLICT (cluster_id, vip, load_balancer_id) DO UPDATE
  SET since = CASE WHEN hold.gone_at IS NULL THEN hold.since ELSE clock_timestamp() END,
    gone_at = NULL, rule_name = excluded.rule_name
  RETURNING hold.load_balancer_id, hold.vip;
END $$;

-- Takes in what clusters say of load balancers, at most once for each placement: [{place, cluster, epoch,
-- load_balancer, report, applied, gone}], where `applied` says that all up to the report's number was
-- applied, and `gone` holds the VIPs of which nothing is left there. Closes their holds, asks those who
-- waited for them, and ends placements that are not wanted any more once nothing of them is left. Answers
-- for each whether the cluster has another owner (then nothing of it is written), whether there is no such
-- placement any more, whether holds were closed, and whether the load balancer is being deleted. Nobody can
-- take a cluster over before this transaction ends: taking over skips locked rows, see renewLeases;
-- renewing doesn't conflict. Who changes where a load balancer is placed, or has it deleted, locks its row first.
CREATE FUNCTION take_reports(told jsonb)
RETURNS TABLE (place integer, lost boolean, over boolean, closed boolean, deleting boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  about uuid[] := ARRAY(SELECT (jsonb_path_query(told, '$[*].load_balancer') #>> '{}')::uuid);
  let_go inet[] := ARRAY(SELECT (jsonb_path_query(told, '$[*].gone[*]') #>> '{}')::inet);
  waiting uuid[] := '{}';
  closing integer[] := '{}';
  unwanted boolean;
BEGIN
  PERFORM FROM load_balancer WHERE id = ANY (about) ORDER BY id FOR NO KEY UPDATE;
  PERFORM FROM cluster WHERE id = ANY (ARRAY(SELECT (jsonb_path_query(told, '$[*].cluster') #>> '{}')::uuid))
  ORDER BY id FOR KEY SHARE;
  IF cardinality(let_go) > 0 THEN
    -- Who binds one of these addresses meanwhile waits for the hold to be closed, or is found here.
    PERFORM FROM ipv4_reservation WHERE address = ANY (let_go) ORDER BY id FOR UPDATE;
    waiting := ARRAY(SELECT load_balancer_id FROM ipv4_reservation
      WHERE address = ANY (let_go) AND load_balancer_id IS NOT NULL);
  END IF;
  PERFORM FROM placement WHERE load_balancer_id = ANY (about || waiting)
    AND (load_balancer_id = ANY (waiting) OR (load_balancer_id, cluster_id) IN (
      SELECT load_balancer, cluster FROM jsonb_to_recordset(told) AS item (load_balancer uuid, cluster uuid)))
  ORDER BY load_balancer_id, cluster_id FOR NO KEY UPDATE;
  WITH item AS MATERIALIZED (
    SELECT told_of.*, (told_of.report ->> 'asked')::bigint AS asked, before.placed,
      coalesce((before.report ->> 'asked')::bigint, 0) <= (told_of.report ->> 'asked')::bigint AS newer
    FROM jsonb_to_recordset(told) AS told_of (cluster uuid, epoch bigint, load_balancer uuid, report jsonb, applied boolean)
    JOIN cluster ON cluster.id = told_of.cluster AND lease_epoch = epoch
    JOIN placement before ON before.load_balancer_id = told_of.load_balancer AND before.cluster_id = told_of.cluster),
  written AS (
    UPDATE placement SET
      report = CASE WHEN item.newer THEN item.report ELSE placement.report END,
      reported_at = CASE WHEN item.newer THEN clock_timestamp() ELSE reported_at END,
      settled_generation = CASE WHEN item.newer AND (item.report ->> 'inEffect')::boolean
        THEN greatest(settled_generation, (item.report ->> 'generation')::integer) ELSE settled_generation END,
      applied = CASE WHEN item.applied THEN greatest(placement.applied, item.asked) ELSE placement.applied END,
      due = CASE WHEN item.applied AND placement.asked = item.asked THEN NULL ELSE due END,
      attempts = CASE WHEN item.applied THEN 0 ELSE attempts END,
      last_error = CASE WHEN item.applied THEN NULL ELSE last_error END,
      trace = CASE WHEN item.applied AND placement.asked = item.asked THEN NULL ELSE trace END
    FROM item
    WHERE placement.load_balancer_id = item.load_balancer AND placement.cluster_id = item.cluster
      -- What tells nothing new writes nothing.
      AND (item.newer AND (placement.report IS DISTINCT FROM item.report
          OR (item.report ->> 'inEffect')::boolean AND settled_generation < (item.report ->> 'generation')::integer)
        OR item.applied AND (placement.applied < item.asked OR attempts > 0 OR last_error IS NOT NULL
          OR placement.asked = item.asked AND (due IS NOT NULL OR trace IS NOT NULL))))
  SELECT bool_or(NOT placed) INTO unwanted FROM item;
  IF cardinality(let_go) > 0 THEN
    WITH closed AS (
      UPDATE hold SET gone_at = clock_timestamp()
      FROM jsonb_to_recordset(told) AS item (place integer, cluster uuid, epoch bigint, load_balancer uuid, gone inet[])
      JOIN cluster ON cluster.id = item.cluster AND lease_epoch = epoch
      WHERE hold.cluster_id = item.cluster AND hold.load_balancer_id = item.load_balancer
        AND hold.vip = ANY (item.gone) AND hold.gone_at IS NULL
      RETURNING item.place, hold.vip, hold.load_balancer_id),
    asked AS (
      UPDATE placement SET asked = asked + 1, due = clock_timestamp()
      WHERE placed AND load_balancer_id IN (
        SELECT reservation.load_balancer_id FROM closed
        JOIN ipv4_reservation reservation ON reservation.address = closed.vip
          AND reservation.load_balancer_id <> closed.load_balancer_id))
    SELECT array_agg(place) INTO closing FROM closed;
  END IF;
  IF unwanted THEN
    DELETE FROM placement USING jsonb_to_recordset(told) AS item (cluster uuid, epoch bigint, load_balancer uuid)
    JOIN cluster ON cluster.id = item.cluster AND lease_epoch = epoch
    WHERE load_balancer_id = item.load_balancer AND cluster_id = item.cluster AND NOT placed
      AND (report ->> 'asked')::bigint = asked AND (report ->> 'inEffect')::boolean
      AND NOT EXISTS (SELECT FROM hold WHERE hold.cluster_id = item.cluster
        AND hold.load_balancer_id = item.load_balancer AND hold.gone_at IS NULL);
  END IF;
  RETURN QUERY
  SELECT place, deletes IS NOT NULL AND NOT owned, NOT there, place = ANY (coalesce(closing, '{}')), coalesce(deletes, false)
  FROM (
    SELECT item.place,
      (SELECT lb.deleting_since IS NOT NULL FROM load_balancer lb WHERE lb.id = item.load_balancer) AS deletes,
      coalesce((SELECT true FROM cluster WHERE id = item.cluster AND lease_epoch = item.epoch), false) AS owned,
      coalesce((SELECT true FROM placement
        WHERE load_balancer_id = item.load_balancer AND cluster_id = item.cluster), false) AS there
    FROM jsonb_to_recordset(told) AS item (place integer, cluster uuid, epoch bigint, load_balancer uuid)) told_of;
END $$;
