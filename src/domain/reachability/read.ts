/**
 * What vantage points found of the addresses of `lb`, as SQL: a JSON list of `VantageProbe`. What was
 * found of a reserved address before it was bound is about whoever had it then.
 */
export const PROBES_JSON = `(
  SELECT coalesce(json_agg(json_build_object('vantage', seen.vantage, 'address', host(seen.address),
    'reachable', seen.reachable, 'message', seen.message, 'at', rfc3339(seen.at))
    ORDER BY seen.address, seen.vantage), '[]'::json)
  FROM (
    SELECT block.vip AS address, lb.created_at AS since FROM ipv6_block block WHERE block.load_balancer_id = lb.id
    UNION ALL
    SELECT reservation.address, reservation.bound_at FROM ipv4_reservation reservation
    WHERE reservation.load_balancer_id = lb.id) vip
  JOIN reachability seen ON seen.address = vip.address AND seen.port = lb.port AND seen.at >= vip.since
  WHERE lb.protocol = 'TCP' AND lb.deleting_since IS NULL)`
