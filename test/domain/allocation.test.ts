import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { createAddressPool } from '../../src/domain/operators/pools.ts'
import { createRegion } from '../../src/domain/operators/regions.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let store: Store
let number = 0

beforeAll(() => {
  store = openStore({ connectionString: database.url, maxConnections: 20 })
})
afterAll(() => store.close())

/** A region with one pool, of a prefix that no other test has. */
async function region(pool: Partial<Parameters<typeof createAddressPool>[1]> & { prefix: string }) {
  number += 1
  const code = `region-${number}`
  const made = await createRegion(store, { code, displayName: code, cityCode: 'IAD' })
  const answer = await createAddressPool(store, { name: `pool-${number}`, region: code, ...pool })
  if (!('pool' in answer) || !('region' in made)) throw new Error(JSON.stringify([made, answer]))
  return { id: made.region.id, pool: answer.pool.id }
}

const take = async (where: string, loadBalancer: string = randomUUID()): Promise<string | null> => {
  const { rows } = await store.pool.query<{ vip: string | null }>(
    'SELECT host(allocate_ipv6_block($1, $2)) AS vip',
    [where, loadBalancer],
  )
  return rows[0]?.vip ?? null
}
const reserve = async (where: string, project = 'demo'): Promise<string | null> => {
  const { rows } = await store.pool.query<{ address: string | null }>(
    'SELECT host(allocate_ipv4_address($1, $2, $3)) AS address',
    [where, randomUUID(), project],
  )
  return rows[0]?.address ?? null
}
const free = (vip: string, seconds: number) =>
  store.pool.query(
    `UPDATE ipv6_block SET load_balancer_id = NULL, reusable_at = clock_timestamp() + make_interval(secs => $2) WHERE vip = $1`,
    [vip, seconds],
  )

describe('an IPv6 pool', () => {
  it('hands out every address exactly once to callers at the same time, then none', async () => {
    const { id } = await region({ prefix: '2001:db8:a::/121' })
    const taken = await Promise.all(Array.from({ length: 128 }, () => take(id)))
    expect(new Set(taken).size).toBe(128)
    expect(taken).not.toContain(null)
    expect(await take(id)).toBeNull()
  })

  it('never hands out what is excluded', async () => {
    const { id } = await region({
      prefix: '2001:db8:b::/122',
      skipFirstAndLast: true,
      excluded: ['2001:db8:b::10/124'],
    })
    const taken = await Promise.all(Array.from({ length: 46 }, () => take(id)))
    expect(taken).not.toContain(null)
    const last = (vip: string | null) => Number.parseInt(vip?.split('::')[1] || '0', 16)
    expect(
      taken.map(last).filter((one) => one === 0 || one === 63 || (one >= 16 && one < 32)),
    ).toEqual([])
    expect(await take(id)).toBeNull()
  })

  it('of subnets hands out the address behind the subnet-router anycast address', async () => {
    const { id } = await region({ prefix: '2001:db8:c::/62', allocationPrefixLength: 64 })
    const taken = await Promise.all(Array.from({ length: 4 }, () => take(id)))
    expect(taken.sort()).toEqual([
      '2001:db8:c:1::1',
      '2001:db8:c:2::1',
      '2001:db8:c:3::1',
      '2001:db8:c::1',
    ])
  })

  it('of subnets longer than 64 bits is cut right', async () => {
    const { id } = await region({ prefix: '2001:db8:d::/94', allocationPrefixLength: 96 })
    const taken = await Promise.all(Array.from({ length: 4 }, () => take(id)))
    expect(taken.sort()).toEqual([
      '2001:db8:d::1',
      '2001:db8:d::1:0:1',
      '2001:db8:d::2:0:1',
      '2001:db8:d::3:0:1',
    ])
  })

  it('gives a returned block to somebody else only when it has cooled down and no cluster may carry it', async () => {
    const { id } = await region({ prefix: '2001:db8:e::/128' })
    const vip = (await take(id)) ?? ''
    await free(vip, 60)
    expect(await take(id)).toBeNull()
    await free(vip, 0)
    await store.pool.query(
      `INSERT INTO hold (cluster_id, vip, load_balancer_id, rule_name) VALUES ($1, $2, $3, 'lb-x')`,
      [randomUUID(), vip, randomUUID()],
    )
    expect(await take(id)).toBeNull()
    await store.pool.query('UPDATE hold SET gone_at = now() WHERE vip = $1', [vip])
    expect(await take(id)).toBe(vip)
  })

  it('waits for a caller that holds the last one and rolls back', async () => {
    const { id } = await region({ prefix: '2001:db8:f::/128' })
    const vip = (await take(id)) ?? ''
    await free(vip, 0)
    const other = await store.pool.connect()
    await other.query('BEGIN')
    await other.query('SELECT allocate_ipv6_block($1, $2)', [id, randomUUID()])
    const waiting = take(id)
    await other.query('ROLLBACK')
    other.release()
    expect(await waiting).toBe(vip)
  })

  it('that overlaps another one is refused', async () => {
    await region({ prefix: '2001:db8:aa::/64' })
    const input = { name: 'overlap', region: 'region-1', prefix: '2001:db8:aa::/48' }
    expect(await createAddressPool(store, input)).toMatchObject({ code: 'POOL_OVERLAP' })
  })
})

describe('an IPv4 pool', () => {
  it('hands out every address exactly once, and the longest free one first', async () => {
    const { id } = await region({ prefix: '192.0.2.0/28', skipFirstAndLast: true })
    const taken = await Promise.all(Array.from({ length: 14 }, () => reserve(id)))
    expect(new Set(taken).size).toBe(14)
    expect(taken).not.toContain(null)
    expect(await reserve(id)).toBeNull()
  })

  it('gives a project its own cooling address back at once, and nobody else', async () => {
    const { id } = await region({ prefix: '192.0.2.16/32' })
    const address = await reserve(id, 'demo')
    await store.pool.query(
      `UPDATE ipv4_address SET reservation_id = NULL, reusable_at = clock_timestamp() + interval '1 hour' WHERE address = $1`,
      [address],
    )
    expect(await reserve(id, 'other')).toBeNull()
    expect(await reserve(id, 'demo')).toBe(address)
  })
})
