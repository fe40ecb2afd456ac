-- Hot paths are one round trip: VOLATILE PL/pgSQL functions that lock first and read after. Each of
-- their statements sees a new snapshot; in one single statement a count reads what was true before
-- the lock was had (two callers at quota 1 got two rows).
-- Locks are always taken in this order: project, VPC, load balancer (by id), reservation, placement, pool.

-- Times and addresses.

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
