import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { createLoadBalancer } from '../../src/domain/loadBalancers/create.ts'
import { setQuota } from '../../src/domain/operators/projects.ts'
import { openHolds } from '../../src/domain/placements/holds.ts'
import { readWanted } from '../../src/domain/placements/wanted.ts'
import { fill } from '../server/service.ts'
import { useDatabase } from '../support/database.ts'

const MANY = 300
const database = useDatabase()
let store: Store
beforeAll(async () => {
  // One connection, which keeps its plans.
  store = openStore({ connectionString: database.url, maxConnections: 1 })
  await fill(store)
  for (const resource of ['loadbalancers', 'rulespervpc']) {
    await setQuota(store, {
      project: 'alpha',
      resource: `networking.datumapis.com/${resource}`,
      region: 'us-east-1',
      limit: null,
    })
  }
})
afterAll(() => store.close())

/** Nobody counts the rows while there are few: plans are made anew after that, and rightly read few rows whole. */
async function leaveUncounted(): Promise<void> {
  for (const table of ['load_balancer', 'placement', 'hold', 'ipv6_block', 'backend'])
    await store.pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = false)`)
}

async function create(number: number): Promise<string> {
  const vpc = await store.prisma.vpc.findFirstOrThrow({ where: { project: 'alpha' } })
  const made = await createLoadBalancer(
    store,
    { project: 'alpha', actor: { kind: 'USER', name: 'alice' } },
    {
      name: `lb-${number}`,
      vpc: vpc.id,
      region: 'us-east-1',
      protocol: { tcp: { port: number } },
      backends: [{ address: 'fd00:1::1' }],
    },
  )
  if (!('loadBalancer' in made)) throw new Error(JSON.stringify(made))
  return made.loadBalancer.id
}

/** How many rows and index entries PostgreSQL has read so far of what grows with the number of load balancers. */
async function rowsRead(): Promise<number> {
  await store.pool.query('SELECT pg_stat_force_next_flush()')
  const { rows } = await store.pool.query<{ read: number }>(
    `SELECT sum(pg_stat_get_tuples_returned(oid))::bigint AS read FROM pg_class
     WHERE relname ~ '^(load_balancer|placement|hold|ipv6_block|backend)'`,
  )
  return rows[0]?.read ?? 0
}

test('a plan that was made while there was one load balancer reads one of many, not all', async () => {
  await leaveUncounted()
  const { id: cluster } = await store.prisma.cluster.findFirstOrThrow()
  const { rows } = await store.pool.query<{ epoch: number }>(
    `UPDATE cluster SET owner = gen_random_uuid(), lease_epoch = lease_epoch + 1, lease_until = now() + interval '1 hour'
     RETURNING lease_epoch AS epoch`,
  )
  const owner = { cluster, epoch: rows[0]?.epoch ?? 0 }
  const work = async (id: string) => {
    const taken = (await readWanted(store, cluster, [id])).get(id)
    const vips = taken?.wanted.vips.map(({ address }) => address) ?? []
    expect(vips).toHaveLength(1)
    const wishes = vips.map((vip) => ({ loadBalancer: id, vip, rule: `rule-${id}` }))
    expect((await openHolds(store, owner, wishes)).size).toBe(1)
  }
  await work(await create(1))
  for (let number = 2; number <= MANY; number += 1) await work(await create(number))
  const last = await create(MANY + 1)
  const before = await rowsRead()
  await work(last)
  expect((await rowsRead()) - before).toBeLessThan(MANY / 2)
})
