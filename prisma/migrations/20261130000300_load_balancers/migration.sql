-- Load balancers as they are read, folded and made, and their quotas.

CREATE FUNCTION append_event(
  project text, object_kind text, object_id uuid, version bigint, generation integer, reason text,
  message text, actor_kind text, actor_name text, changes jsonb, object jsonb
) RETURNS void LANGUAGE sql AS $$
  INSERT INTO event (at, project, object_kind, object_id, version, generation, reason, message,
    actor_kind, actor_name, changes, object)
  VALUES (clock_timestamp(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
$$;

-- Why nobody knows what a cluster serves, where nobody does.
CREATE FUNCTION unreachable_reason(cluster) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN $1.unreachable_since IS NOT NULL THEN $1.trouble ->> 'reason'
    WHEN $1.untended_since IS NOT NULL THEN 'NoWorker' END
$$;

-- Whole load balancers, as the graph shows them: the one read. What a fold needs besides ("knownIn";
-- "cordonedIn", the clusters that don't take a backend though it lives there; "placements") comes along
-- where it is asked for, and where no status was folded yet. A forgotten cluster is not told of.
CREATE FUNCTION load_balancers_json(ids uuid[], for_project text, for_fold boolean) RETURNS TABLE (id uuid, record json)
LANGUAGE sql STABLE AS $$
  SELECT lb.id, json_build_object(
    'id', lb.id, 'version', lb.version, 'project', lb.project, 'name', lb.name,
    'displayName', lb.display_name, 'description', lb.description, 'labels', lb.labels,
    'vpc', json_build_object('id', vpc.id, 'name', vpc.name, 'project', vpc.project),
    'regionId', lb.region_id, 'protocol', lb.protocol, 'port', lb.port,
    'sessionAffinity', lb.session_affinity, 'healthCheck', lb.health_check,
    'deletionProtection', lb.deletion_protection, 'generation', lb.generation,
    'rulesGeneration', lb.rules_generation,
    'createdAt', rfc3339(lb.created_at), 'updatedAt', rfc3339(lb.updated_at),
    'deletingSince', rfc3339(lb.deleting_since),
    'phase', lb.phase, 'observedGeneration', lb.observed_generation,
    'addresses', addresses.list, 'backends', coalesce(backends.list, '[]'::json),
    'status', lb.status,
    'placements', CASE WHEN $3 OR lb.status IS NULL THEN
      (SELECT coalesce(json_agg(json_build_object('cluster', cluster.name, 'placed', placement.placed,
          'asked', placement.asked, 'settledGeneration', placement.settled_generation,
          'report', placement.report, 'reportedAt', rfc3339(placement.reported_at),
          'unreachableSince', rfc3339(coalesce(cluster.unreachable_since, cluster.untended_since)),
          'unreachableReason', unreachable_reason(cluster)) ORDER BY cluster.name), '[]'::json)
       FROM placement JOIN cluster ON cluster.id = placement.cluster_id
       WHERE placement.load_balancer_id = lb.id AND cluster.forgotten_at IS NULL) END)
  FROM load_balancer lb
  JOIN vpc ON vpc.id = lb.vpc_id
  CROSS JOIN LATERAL (
    SELECT coalesce(json_agg(json_build_object('address', host(vip.address), 'prefix', vip.prefix,
      'family', vip.family, 'reservation', vip.reservation) ORDER BY vip.family DESC, vip.bound_at, vip.reservation), '[]'::json) AS list
    FROM (
      SELECT block.vip AS address, block.prefix::text AS prefix, 'IPV6' AS family, NULL::uuid AS reservation, NULL::timestamptz AS bound_at
      FROM ipv6_block block WHERE block.load_balancer_id = lb.id
      UNION ALL
      SELECT reservation.address, host(reservation.address) || '/32', 'IPV4', reservation.id, reservation.bound_at
      FROM ipv4_reservation reservation WHERE reservation.load_balancer_id = lb.id
    ) vip) addresses
  CROSS JOIN LATERAL (
    SELECT ($3 OR lb.status IS NULL) AND EXISTS (
      SELECT FROM cluster WHERE cluster.region_id = lb.region_id AND cluster.mode <> 'ACTIVE') AS some) cordons
  CROSS JOIN LATERAL (
    SELECT json_agg(json_build_object('id', backend.id, 'address', host(backend.address),
      'name', backend.name, 'adminState', backend.admin_state, 'createdAt', rfc3339(backend.created_at),
      'health', json_build_object('state', backend.health_state, 'reason', backend.health_reason,
        -- Of one that fails still, what it fails of now.
        'message', CASE WHEN backend.health_reason = 'Unhealthy' AND probe.last_probed_at >= backend.health_since
          THEN coalesce(probe.last_failure, backend.health_message) ELSE backend.health_message END,
        'since', rfc3339(backend.health_since),
        'lastProbedAt', rfc3339(probe.last_probed_at),
        'consecutiveSuccesses', probe.consecutive_successes,
        'consecutiveFailures', probe.consecutive_failures),
      'knownIn', CASE WHEN $3 OR lb.status IS NULL THEN
        (SELECT json_agg(DISTINCT cluster.name) FROM endpoint JOIN cluster ON cluster.id = endpoint.cluster_id
         WHERE endpoint.vpc_id = lb.vpc_id AND endpoint.address = backend.address
           AND cluster.region_id = lb.region_id AND cluster.forgotten_at IS NULL) END,
      'cordonedIn', CASE WHEN cordons.some THEN
        (SELECT json_agg(DISTINCT cluster.name) FROM endpoint JOIN cluster ON cluster.id = endpoint.cluster_id
         WHERE endpoint.vpc_id = lb.vpc_id AND endpoint.address = backend.address
           AND cluster.region_id = lb.region_id AND cluster.forgotten_at IS NULL AND cluster.mode <> 'ACTIVE'
           AND (backend.created_at > cluster.cordoned_since OR NOT EXISTS (
             SELECT FROM placement WHERE placement.load_balancer_id = lb.id
               AND placement.cluster_id = cluster.id AND placement.placed))) END)
      ORDER BY backend.id) AS list
    FROM backend LEFT JOIN backend_probe probe ON probe.backend_id = backend.id
    WHERE backend.load_balancer_id = lb.id) backends
  WHERE lb.id = ANY ($1) AND ($2 IS NULL OR lb.project = $2)
$$;

-- Writes what statuses were folded into, each with its event where it has one: [{id, status, phase, observed,
-- version, event: {reason, message, actor, changes}}]. Answers those of them that reservations follow: bound to
-- the load balancer, or carried by it still. The caller has locked the load balancers' rows.
CREATE FUNCTION write_statuses(folded json) RETURNS SETOF uuid
LANGUAGE sql AS $$
  WITH written AS (
    UPDATE load_balancer lb SET status = item.status, phase = item.phase, observed_generation = item.observed,
      version = item.version
    FROM json_to_recordset($1) AS item (id uuid, status json, phase text, observed integer, version bigint, event json)
    WHERE lb.id = item.id RETURNING lb.id, lb.project, lb.generation, lb.version, item.event),
  told AS (
    INSERT INTO event (at, project, object_kind, object_id, version, generation, reason, message, actor_kind, actor_name, changes)
    SELECT clock_timestamp(), project, 'LoadBalancer', id, version, generation, reason, message,
      actor ->> 'kind', actor ->> 'name', changes
    FROM written CROSS JOIN json_to_record(event) AS said (reason text, message text, actor json, changes jsonb)
    WHERE json_typeof(event) = 'object' ORDER BY id)
  SELECT id FROM written
  WHERE EXISTS (SELECT FROM ipv4_reservation reservation WHERE reservation.load_balancer_id = written.id)
    OR EXISTS (SELECT FROM hold JOIN ipv4_reservation reservation ON reservation.address = hold.vip
      WHERE hold.load_balancer_id = written.id)
$$;

-- Why the health of a backend that was just added, or whose check was just turned on or off, isn't known.
CREATE FUNCTION first_health_reason(checked boolean, admin_state text, has_prober boolean) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
  WHEN NOT checked THEN 'NoHealthCheck'
  WHEN admin_state = 'DISABLED' THEN 'Disabled'
  WHEN NOT has_prober THEN 'NoProber'
  ELSE 'NotProbedYet' END;

CREATE FUNCTION first_health_state(reason text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN reason = 'NotProbedYet' THEN 'UNKNOWN' ELSE 'NOT_CHECKED' END;

CREATE FUNCTION first_health_message(reason text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE reason
  WHEN 'NoHealthCheck' THEN 'The load balancer has no health check.'
  WHEN 'Disabled' THEN 'A disabled backend is not probed.'
  WHEN 'NoProber' THEN 'Health cannot be checked in this region: nobody stands where it could be done.'
  ELSE 'The health check has not come to a result yet.' END;

CREATE FUNCTION first_health(region uuid, checked boolean, admin_state text,
  OUT state text, OUT reason text, OUT message text)
LANGUAGE sql STABLE AS $$
  SELECT first_health_state(why.reason), why.reason, first_health_message(why.reason)
  FROM (SELECT first_health_reason($2, $3, EXISTS (
    SELECT FROM cluster WHERE cluster.region_id = $1 AND cluster.has_prober
      AND cluster.forgotten_at IS NULL)) AS reason) why
$$;

-- What a project may have in a region where operators set nothing.
CREATE FUNCTION standard_quota(of_resource text) RETURNS integer
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE of_resource
  WHEN 'networking.datumapis.com/loadbalancers' THEN 50
  WHEN 'networking.datumapis.com/ipv4reservations' THEN 10
  WHEN 'networking.datumapis.com/rulespervpc' THEN 64 END;

-- A quota's limit; NULL: unlimited.
CREATE FUNCTION quota_limit(for_project text, of_resource text, region uuid) RETURNS integer
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN count(*) = 0 THEN standard_quota($2) ELSE max("limit") END
  FROM quota WHERE project = $1 AND resource = $2 AND region_id = $3
$$;

-- The VIPs that the data plane may have to serve for a VPC in a region. A load balancer that is
-- being deleted counts until its holds are closed: its rows are there as long.
CREATE FUNCTION served_vips(vpc uuid, region uuid) RETURNS bigint
LANGUAGE sql STABLE AS $$
  SELECT (SELECT count(*) FROM load_balancer WHERE vpc_id = $1 AND region_id = $2)
    + (SELECT count(*) FROM ipv4_reservation reservation JOIN load_balancer lb ON lb.id = reservation.load_balancer_id
       WHERE lb.vpc_id = $1 AND lb.region_id = $2)
$$;

-- Creates a load balancer: every check that needs the store in the fixed order (released, visible,
-- valid, quota, conflict), then addresses, rows, placements and the event. Answers
-- {"refused": CODE, …} with nothing changed, {"existing": id} for a repeated idempotency key, or what
-- was made: {"at", "regionId", "vpcName", "vip", "prefix", "health" and "healthDisabled" (why it isn't
-- known), "seen" (in which clusters each address lives), "placed" (the clusters that took it)}. Starting statements is what this costs, so
-- what can be read or written together is; only locks come one after another.
CREATE FUNCTION create_load_balancer(input jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
  the_project text := input ->> 'project';
  the_id uuid := (input ->> 'id')::uuid;
  the_vpc uuid := (input ->> 'vpc')::uuid;
  wanted_reservations uuid[] := ARRAY(SELECT jsonb_array_elements_text(input -> 'reservations')::uuid);
  addresses inet[] := ARRAY(SELECT (jsonb_path_query(input, '$.backends[*].address') #>> '{}')::inet);
  enabled inet[] := ARRAY(SELECT (jsonb_path_query(input, '$.backends[*] ? (@.adminState == "ENABLED").address') #>> '{}')::inet);
  at timestamptz(3);
  released_now boolean;
  found_key record;
  key_reused boolean := false;
  reservation record;
  here record;
  outside jsonb;
  used_now bigint;
  placed uuid[];
  vip inet;
BEGIN
  SELECT released INTO released_now FROM project WHERE name = the_project FOR NO KEY UPDATE;
  IF NOT coalesce(released_now, false) THEN
    RETURN json_build_object('refused', 'NOT_RELEASED');
  END IF;
  at := clock_timestamp();
  IF input ->> 'idempotencyKey' IS NOT NULL THEN
    SELECT input_hash, object_id INTO found_key FROM idempotency_key
    WHERE project = the_project AND mutation = 'createLoadBalancer' AND key = input ->> 'idempotencyKey'
      AND created_at > at - interval '24 hours';
    IF FOUND THEN
      IF found_key.input_hash = input ->> 'inputHash' THEN
        RETURN json_build_object('existing', found_key.object_id);
      END IF;
      key_reused := true;
    END IF;
  END IF;
  SELECT vpc.owned, vpc.name AS vpc_name, region.id AS region,
    CASE WHEN lbs.project IS NULL THEN standard_quota('networking.datumapis.com/loadbalancers')
      ELSE lbs."limit" END AS most_load_balancers,
    CASE WHEN rules.project IS NULL THEN standard_quota('networking.datumapis.com/rulespervpc')
      ELSE rules."limit" END AS most_rules,
    first_health_reason((input #>> '{healthCheck,enabled}')::boolean, 'ENABLED', prober.there) AS reason,
    first_health_reason((input #>> '{healthCheck,enabled}')::boolean, 'DISABLED', prober.there) AS reason_disabled,
    EXISTS (SELECT FROM load_balancer WHERE project = the_project AND region_id = region.id
      AND name = input ->> 'name' AND deleting_since IS NULL) AS name_taken,
    lives.*
  INTO here
  FROM vpc
  LEFT JOIN region ON region.code = input ->> 'region'
  LEFT JOIN quota lbs ON lbs.project = the_project AND lbs.region_id = region.id
    AND lbs.resource = 'networking.datumapis.com/loadbalancers'
  LEFT JOIN quota rules ON rules.project = the_project AND rules.region_id = region.id
    AND rules.resource = 'networking.datumapis.com/rulespervpc'
  CROSS JOIN LATERAL (SELECT EXISTS (
    SELECT FROM cluster WHERE cluster.region_id = region.id AND cluster.has_prober
      AND cluster.forgotten_at IS NULL) AS there) prober
  CROSS JOIN LATERAL (
    SELECT array_agg(endpoint.address) FILTER (WHERE cluster.region_id <> region.id) AS elsewhere,
      array_agg(endpoint.address) FILTER (WHERE cluster.region_id = region.id) AS inside,
      array_agg(DISTINCT cluster.id) FILTER (WHERE cluster.region_id = region.id AND cluster.mode = 'ACTIVE'
        AND endpoint.address = ANY (enabled)) AS clusters,
      json_agg(json_build_array(host(endpoint.address), cluster.name, cluster.mode,
        rfc3339(coalesce(cluster.unreachable_since, cluster.untended_since)), unreachable_reason(cluster), cluster.id) ORDER BY cluster.name)
        FILTER (WHERE cluster.region_id = region.id) AS seen
    FROM endpoint JOIN cluster ON cluster.id = endpoint.cluster_id AND cluster.forgotten_at IS NULL
    WHERE endpoint.vpc_id = the_vpc AND endpoint.address = ANY (addresses)) lives
  WHERE vpc.id = the_vpc AND vpc.project = the_project FOR SHARE OF vpc;
  IF NOT FOUND THEN
    RETURN json_build_object('refused', 'VPC_NOT_FOUND');
  END IF;
  IF here.region IS NULL THEN
    RETURN json_build_object('refused', 'REGION_NOT_FOUND');
  END IF;
  IF cardinality(wanted_reservations) > 0 THEN
    PERFORM FROM ipv4_reservation WHERE id = ANY (wanted_reservations) AND project = the_project
    ORDER BY id FOR UPDATE;
    -- The first that isn't there, or else the first of another region.
    FOR reservation IN
      SELECT wanted.place - 1 AS place, held.id, region.code
      FROM unnest(wanted_reservations) WITH ORDINALITY AS wanted (id, place)
      LEFT JOIN ipv4_reservation held ON held.id = wanted.id AND held.project = the_project
      LEFT JOIN region ON region.id = held.region_id
      WHERE held.id IS NULL OR held.region_id <> here.region
      ORDER BY held.id IS NOT NULL, wanted.place LIMIT 1
    LOOP
      IF reservation.id IS NULL THEN
        RETURN json_build_object('refused', 'RESERVATION_NOT_FOUND', 'place', reservation.place);
      END IF;
      RETURN json_build_object('refused', 'REGION_MISMATCH', 'place', reservation.place, 'region', reservation.code);
    END LOOP;
  END IF;
  IF (input ->> 'invalid')::boolean THEN
    RETURN json_build_object('refused', 'INVALID');
  END IF;
  IF NOT here.owned THEN
    RETURN json_build_object('refused', 'VPC_NOT_OWNED');
  END IF;
  IF NOT here.elsewhere <@ coalesce(here.inside, '{}') THEN
    SELECT jsonb_agg(host(address)) INTO outside FROM unnest(addresses) AS address
    WHERE address = ANY (here.elsewhere) AND address <> ALL (coalesce(here.inside, '{}'));
    RETURN json_build_object('refused', 'BACKENDS_OUTSIDE_REGION', 'addresses', outside);
  END IF;
  IF (input ->> 'overfull')::boolean THEN
    RETURN json_build_object('refused', 'OVERFULL');
  END IF;
  -- What isn't limited isn't counted: it may be a hundred thousand rows.
  IF here.most_load_balancers IS NOT NULL THEN
    SELECT count(*) INTO used_now FROM load_balancer
    WHERE project = the_project AND region_id = here.region AND deleting_since IS NULL;
    IF used_now >= here.most_load_balancers THEN
      RETURN json_build_object('refused', 'QUOTA_EXCEEDED', 'resource', 'networking.datumapis.com/loadbalancers', 'limit', here.most_load_balancers, 'used', used_now);
    END IF;
  END IF;
  IF here.most_rules IS NOT NULL THEN
    used_now := served_vips(the_vpc, here.region);
    IF used_now + 1 + cardinality(wanted_reservations) > here.most_rules THEN
      RETURN json_build_object('refused', 'QUOTA_EXCEEDED', 'resource', 'networking.datumapis.com/rulespervpc', 'limit', here.most_rules, 'used', used_now);
    END IF;
  END IF;
  IF key_reused THEN
    RETURN json_build_object('refused', 'IDEMPOTENCY_KEY_REUSED');
  END IF;
  IF cardinality(wanted_reservations) > 0 THEN
    FOR reservation IN
      SELECT wanted.place - 1 AS place, held.id, held.load_balancer_id
      FROM unnest(wanted_reservations) WITH ORDINALITY AS wanted (id, place)
      JOIN ipv4_reservation held ON held.id = wanted.id
      WHERE held.load_balancer_id IS NOT NULL ORDER BY wanted.place LIMIT 1
    LOOP
      RETURN json_build_object('refused', 'RESERVATION_IN_USE', 'id', reservation.id, 'place', reservation.place, 'holder', reservation.load_balancer_id);
    END LOOP;
  END IF;
  IF here.name_taken THEN
    RETURN json_build_object('refused', 'NAME_TAKEN');
  END IF;

  -- What ask_placements does, for one that has none yet. A cluster that was cordoned since it was read
  -- takes none: see refuse_new_placement.
  WITH placements AS (
    INSERT INTO placement (load_balancer_id, cluster_id, placed, due)
    SELECT the_id, cluster, true, at FROM unnest(here.clusters) AS cluster RETURNING cluster_id),
  made AS (
    INSERT INTO load_balancer (id, project, region_id, vpc_id, name, display_name, description, labels,
      protocol, port, session_affinity, health_check, deletion_protection, phase, observed_generation,
      created_at, updated_at)
    VALUES (the_id, the_project, here.region, the_vpc, input ->> 'name', input ->> 'displayName',
      input ->> 'description', input -> 'labels', input ->> 'protocol', (input ->> 'port')::integer,
      input ->> 'sessionAffinity', input -> 'healthCheck', (input ->> 'deletionProtection')::boolean,
      CASE WHEN cardinality(enabled) > 0 THEN 'PENDING' ELSE 'IDLE' END,
      -- Where nothing has to happen anywhere, what was asked is in effect.
      CASE WHEN EXISTS (SELECT FROM placements) THEN 0 ELSE 1 END, at, at)),
  backends AS (
    INSERT INTO backend (id, load_balancer_id, address, name, admin_state, health_state, health_reason,
      health_message, health_since, created_at)
    SELECT wanted.id, the_id, wanted.address, wanted.name, wanted."adminState",
      first_health_state(why.reason), why.reason, first_health_message(why.reason), at, at
    FROM jsonb_to_recordset(input -> 'backends') AS wanted (id uuid, address inet, name text, "adminState" text)
    CROSS JOIN LATERAL (SELECT CASE WHEN wanted."adminState" = 'DISABLED' THEN here.reason_disabled ELSE here.reason END AS reason) why),
  told AS (
    INSERT INTO event (at, project, object_kind, object_id, version, generation, reason, message, actor_kind, actor_name)
    VALUES (at, the_project, 'LoadBalancer', the_id, 1, 1, 'LoadBalancerCreated', input ->> 'eventMessage',
      input #>> '{actor,kind}', input #>> '{actor,name}'))
  SELECT ARRAY(SELECT cluster_id FROM placements) INTO placed;
  IF cardinality(wanted_reservations) > 0 THEN
    UPDATE ipv4_reservation SET load_balancer_id = the_id, bound_at = at, updated_at = at,
      generation = generation + 1 WHERE id = ANY (wanted_reservations);
  END IF;
  IF input ->> 'idempotencyKey' IS NOT NULL THEN
    INSERT INTO idempotency_key (project, mutation, key, input_hash, object_id, created_at)
    VALUES (the_project, 'createLoadBalancer', input ->> 'idempotencyKey', input ->> 'inputHash', the_id, at)
    ON CONFLICT (project, mutation, key) DO UPDATE
    SET input_hash = excluded.input_hash, object_id = excluded.object_id, created_at = excluded.created_at;
  END IF;
  -- Last, since a counter is held from here on until the commit.
  vip := allocate_ipv6_block(here.region, the_id);
  IF vip IS NULL THEN
    -- Caught by the caller, which maps it to its refusal: all that was written is undone.
    RAISE EXCEPTION USING ERRCODE = 'LB001', MESSAGE = 'no free IPv6 block';
  END IF;
  RETURN json_build_object('at', rfc3339(at), 'regionId', here.region, 'vpcName', here.vpc_name,
    'vip', host(vip), 'prefix', network(vip)::text, 'seen', here.seen, 'placed', placed,
    'health', json_build_object('state', first_health_state(here.reason), 'reason', here.reason,
      'message', first_health_message(here.reason)),
    'healthDisabled', json_build_object('state', first_health_state(here.reason_disabled),
      'reason', here.reason_disabled, 'message', first_health_message(here.reason_disabled)));
END $$;
