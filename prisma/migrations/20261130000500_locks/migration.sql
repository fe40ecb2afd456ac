-- As it was, but only for the cluster's present owner, and only for a load balancer that is to be there:
-- a hold that a former owner opened late would be closed by nobody.
DROP FUNCTION open_holds(uuid, uuid, inet[], text[]);
CREATE FUNCTION open_holds(the_cluster uuid, epoch bigint, load_balancer uuid, vips inet[], rules text[]) RETURNS SETOF inet
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM FROM cluster WHERE id = the_cluster AND lease_epoch = epoch FOR KEY SHARE;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING ERRCODE = 'LB002', MESSAGE = 'the cluster has another owner';
  END IF;
  PERFORM FROM ipv4_reservation WHERE address = ANY (vips) ORDER BY id FOR UPDATE;
  PERFORM FROM placement WHERE load_balancer_id = load_balancer AND cluster_id = the_cluster AND placed FOR SHARE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM FROM ipv6_block WHERE vip = ANY (vips) ORDER BY vip FOR UPDATE;
  RETURN QUERY
  INSERT INTO hold (cluster_id, vip, load_balancer_id, rule_name)
  SELECT the_cluster, wanted.vip, load_balancer, wanted.rule
  FROM unnest(vips, rules) AS wanted (vip, rule)
  WHERE (EXISTS (SELECT FROM ipv4_reservation held WHERE held.address = wanted.vip AND held.load_balancer_id = load_balancer)
      OR EXISTS (SELECT FROM ipv6_block held WHERE held.vip = wanted.vip AND held.load_balancer_id = load_balancer))
    AND NOT EXISTS (SELECT FROM hold other WHERE other.vip = wanted.vip AND other.gone_at IS NULL
      AND other.load_balancer_id <> load_balancer)
  ON CONFLICT (cluster_id, vip, load_balancer_id) DO UPDATE
  SET since = CASE WHEN hold.gone_at IS NULL THEN hold.since ELSE clock_timestamp() END,
    gone_at = NULL, rule_name = excluded.rule_name
  RETURNING hold.vip;
END $$;

ALTER TABLE "backend" ALTER COLUMN "health_reason" SET DEFAULT 'NotProbedYet';

-- Worker processes that live, so that each can tell its share of the clusters.
CREATE TABLE "worker" (
  "name" TEXT NOT NULL,
  "seen_at" TIMESTAMPTZ(3) NOT NULL,
  CONSTRAINT "worker_pkey" PRIMARY KEY ("name")
);

-- Events of this transaction and of older ones are no longer all there.
ALTER TABLE "store" ADD COLUMN "removed_up_to" XID8;
