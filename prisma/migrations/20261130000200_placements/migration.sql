-- Where load balancers are placed, and who is asked after a change. See the functions of addresses for the order of locks.

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

-- The backends of a load balancer that a cluster doesn't take though they live there: see places_of.
CREATE FUNCTION cordoned_backends(the_cluster uuid, load_balancer uuid) RETURNS SETOF uuid
LANGUAGE sql STABLE AS $$
  SELECT backend.id FROM cluster JOIN backend ON backend.load_balancer_id = $2
  WHERE cluster.id = $1 AND cluster.mode <> 'ACTIVE' AND backend.created_at > cluster.cordoned_since
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

CREATE TRIGGER "note_due_since" BEFORE UPDATE ON "placement"
FOR EACH ROW WHEN (OLD.asked <= OLD.applied AND NEW.asked > OLD.asked) EXECUTE FUNCTION note_due_since();

CREATE TRIGGER "refuse_new_placement" BEFORE INSERT ON "placement"
FOR EACH ROW EXECUTE FUNCTION refuse_new_placement();
