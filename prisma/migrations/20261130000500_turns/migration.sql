-- A plan names the address that a create would take next, and may be made on another connection than
-- the create that follows. So counters take turns, instead of each connection having one of its own:
-- the one that has handed out least is next, and those that others hold are passed by. Otherwise as it was.
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
