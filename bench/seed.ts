import type pg from 'pg'
import type { Store } from '../src/db/client.ts'
import { refoldAlone } from '../src/domain/placements/derive.ts'
import { globalId } from '../src/schema/ids.ts'

/** Of whom load balancers are made: a VPC with the addresses of its endpoints. */
export type Owner = { project: string; vpc: string; addresses: string[] }

/** Ids are the number of the load balancer, and then always the same. */
const REST = '-0000-7000-8000-0000000000'
const idOf = (number: number, part = 0) =>
  `${number.toString(16).padStart(8, '0')}${REST}${part.toString(16).padStart(2, '0')}`
/** The first of each run: the one whose status is folded, and copied to the others. */
const PATTERN = 0xffff_ffff

/**
 * Load balancers as they are once workers have reported, with one backend for each address of their
 * owner and a folded status: put in by SQL, since there may be a hundred thousand. `from`: the number
 * of the first one.
 */
export async function seedLoadBalancers(
  { pool, store }: { pool: pg.Pool; store: Store },
  options: { region: string; tenants: Owner[]; each: number; from?: number },
): Promise<{ id: string; uuid: string }[]> {
  const { tenants, each, from = 1 } = options
  const region = await store.prisma.region.findUniqueOrThrow({ where: { code: options.region } })
  const clusters = await store.prisma.cluster.findMany({ where: { regionId: region.id } })
  const made: { id: string; uuid: string }[] = []
  for (const [index, { project, vpc, addresses }] of tenants.entries()) {
    const put = (first: number, count: number) =>
      pool.query(STATEMENT, [
        [project, vpc, region.id],
        addresses,
        clusters.map(({ id }) => id),
        first,
        count,
      ])
    await put(PATTERN, 1)
    await refoldAlone(store, idOf(PATTERN))
    const first = from + index * each
    await put(first, each)
    await pool.query(COPY_STATUS, [first, each])
    await pool.query('DELETE FROM load_balancer WHERE id = $1', [idOf(PATTERN)])
    await pool.query('DELETE FROM ipv6_block WHERE load_balancer_id = $1', [idOf(PATTERN)])
    const uuid = idOf(first)
    made.push({ uuid, id: globalId('LoadBalancer', uuid) })
  }
  await pool.query('ANALYZE')
  return made
}

const STATEMENT = `
WITH numbers AS (
  SELECT number, lpad(to_hex(number), 8, '0') || '${REST}' AS id FROM generate_series($4::bigint, $4::bigint + $5::bigint - 1) AS number),
made AS (
  INSERT INTO load_balancer (id, project, region_id, vpc_id, name, protocol, port, health_check, phase, created_at, updated_at)
  SELECT (id || '00')::uuid, ($1::text[])[1], ($1::text[])[3]::uuid, ($1::text[])[2]::uuid, 'seeded-' || number, 'TCP', 1 + number % 65000,
    '{"enabled": true, "probe": {"kind": "tcp", "port": null}, "intervalSeconds": 5, "timeoutSeconds": 5, "rise": 2, "fall": 3, "minimumHealthyPercent": 0}',
    'PENDING', now(), now() FROM numbers),
backends AS (
  INSERT INTO backend (id, load_balancer_id, address, health_since, created_at)
  SELECT (id || lpad(to_hex(place), 2, '0'))::uuid, (id || '00')::uuid, address, now(), now()
  FROM numbers CROSS JOIN unnest($2::inet[]) WITH ORDINALITY AS each (address, place)),
blocks AS (
  INSERT INTO ipv6_block (prefix, vip, pool_id, load_balancer_id)
  SELECT set_masklen(vip, 128), vip, gen_random_uuid(), (id || '00')::uuid
  FROM numbers CROSS JOIN LATERAL (SELECT '2001:db8:5eed::'::inet + number AS vip) AS block)
INSERT INTO placement (load_balancer_id, cluster_id, placed, asked, applied)
SELECT (id || '00')::uuid, cluster, true, 1, 1 FROM numbers CROSS JOIN unnest($3::uuid[]) AS cluster`

const COPY_STATUS = `
UPDATE load_balancer lb SET status = replace(pattern.status::text, 'ffffffff-', left(lb.id::text, 9))::json,
  phase = pattern.phase
FROM load_balancer pattern
WHERE pattern.id = '${idOf(PATTERN)}'
  AND lb.id >= (lpad(to_hex($1::bigint), 8, '0') || '${REST}00')::uuid
  AND lb.id < (lpad(to_hex($1::bigint + $2::bigint), 8, '0') || '${REST}00')::uuid`
