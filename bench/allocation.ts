import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { createAddressPool } from '../src/domain/operators/pools.ts'
import { createRegion } from '../src/domain/operators/regions.ts'
import { type Bed, CLIENTS } from './bed.ts'
import { type Benchmark, type Finding, inTurns, type Rate, rate } from './benchmark.ts'

const FULL = [0, 0.5, 0.999] as const
/** Length of the pools' IPv4 prefixes; of IPv6 they have as many addresses. */
const LENGTH = { full: 16, small: 24 }

/**
 * Taking an address from a pool that is empty, half full and all but full, by the side of one UPDATE of
 * one row; each undone again, so that the pool stays as full as it is.
 */
export const allocation: Benchmark = async (ground, scale) => {
  const bed = await ground.bed()
  await bed.pool.query(
    'CREATE TABLE IF NOT EXISTS floor_row (id INTEGER PRIMARY KEY, next BIGINT NOT NULL)',
  )
  await bed.pool.query(
    'INSERT INTO floor_row SELECT id, 0 FROM generate_series(0, $1) AS id ON CONFLICT DO NOTHING',
    [CLIENTS - 1],
  )
  const undone = (name: string, text: string, valuesOf: (client: number) => unknown[]) => () =>
    rate(CLIENTS / 4, scale.seconds, async (client) => {
      const connection = await bed.pool.connect()
      try {
        await connection.query('BEGIN')
        const { rows } = await connection.query({ name, text, values: valuesOf(client) })
        if (rows[0]?.taken == null) throw new Error(`${name} took nothing`)
        await connection.query('ROLLBACK')
      } finally {
        connection.release()
      }
    })
  const measured: Record<string, () => Promise<Rate>> = {
    floor: undone(
      'floor-update',
      'UPDATE floor_row SET next = next + 1 WHERE id = $1 RETURNING next AS taken',
      (client) => [client],
    ),
  }
  const length = scale.part < 1 ? LENGTH.small : LENGTH.full
  for (const [index, part] of FULL.entries()) {
    const { id } = await regionWith(bed, index, { part, length })
    measured[`IPv6 ${part * 100} %`] = undone(
      'take-6',
      'SELECT allocate_ipv6_block($1, $2) AS taken',
      () => [id, randomUUID()],
    )
    measured[`IPv4 ${part * 100} %`] = undone(
      'take-4',
      `SELECT allocate_ipv4_address($1, $2, 'bench-0') AS taken`,
      () => [id, randomUUID()],
    )
  }
  const found = await inTurns(scale, measured)
  const perSecond = (name: string) => found(name).perSecond
  return ['IPv6', 'IPv4'].flatMap((family): Finding[] => {
    const rates = FULL.map((part) => perSecond(`${family} ${part * 100} %`))
    return [
      {
        name: `allocation, ${family}`,
        value: Math.min(...rates) / perSecond('floor'),
        atLeast: 0.7,
      },
      {
        name: `allocation, ${family}: slowest by fastest`,
        value: Math.min(...rates) / Math.max(...rates),
        atLeast: 0.8,
      },
    ]
  })
}

async function regionWith(
  { store, pool }: Bed,
  index: number,
  { part, length }: { part: number; length: number },
): Promise<{ id: string }> {
  const code = `full-${index}`
  const known = await store.prisma.region.findUnique({ where: { code } })
  if (known !== null) return known
  await createRegion(store, { code, displayName: code, cityCode: 'IAD' })
  const { id } = await store.prisma.region.findUniqueOrThrow({ where: { code } })
  await createAddressPool(store, {
    name: `${code}-6`,
    region: code,
    prefix: `2001:db8:f:${index}::/${96 + length}`,
  })
  await createAddressPool(store, {
    name: `${code}-4`,
    region: code,
    prefix: `10.${index}.0.0/${length}`,
  })
  await fill(pool, id, Math.floor((2 ** (32 - length) * part) / 16) * 16)
  return { id }
}

async function fill(pool: pg.Pool, region: string, taken: number): Promise<void> {
  await pool.query(
    `UPDATE address_pool_counter SET next = next + $2
     WHERE pool_id IN (SELECT id FROM address_pool WHERE region_id = $1 AND family = 'IPV6')`,
    [region, taken],
  )
  await pool.query(
    `INSERT INTO ipv6_block (prefix, vip, pool_id, load_balancer_id)
     SELECT set_masklen(vip, 128), vip, pool.id, gen_random_uuid() FROM address_pool pool
     CROSS JOIN generate_series(0, $2::bigint - 1) AS number
     CROSS JOIN LATERAL (SELECT host(pool.prefix)::inet + number AS vip) AS block
     WHERE pool.region_id = $1 AND pool.family = 'IPV6'`,
    [region, taken],
  )
  await pool.query(
    `UPDATE ipv4_address SET reservation_id = gen_random_uuid() WHERE address IN (
       SELECT address FROM ipv4_address JOIN address_pool pool ON pool.id = pool_id
       WHERE pool.region_id = $1 ORDER BY address LIMIT $2)`,
    [region, taken],
  )
  await pool.query('VACUUM ANALYZE')
}
