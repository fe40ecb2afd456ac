import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { readNotProbed, readProbed, readProbedMarks } from '../../src/domain/health/probed.ts'
import { fill } from '../server/service.ts'
import { useDatabase } from '../support/database.ts'

const MANY = 60
const TABLES = ['load_balancer', 'backend', 'endpoint']
const database = useDatabase()
let store: Store
let cluster: string
beforeAll(async () => {
  // One connection, which keeps its plans: those that are made before there are many rows.
  store = openStore({ connectionString: database.url, maxConnections: 1 })
  await fill(store)
  for (const table of TABLES)
    await store.pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
  cluster = (await store.prisma.cluster.findFirstOrThrow()).id
})
afterAll(() => store.close())

/** Load balancers of one backend each; where each one's VPC is, and its backend. */
async function place(vpc: string, address: string): Promise<string> {
  const { rows } = await store.pool.query<{ id: string }>(
    `
WITH one AS (
  SELECT gen_random_uuid() AS id, number, ${vpc} AS vpc, ${address} AS address FROM generate_series(1, $1) AS number),
endpoints AS (
  INSERT INTO endpoint (cluster_id, attachment_uid, address, vpc_id, attachment_namespace, attachment_name,
    attachment_ref, node, egress_kind)
  SELECT $2, number, address, vpc, 'n', 'a', 'r', 'node', 'veth' FROM one),
backends AS (
  INSERT INTO backend (id, load_balancer_id, address, health_since, created_at)
  SELECT gen_random_uuid(), id, address, now(), now() FROM one)
INSERT INTO load_balancer (id, project, region_id, vpc_id, name, protocol, port, health_check, phase, created_at, updated_at)
SELECT one.id, 'alpha', region_id, vpc, 'lb-' || number, 'TCP', number, '{"enabled": true}', 'PENDING', now(), now()
FROM one JOIN cluster ON cluster.id = $2 RETURNING id`,
    [MANY, cluster],
  )
  return rows[0]?.id ?? ''
}

/** How many rows and index entries PostgreSQL reads meanwhile. */
async function rowsRead(work: () => Promise<unknown>): Promise<number> {
  const count = async () => {
    await store.pool.query('SELECT pg_stat_force_next_flush()')
    const { rows } = await store.pool.query<{ read: number }>(
      `SELECT sum(pg_stat_get_tuples_returned(oid))::integer AS read FROM pg_class
       WHERE relname ~ '^(${TABLES.join('|')})'`,
    )
    return rows[0]?.read ?? 0
  }
  const before = await count()
  await work()
  return (await count()) - before
}

test.each([
  ['in one VPC', `md5('one')::uuid`, `'fd00:1::'::inet + number`],
  ['in VPCs that all use the same address', 'md5(number::text)::uuid', `'10.0.0.2'::inet`],
])('what is probed of many %s is read in steps that are as many', async (_, vpc, address) => {
  for (const hasProber of [true, false]) {
    await store.pool.query('UPDATE cluster SET has_prober = $1', [hasProber])
    await store.pool.query(`TRUNCATE ${TABLES.join()} CASCADE`)
    let named: string[] = [randomUUID()]
    const all = async () =>
      hasProber
        ? (await readProbedMarks(store, cluster)).size
        : (await readNotProbed(store, cluster)).length
    const one = async () => (await readProbed(store, cluster, named)).map(({ id }) => id)
    // So often PostgreSQL plans each anew.
    for (let time = 0; time < 6; time += 1) await Promise.all([all(), one()])
    named = [await place(vpc, address)]
    expect(await all()).toBe(MANY)
    expect(await rowsRead(all)).toBeLessThan(MANY * 12)
    expect(await one()).toEqual(hasProber ? named : [])
    expect(await rowsRead(one)).toBeLessThan(12)
  }
})
