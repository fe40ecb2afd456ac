-- Hot paths are one round trip: VOLATILE PL/pgSQL functions that lock first and read after. Each of
-- their statements sees a new snapshot; in one single statement a count reads what was true before
-- the lock was had (two callers at quota 1 got two rows).
-- Locks are always taken in this order: project, VPC, load balancer (by id), reservation, placement, pool.

-- An instant as the API writes it: RFC 3339, UTC, milliseconds.
CREATE FUNCTION rfc3339(instant timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_char(instant AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');

-- The address that is `number` blocks of 2^shift addresses behind the start of a prefix.
CREATE FUNCTION block_start(prefix cidr, number bigint, shift integer) RETURNS inet
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
  high bigint;
  low bigint;
BEGIN
  IF shift = 0 THEN
    RETURN host(prefix)::inet + number;
  END IF;
  IF shift >= 64 THEN
    high := number << (shift - 64);
    low := 0;
  ELSE
    high := number >> (64 - shift);
    low := number << shift;
  END IF;
  -- inet + bigint ends at 2^63 and inet has no shift: the offset is spelled in hex and added by bits.
  RETURN host(prefix)::inet | (regexp_replace(
    lpad(to_hex(high), 16, '0') || lpad(to_hex(low), 16, '0'), '(.{4})(?=.)', '\1:', 'g'))::inet;
END $$;

-- The VIP in the block of that length that begins there.
CREATE FUNCTION vip_of(start inet, length integer) RETURNS inet
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN length >= 127 THEN start ELSE start + 1 END;

-- Takes the next IPv6 block of the region for a load balancer; NULL when every pool is exhausted. Answers
-- the VIP with the length of its block (2001:db8::1/64). The VIP is the first usable address of the block:
-- the address itself, or in a subnet the one behind the subnet-router anycast address (RFC 4291, 2.6.1).
-- A plan names the address that a create would take next, and may be made on another connection than
-- the create that follows. So counters take turns: the one that has handed out least is next, and those
-- that others hold are passed by. A block whose VIP a cluster may still carry (as after a restored
-- backup, when the counters are behind the clusters) is put by for later; a pool that was changed while
-- its counter was waited for is read again.
CREATE FUNCTION allocate_ipv6_block(region uuid, load_balancer uuid) RETURNS inet
LANGUAGE plpgsql AS $$
DECLARE
  pool record;
  pool_id_now uuid;
  counted_in integer;
  stripe_now integer;
  taken bigint;
  barred int8range;
  start inet;
  block cidr;
  address inet;
BEGIN
  -- What nearly all are: the region's first pool has a counter that is free, and its next block can be
  -- had. In one statement, since starting statements is what allocation costs.
  WITH first_pool AS (
    SELECT id, prefix, allocation_prefix_length AS length, blocks, unusable + handed AS barred, geometry
    FROM address_pool WHERE region_id = region AND family = 'IPV6' AND state = 'ACTIVE'
    ORDER BY created_at, id LIMIT 1),
  picked AS (
    SELECT counter.pool_id, counter.stripe FROM first_pool
    JOIN address_pool_counter counter ON counter.pool_id = first_pool.id
      AND counter.next < first_pool.blocks AND counter.geometry = first_pool.geometry
    ORDER BY counter.next LIMIT 1 FOR UPDATE OF counter SKIP LOCKED),
  counted AS (
    UPDATE address_pool_counter counter SET next = counter.next + 16 FROM picked
    WHERE counter.pool_id = picked.pool_id AND counter.stripe = picked.stripe
    RETURNING counter.next - 16 AS number),
  found AS MATERIALIZED (
    SELECT first_pool.id, first_pool.length, vip_of(block_start(first_pool.prefix, number, 128 - first_pool.length), first_pool.length) AS vip
    FROM counted CROSS JOIN first_pool WHERE NOT number <@ first_pool.barred),
  placed AS (
    INSERT INTO ipv6_block (prefix, vip, pool_id, load_balancer_id, reusable_at)
    SELECT network(set_masklen(found.vip, length)), found.vip, id,
      CASE WHEN carried.vip IS NULL THEN load_balancer END, CASE WHEN carried.vip IS NOT NULL THEN clock_timestamp() END
    FROM found LEFT JOIN LATERAL (
      SELECT hold.vip FROM hold WHERE hold.vip = found.vip AND hold.gone_at IS NULL LIMIT 1) carried ON true
    ON CONFLICT DO NOTHING RETURNING ipv6_block.vip, ipv6_block.prefix, load_balancer_id)
  SELECT set_masklen(placed.vip, masklen(placed.prefix)) INTO address FROM placed WHERE load_balancer_id IS NOT NULL;
  IF FOUND THEN
    RETURN address;
  END IF;
  FOR pool_id_now IN
    SELECT id FROM address_pool
    WHERE region_id = region AND family = 'IPV6' AND state = 'ACTIVE' ORDER BY created_at, id
  LOOP
    SELECT id, prefix, allocation_prefix_length AS length, blocks, unusable + handed AS barred, geometry INTO pool
    FROM address_pool WHERE id = pool_id_now;
    -- Bounded: each round either hands out a block, jumps over a barred range or ends a stripe.
    FOR round IN 1..1000 LOOP
      UPDATE address_pool_counter SET next = next + 16
      WHERE pool_id = pool.id AND stripe = (
        SELECT stripe FROM address_pool_counter WHERE pool_id = pool.id AND next < pool.blocks
        ORDER BY next LIMIT 1 FOR UPDATE SKIP LOCKED)
      RETURNING next - 16, stripe, geometry INTO taken, stripe_now, counted_in;
      IF NOT FOUND THEN
        -- All that have not ended are held by others: wait for one of them.
        UPDATE address_pool_counter SET next = next + 16
        WHERE pool_id = pool.id AND next < pool.blocks AND stripe = (
          SELECT stripe FROM address_pool_counter
          WHERE pool_id = pool.id AND next < pool.blocks ORDER BY random() LIMIT 1)
        RETURNING next - 16, stripe, geometry INTO taken, stripe_now, counted_in;
        IF NOT FOUND THEN
          PERFORM FROM address_pool_counter WHERE pool_id = pool.id AND next < pool.blocks;
          EXIT WHEN NOT FOUND;
          CONTINUE;
        END IF;
      END IF;
      IF counted_in <> pool.geometry THEN
        SELECT id, prefix, allocation_prefix_length AS length, blocks, unusable + handed AS barred, geometry INTO pool
        FROM address_pool WHERE id = pool_id_now;
        CONTINUE WHEN taken >= pool.blocks;
      END IF;
      IF taken <@ pool.barred THEN
        SELECT range INTO barred FROM unnest(pool.barred) AS range WHERE taken <@ range;
        -- The first number of this stripe behind the range.
        UPDATE address_pool_counter SET next = greatest(next,
          upper(barred) + (((stripe - upper(barred)) % 16) + 16) % 16)
        WHERE pool_id = pool.id AND stripe = stripe_now;
        CONTINUE;
      END IF;
      start := block_start(pool.prefix, taken, 128 - pool.length);
      block := set_masklen(start, pool.length)::cidr;
      address := vip_of(start, pool.length);
      IF EXISTS (SELECT FROM hold WHERE hold.vip = address AND hold.gone_at IS NULL) THEN
        INSERT INTO ipv6_block (prefix, vip, pool_id, reusable_at)
        VALUES (block, address, pool.id, clock_timestamp()) ON CONFLICT DO NOTHING;
        CONTINUE;
      END IF;
      INSERT INTO ipv6_block (prefix, vip, pool_id, load_balancer_id)
      VALUES (block, address, pool.id, load_balancer) ON CONFLICT DO NOTHING;
      IF FOUND THEN
        RETURN set_masklen(address, pool.length);
      END IF;
    END LOOP;
    -- The counters have ended: returned blocks that have cooled down and that no cluster may still
    -- carry. The second look waits for rows that another transaction has locked: it may roll back.
    FOR attempt IN 1..2 LOOP
      UPDATE ipv6_block SET load_balancer_id = load_balancer, reusable_at = NULL
      WHERE prefix = (
        SELECT candidate.prefix FROM ipv6_block candidate
        WHERE candidate.pool_id = pool.id AND candidate.load_balancer_id IS NULL
          AND candidate.reusable_at <= clock_timestamp()
          AND NOT EXISTS (SELECT FROM hold WHERE hold.vip = candidate.vip AND hold.gone_at IS NULL)
        ORDER BY candidate.reusable_at LIMIT 1
        FOR UPDATE SKIP LOCKED)
      RETURNING set_masklen(vip, masklen(prefix)) INTO address;
      IF FOUND THEN
        RETURN address;
      END IF;
      IF attempt = 1 THEN
        PERFORM FROM ipv6_block candidate
        WHERE candidate.pool_id = pool.id AND candidate.load_balancer_id IS NULL
          AND candidate.reusable_at <= clock_timestamp()
        ORDER BY candidate.reusable_at LIMIT 1 FOR UPDATE;
        EXIT WHEN NOT FOUND;
      END IF;
    END LOOP;
  END LOOP;
  RETURN NULL;
END $$;

-- Takes the longest-free IPv4 address of the region for a reservation; a project may get its own cooling
-- address back at once. None is given that a cluster may still carry. NULL when there is none.
CREATE FUNCTION allocate_ipv4_address(region uuid, reservation uuid, for_project text) RETURNS inet
LANGUAGE plpgsql AS $$
DECLARE
  taken inet;
BEGIN
  FOR attempt IN 1..2 LOOP
    UPDATE ipv4_address SET reservation_id = reservation, last_project = for_project
    WHERE address = (
      SELECT free.address FROM address_pool pool
      CROSS JOIN LATERAL (
        SELECT candidate.address, candidate.reusable_at FROM ipv4_address candidate
        WHERE candidate.pool_id = pool.id AND candidate.reservation_id IS NULL
          AND candidate.reusable_at <= clock_timestamp()
          AND NOT EXISTS (SELECT FROM hold WHERE hold.vip = candidate.address AND hold.gone_at IS NULL)
        ORDER BY candidate.reusable_at, candidate.address LIMIT 1
        FOR UPDATE SKIP LOCKED) free
      WHERE pool.region_id = region AND pool.family = 'IPV4' AND pool.state = 'ACTIVE'
      ORDER BY free.reusable_at, free.address LIMIT 1)
    RETURNING address INTO taken;
    IF FOUND THEN
      RETURN taken;
    END IF;
    UPDATE ipv4_address SET reservation_id = reservation
    WHERE address = (
      SELECT candidate.address FROM ipv4_address candidate
      JOIN address_pool pool ON pool.id = candidate.pool_id
      WHERE pool.region_id = region AND pool.state = 'ACTIVE'
        AND candidate.reservation_id IS NULL AND candidate.last_project = for_project
        AND NOT EXISTS (SELECT FROM hold WHERE hold.vip = candidate.address AND hold.gone_at IS NULL)
      ORDER BY candidate.reusable_at LIMIT 1
      FOR UPDATE OF candidate SKIP LOCKED)
    RETURNING address INTO taken;
    IF FOUND THEN
      RETURN taken;
    END IF;
    IF attempt = 1 THEN
      -- Somebody who holds the last one may roll back: wait for it, then look once more.
      PERFORM FROM ipv4_address candidate JOIN address_pool pool ON pool.id = candidate.pool_id
      WHERE pool.region_id = region AND pool.state = 'ACTIVE'
        AND candidate.reservation_id IS NULL AND candidate.reusable_at <= clock_timestamp()
      ORDER BY candidate.reusable_at, candidate.address LIMIT 1 FOR UPDATE OF candidate;
    END IF;
  END LOOP;
  RETURN NULL;
END $$;

-- The clusters where a load balancer may be: an enabled backend lives there, and the cluster takes it.
-- One that isn't ACTIVE keeps what it has: placements, and their backends of before.
CREATE FUNCTION places_of(load_balancer uuid) RETURNS TABLE (cluster_id uuid, mode text)
LANGUAGE sql STABLE AS $$
  SELECT DISTINCT cluster.id, cluster.mode
  FROM load_balancer lb
  JOIN backend ON backend.load_balancer_id = lb.id AND backend.admin_state = 'ENABLED'
  JOIN endpoint ON endpoint.vpc_id = lb.vpc_id AND endpoint.address = backend.address
  JOIN cluster ON cluster.id = endpoint.cluster_id AND cluster.region_id = lb.region_id
  WHERE lb.id = $1 AND lb.deleting_since IS NULL AND cluster.forgotten_at IS NULL
    AND (cluster.mode = 'ACTIVE' OR (backend.created_at <= cluster.cordoned_since AND EXISTS (
      SELECT FROM placement WHERE placement.load_balancer_id = lb.id
        AND placement.cluster_id = cluster.id AND placement.placed)))
$$;

-- The clusters where a load balancer should be. One that is to be drained is left once another one serves
-- what is wanted now; where there is no other, it stays.
CREATE FUNCTION clusters_of(load_balancer uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT place.cluster_id FROM places_of($1) place
  WHERE place.mode <> 'DRAINED' OR NOT EXISTS (
    SELECT FROM places_of($1) other
    JOIN cluster ON cluster.id = other.cluster_id AND cluster.unreachable_since IS NULL
    JOIN placement ON placement.load_balancer_id = $1 AND placement.cluster_id = other.cluster_id
    JOIN load_balancer lb ON lb.id = $1
    WHERE other.mode <> 'DRAINED' AND placement.placed
      AND placement.settled_generation >= lb.rules_generation
      AND (placement.report ->> 'inEffect')::boolean
      AND EXISTS (SELECT FROM jsonb_each(placement.report -> 'backends') AS seen
        WHERE (seen.value ->> 'serving')::boolean))
$$;

-- Derives the placements anew and makes them due. The caller has locked the load balancer's row.
CREATE FUNCTION ask_placements(load_balancer uuid) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
  wanted uuid[] := ARRAY(SELECT clusters_of(load_balancer));
BEGIN
  INSERT INTO placement (load_balancer_id, cluster_id, placed, due)
  SELECT load_balancer, cluster, true, clock_timestamp() FROM unnest(wanted) AS cluster ORDER BY cluster
  ON CONFLICT (load_balancer_id, cluster_id) DO UPDATE
  SET placed = true, asked = placement.asked + 1, due = clock_timestamp(), attempts = 0;
  UPDATE placement SET placed = false, asked = asked + 1, due = clock_timestamp(), attempts = 0
  WHERE load_balancer_id = load_balancer AND NOT cluster_id = ANY (wanted);
  RETURN cardinality(wanted);
END $$;

-- The data plane has one place for each VPC, node, protocol and port: whoever may gain or lose it by
-- a change of this load balancer is asked too, by what it is now and by what it was. Its own placements
-- are locked with theirs, since holds are opened of many at once: ask_placements comes after.
CREATE FUNCTION ask_rivals(load_balancer uuid, protocol_before text DEFAULT NULL, port_before integer DEFAULT NULL)
RETURNS void
LANGUAGE sql AS $$
  UPDATE placement SET asked = asked + 1, due = clock_timestamp()
  WHERE load_balancer_id <> $1 AND (load_balancer_id, cluster_id) IN (
    SELECT due_too.load_balancer_id, due_too.cluster_id
    FROM load_balancer lb
    JOIN load_balancer rival ON rival.vpc_id = lb.vpc_id AND rival.region_id = lb.region_id
      AND (rival.protocol = lb.protocol AND rival.port = lb.port OR rival.protocol = $2 AND rival.port = $3
        OR rival.id = lb.id)
    JOIN placement due_too ON due_too.load_balancer_id = rival.id
    WHERE lb.id = $1
    ORDER BY due_too.load_balancer_id, due_too.cluster_id
    FOR UPDATE OF due_too)
$$;

CREATE FUNCTION append_event(
  project text, object_kind text, object_id uuid, version bigint, generation integer, reason text,
  message text, actor_kind text, actor_name text, changes jsonb, object jsonb
) RETURNS void LANGUAGE sql AS $$
  INSERT INTO event (at, project, object_kind, object_id, version, generation, reason, message,
    actor_kind, actor_name, changes, object)
  VALUES (clock_timestamp(), $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
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
          'unreachableSince', rfc3339(cluster.unreachable_since),
          'unreachableReason', CASE WHEN cluster.unreachable_since IS NOT NULL THEN cluster.trouble ->> 'reason' END) ORDER BY cluster.name), '[]'::json)
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

-- Writes what statuses were folded into, each with its event where it has one: [{id, status, version,
-- event: {reason, message, actor, changes}}]. Answers those of them that reservations follow: bound to
-- the load balancer, or carried by it still. The caller has locked the load balancers' rows.
CREATE FUNCTION write_statuses(folded jsonb) RETURNS SETOF uuid
LANGUAGE sql AS $$
  WITH written AS (
    UPDATE load_balancer lb SET status = item.status, phase = item.status ->> 'phase',
      observed_generation = (item.status ->> 'observedGeneration')::integer, version = item.version
    FROM jsonb_to_recordset($1) AS item (id uuid, status jsonb, version bigint, event jsonb)
    WHERE lb.id = item.id RETURNING lb.id, lb.project, lb.generation, lb.version, item.event),
  told AS (
    INSERT INTO event (at, project, object_kind, object_id, version, generation, reason, message, actor_kind, actor_name, changes)
    SELECT clock_timestamp(), project, 'LoadBalancer', id, version, generation, event ->> 'reason', event ->> 'message',
      event #>> '{actor,kind}', event #>> '{actor,name}', event -> 'changes'
    FROM written WHERE jsonb_typeof(event) = 'object' ORDER BY id)
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
        rfc3339(cluster.unreachable_since),
        CASE WHEN cluster.unreachable_since IS NOT NULL THEN cluster.trouble ->> 'reason' END, cluster.id) ORDER BY cluster.name)
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

-- What is wanted of some load balancers in one cluster, for its worker: see src/rules/wanted.ts.
CREATE FUNCTION wanted_json(the_cluster uuid, ids uuid[]) RETURNS TABLE (id uuid, wanted json)
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
          WHERE endpoint.vpc_id = lb.vpc_id AND endpoint.address = backend.address
            AND cluster.region_id = lb.region_id AND cluster.forgotten_at IS NULL)),
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

-- Opens holds before the first apply of rules, and answers those for which it may be done: the VIPs
-- that the load balancer owns now and that no other one has an open hold on. The rows of the addresses
-- are locked, so that two load balancers never both find an address free. Only for the cluster's
-- present owner and load balancers that are to be there: a hold that a former owner opened late would be
-- closed by nobody.
CREATE FUNCTION open_holds(the_cluster uuid, epoch bigint, load_balancers uuid[], vips inet[], rules text[])
RETURNS TABLE (load_balancer uuid, vip inet)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  PERFORM FROM cluster WHERE id = the_cluster AND lease_epoch = epoch FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'LB002', MESSAGE = 'the cluster has another owner';
  END IF;
  PERFORM FROM ipv4_reservation WHERE address = ANY (vips) ORDER BY id FOR UPDATE;
  PERFORM FROM placement WHERE load_balancer_id = ANY (load_balancers) AND cluster_id = the_cluster AND placed
  ORDER BY load_balancer_id FOR SHARE;
  PERFORM FROM ipv6_block WHERE vip = ANY (vips) ORDER BY vip FOR UPDATE;
  RETURN QUERY
  INSERT INTO hold (cluster_id, vip, load_balancer_id, rule_name)
  SELECT the_cluster, wanted.vip, wanted.load_balancer, wanted.rule
  FROM unnest(load_balancers, vips, rules) AS wanted (load_balancer, vip, rule)
  WHERE EXISTS (SELECT FROM placement WHERE load_balancer_id = wanted.load_balancer AND cluster_id = the_cluster AND placed)
    AND (EXISTS (SELECT FROM ipv4_reservation held WHERE held.address = wanted.vip AND held.load_balancer_id = wanted.load_balancer)
      OR EXISTS (SELECT FROM ipv6_block held WHERE held.vip = wanted.vip AND held.load_balancer_id = wanted.load_balancer))
    AND NOT EXISTS (SELECT FROM hold other WHERE other.vip = wanted.vip AND other.gone_at IS NULL
      AND other.load_balancer_id <> wanted.load_balancer)
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
  PERFORM FROM placement WHERE (load_balancer_id, cluster_id) IN (
    SELECT load_balancer, cluster FROM jsonb_to_recordset(told) AS item (load_balancer uuid, cluster uuid)
    UNION SELECT load_balancer_id, cluster_id FROM placement WHERE load_balancer_id = ANY (waiting))
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
  SELECT item.place, lb.id IS NOT NULL AND cluster.id IS NULL, placement.cluster_id IS NULL,
    item.place = ANY (coalesce(closing, '{}')), coalesce(lb.deleting_since IS NOT NULL, false)
  FROM jsonb_to_recordset(told) AS item (place integer, cluster uuid, epoch bigint, load_balancer uuid)
  LEFT JOIN load_balancer lb ON lb.id = item.load_balancer
  LEFT JOIN cluster ON cluster.id = item.cluster AND lease_epoch = epoch
  LEFT JOIN placement ON placement.load_balancer_id = item.load_balancer AND placement.cluster_id = item.cluster;
END $$;

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

-- Health of backends, as the owners of clusters find it by probing.

-- Tells one state of a backend's health from another: what was judged from an older one isn't written.
CREATE FUNCTION health_mark(state text, reason text, since timestamptz) RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
RETURN state || ' ' || reason || ' ' || rfc3339(since);

-- Writes what became of the health of some backends of one load balancer: [{id, known, state, reason,
-- message, flaps}], `known` being the mark that it was judged from. Locks the load balancer first; backends
-- whose health was changed meanwhile are left alone. One version is counted for each new state among
-- them (an event each); placements are asked where it may change which backends serve, and then the load
-- balancer rests for `rest` milliseconds. While it does, only what has `waited` is written. Answers
-- {"outcome": "gone" | "lease-lost" | "stale"} or {"outcome": "resting", milliseconds} with nothing changed,
-- or {"outcome": "written", version, project, name, generation, rests, moved: […]}.
CREATE FUNCTION record_health(the_cluster uuid, epoch bigint, the_load_balancer uuid,
  known_generation integer, changes jsonb, rest integer, waited boolean) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  lb record;
  moved jsonb;
  states integer;
  serving_changes boolean;
BEGIN
  SELECT project, name, generation, version, rules_generation, rests_until, deleting_since INTO lb
  FROM load_balancer WHERE id = the_load_balancer FOR NO KEY UPDATE;
  IF NOT FOUND OR lb.deleting_since IS NOT NULL THEN
    RETURN jsonb_build_object('outcome', 'gone');
  END IF;
  PERFORM FROM cluster WHERE id = the_cluster AND lease_epoch = epoch FOR KEY SHARE;
  IF NOT FOUND THEN
    RETURN jsonb_build_object('outcome', 'lease-lost');
  END IF;
  -- The port, the health check or the backends were changed since: what was judged may be about another.
  IF lb.rules_generation <> known_generation THEN
    RETURN jsonb_build_object('outcome', 'stale');
  END IF;
  IF lb.rests_until > clock_timestamp() AND NOT waited THEN
    RETURN jsonb_build_object('outcome', 'resting',
      'milliseconds', 1000 * extract(epoch FROM lb.rests_until - clock_timestamp()));
  END IF;
  WITH written AS (
    UPDATE backend SET health_state = wanted.state, health_reason = wanted.reason,
      health_message = wanted.message, health_flaps = wanted.flaps,
      health_since = CASE WHEN old.health_state = wanted.state THEN old.health_since ELSE clock_timestamp() END
    FROM jsonb_to_recordset(changes) AS wanted (id uuid, known text, state text, reason text, message text, flaps jsonb)
    JOIN backend old ON old.id = wanted.id
    WHERE backend.id = wanted.id AND old.load_balancer_id = the_load_balancer
      AND health_mark(old.health_state, old.health_reason, old.health_since) = wanted.known
    RETURNING backend.id, host(backend.address) AS address, backend.admin_state AS "adminState",
      old.health_state AS before, old.health_message AS "messageBefore",
      backend.health_state AS state, backend.health_reason AS reason, backend.health_message AS message,
      health_mark(backend.health_state, backend.health_reason, backend.health_since) AS mark)
  SELECT jsonb_agg(to_jsonb(written) ORDER BY id), count(DISTINCT state),
    bool_or("adminState" = 'ENABLED' AND (before = 'UNHEALTHY') <> (state = 'UNHEALTHY'))
  INTO moved, states, serving_changes FROM written;
  IF moved IS NULL THEN
    RETURN jsonb_build_object('outcome', 'stale');
  END IF;
  UPDATE load_balancer SET version = version + states,
    rests_until = CASE WHEN serving_changes THEN clock_timestamp() + rest * interval '1 millisecond' ELSE rests_until END
  WHERE id = the_load_balancer;
  IF serving_changes THEN
    UPDATE placement SET asked = asked + 1, due = clock_timestamp()
    WHERE load_balancer_id = the_load_balancer AND placed;
  END IF;
  RETURN jsonb_build_object('outcome', 'written', 'version', lb.version + states, 'project', lb.project,
    'name', lb.name, 'generation', lb.generation, 'rests', serving_changes, 'moved', moved);
END $$;

-- Takes in streaks, last probe times (milliseconds since 1970) and what the last probe failed of (NULL: it
-- didn't), place by place of five arrays, and forgets those of backends that are gone. Rows are locked in
-- one order, so that two owners never wait for each other.
CREATE FUNCTION record_probes(ids uuid[], instants bigint[], successes integer[], failures integer[],
  last_failures text[], left_behind uuid[]) RETURNS void
LANGUAGE sql AS $$
  DELETE FROM backend_probe WHERE backend_id = ANY (left_behind)
    AND NOT EXISTS (SELECT FROM backend WHERE backend.id = backend_id);
  INSERT INTO backend_probe (backend_id, last_probed_at, consecutive_successes, consecutive_failures, last_failure)
  SELECT probe.id, to_timestamp(probe.instant / 1000.0), probe.succeeded, probe.failed, probe.failure
  FROM unnest(ids, instants, successes, failures, last_failures) AS probe (id, instant, succeeded, failed, failure)
  WHERE EXISTS (SELECT FROM backend WHERE backend.id = probe.id)
  ORDER BY probe.id
  ON CONFLICT (backend_id) DO UPDATE SET last_probed_at = excluded.last_probed_at,
    consecutive_successes = excluded.consecutive_successes, consecutive_failures = excluded.consecutive_failures,
    last_failure = excluded.last_failure;
$$;

CREATE FUNCTION note_due_since() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW.due_since := clock_timestamp();
  RETURN NEW;
END $$;

-- No new placement comes into a cluster that is cordoned, drained or forgotten, whoever asks for it.
CREATE FUNCTION refuse_new_placement() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.placed AND EXISTS (SELECT FROM cluster WHERE id = NEW.cluster_id
      AND (mode <> 'ACTIVE' OR forgotten_at IS NOT NULL))
    AND NOT EXISTS (SELECT FROM placement WHERE load_balancer_id = NEW.load_balancer_id AND cluster_id = NEW.cluster_id) THEN
    RETURN NULL;
  END IF;
  RETURN NEW;
END $$;

-- The backends of a load balancer that a cluster doesn't take though they live there: see places_of.
CREATE FUNCTION cordoned_backends(the_cluster uuid, load_balancer uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT backend.id FROM cluster JOIN backend ON backend.load_balancer_id = $2
  WHERE cluster.id = $1 AND cluster.mode <> 'ACTIVE' AND backend.created_at > cluster.cordoned_since
$$;

CREATE TRIGGER "note_due_since" BEFORE UPDATE ON "placement"
FOR EACH ROW WHEN (OLD.asked <= OLD.applied AND NEW.asked > OLD.asked) EXECUTE FUNCTION note_due_since();

CREATE TRIGGER "refuse_new_placement" BEFORE INSERT ON "placement"
FOR EACH ROW EXECUTE FUNCTION refuse_new_placement();
