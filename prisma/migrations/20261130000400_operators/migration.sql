-- What operators decide about clusters and pools, and what is seen of clusters for them.

ALTER TABLE "cluster"
  -- Backends that were added later than this are not taken while the cluster isn't ACTIVE.
  ADD COLUMN "cordoned_since" TIMESTAMPTZ(3),
  ADD COLUMN "forgotten_at" TIMESTAMPTZ(3),
  ADD COLUMN "reachable_since" TIMESTAMPTZ(3),
  -- An operator let the sweep take what has no owner; the sweep that did so takes it back.
  ADD COLUMN "sweep_allowed_at" TIMESTAMPTZ(3),
  -- Conditions as the cluster's worker finds them: {status, reason, message, since}.
  ADD COLUMN "sweep" JSONB,
  ADD COLUMN "inventory" JSONB,
  ADD COLUMN "gateways" INTEGER;

-- Counts changes of prefix and exclusions. A counter carries the number of the geometry that it counts
-- in, so that whoever waited for the counter finds out that what it read of the pool is of yesterday.
ALTER TABLE "address_pool"
  ADD COLUMN "geometry" INTEGER NOT NULL DEFAULT 1,
  -- Numbers of blocks that were handed out before the prefix began elsewhere: their rows are there.
  ADD COLUMN "handed" INT8MULTIRANGE NOT NULL DEFAULT '{}';
ALTER TABLE "address_pool_counter" ADD COLUMN "geometry" INTEGER NOT NULL DEFAULT 1;
CREATE INDEX "ipv6_block_pool_id_idx" ON "ipv6_block" ("pool_id");

-- The last that each vantage point outside told of an address and port.
CREATE TABLE "reachability" (
  "vantage" TEXT NOT NULL,
  "address" INET NOT NULL,
  "port" INTEGER NOT NULL,
  "reachable" BOOLEAN NOT NULL,
  "message" TEXT,
  "at" TIMESTAMPTZ(3) NOT NULL,
  CONSTRAINT "reachability_pkey" PRIMARY KEY ("vantage", "address", "port")
);
CREATE INDEX "reachability_address_port_idx" ON "reachability" ("address", "port");

-- Since when it is behind: kept by the trigger, since due moves with every failure.
ALTER TABLE "placement" ADD COLUMN "due_since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP;
CREATE FUNCTION note_due_since() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW.due_since := clock_timestamp();
  RETURN NEW;
END $$;
CREATE TRIGGER "note_due_since" BEFORE UPDATE ON "placement"
FOR EACH ROW WHEN (OLD.asked <= OLD.applied AND NEW.asked > OLD.asked) EXECUTE FUNCTION note_due_since();

CREATE INDEX "hold_cluster_id_idx" ON "hold" ("cluster_id") WHERE "gone_at" IS NULL;

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

-- The clusters where it should be. One that is to be drained is left once another one serves what is
-- wanted now; where there is no other, it stays.
CREATE OR REPLACE FUNCTION clusters_of(load_balancer uuid) RETURNS SETOF uuid
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
CREATE TRIGGER "refuse_new_placement" BEFORE INSERT ON "placement"
FOR EACH ROW EXECUTE FUNCTION refuse_new_placement();

-- The backends of a load balancer that a cluster doesn't take though they live there: see places_of.
CREATE FUNCTION cordoned_backends(the_cluster uuid, load_balancer uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT backend.id FROM cluster JOIN backend ON backend.load_balancer_id = $2
  WHERE cluster.id = $1 AND cluster.mode <> 'ACTIVE' AND backend.created_at > cluster.cordoned_since
$$;

-- As it was, and with the clusters that don't take a backend though it lives there ("cordonedIn"); a
-- cluster that was forgotten is not told of.
CREATE OR REPLACE FUNCTION load_balancers_json(ids uuid[], for_project text, for_fold boolean) RETURNS TABLE (id uuid, record json)
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
          'unreachableSince', rfc3339(cluster.unreachable_since)) ORDER BY cluster.name), '[]'::json)
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
        'message', backend.health_message, 'since', rfc3339(backend.health_since),
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

-- As it was, but for two things: a block whose VIP a cluster may still carry (as after a restored backup,
-- when the counters are behind the clusters) is put by for later, and a pool that was changed while its
-- counter was waited for is read again.
CREATE OR REPLACE FUNCTION allocate_ipv6_block(region uuid, load_balancer uuid) RETURNS inet
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
  FOR pool_id_now IN
    SELECT id FROM address_pool
    WHERE region_id = region AND family = 'IPV6' AND state = 'ACTIVE' ORDER BY created_at, id
  LOOP
    SELECT id, prefix, allocation_prefix_length AS length, blocks, unusable + handed AS barred, geometry INTO pool
    FROM address_pool WHERE id = pool_id_now;
    stripe_now := pg_backend_pid() % 16;
    -- Bounded: each round either hands out a block, jumps over a barred range or ends a stripe.
    FOR round IN 1..1000 LOOP
      UPDATE address_pool_counter SET next = next + 16
      WHERE pool_id = pool.id AND stripe = stripe_now AND next < pool.blocks
      RETURNING next - 16, geometry INTO taken, counted_in;
      IF NOT FOUND THEN
        SELECT stripe INTO stripe_now FROM address_pool_counter
        WHERE pool_id = pool.id AND next < pool.blocks ORDER BY random() LIMIT 1;
        EXIT WHEN NOT FOUND;
        CONTINUE;
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
      address := CASE WHEN pool.length >= 127 THEN host(start)::inet ELSE host(start)::inet + 1 END;
      IF EXISTS (SELECT FROM hold WHERE hold.vip = address AND hold.gone_at IS NULL) THEN
        INSERT INTO ipv6_block (prefix, vip, pool_id, reusable_at)
        VALUES (block, address, pool.id, clock_timestamp()) ON CONFLICT DO NOTHING;
        CONTINUE;
      END IF;
      INSERT INTO ipv6_block (prefix, vip, pool_id, load_balancer_id)
      VALUES (block, address, pool.id, load_balancer) ON CONFLICT DO NOTHING;
      IF FOUND THEN
        RETURN address;
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
      RETURNING vip INTO address;
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

-- As it was, but that also a project's own cooling address isn't given back while a cluster may carry it.
CREATE OR REPLACE FUNCTION allocate_ipv4_address(region uuid, reservation uuid, for_project text) RETURNS inet
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
