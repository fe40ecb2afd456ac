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
