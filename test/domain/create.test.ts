import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { recordVpcs } from '../../src/domain/inventory.ts'
import { addBackends } from '../../src/domain/loadBalancers/backends.ts'
import { createLoadBalancer } from '../../src/domain/loadBalancers/create.ts'
import { readLoadBalancers } from '../../src/domain/loadBalancers/read.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { createAddressPool } from '../../src/domain/operators/pools.ts'
import { setProjectRelease, setQuota } from '../../src/domain/operators/projects.ts'
import { createRegion } from '../../src/domain/operators/regions.ts'
import type { Label } from '../../src/domain/records.ts'
import { Refusal } from '../../src/domain/refusals.ts'
import { createIPv4Reservation } from '../../src/domain/reservations/create.ts'
import { useDatabase } from '../support/database.ts'
import { PATIENCE } from '../support/patience.ts'
import { recordMachines } from './machines.ts'

const database = useDatabase()
const project = 'demo'
const scope = { project, actor: { kind: 'USER', name: 'tester' } } as const
const region = 'us-east-1'
/** Which hosts of fd00::/64 each cluster knows. */
const CLUSTERS = { one: [1, 2, 3], two: [2, 4], three: [3, 4, 5] }
/** Two of them are known nowhere. */
const ADDRESSES = ['fd00::1', 'fd00::2', 'fd00::3', 'fd00::4', 'fd00::5', 'fd00::a', 'fd00::1:2']
let store: Store
let vpc: string
let number = 0

beforeAll(async () => {
  store = openStore({ connectionString: database.url })
  await createRegion(store, { code: region, displayName: 'US East', cityCode: 'IAD' })
  await createAddressPool(store, { name: 'east6', region, prefix: '2001:db8:1::/64' })
  await createAddressPool(store, { name: 'east4', region, prefix: '198.51.100.0/24' })
  await setProjectRelease(store, { project, released: true })
  for (const resource of ['loadbalancers', 'rulespervpc', 'ipv4reservations']) {
    const named = `networking.datumapis.com/${resource}`
    await setQuota(store, { project, region, resource: named, limit: null })
  }
  await recordVpcs(store, [{ ref: 'vpc1', name: 'main', project }])
  vpc = (await store.prisma.vpc.findFirstOrThrow()).id
  for (const [name, hosts] of Object.entries(CLUSTERS)) {
    await registerCluster(store, { name, region, context: name })
    const { id } = await store.prisma.cluster.findFirstOrThrow({ where: { name } })
    await recordMachines(store, { id, name }, project, hosts)
  }
})
afterAll(() => store.close())

const inputs = fc.record({
  displayName: fc.option(fc.constantFrom('Web', 'Ünïcode "quoted"')),
  labels: fc.constantFrom<Label[]>(
    [],
    [
      { key: 'b', value: '' },
      { key: 'a', value: 'x' },
    ],
  ),
  protocol: fc.constantFrom({ tcp: { port: 443 } }, { udp: { port: 53 } }),
  sessionAffinity: fc.constantFrom('NONE' as const, 'CLIENT_IP' as const),
  deletionProtection: fc.boolean(),
  healthCheck: fc.constantFrom(
    null,
    { enabled: false },
    { enabled: true, probe: { http: { port: 8080, path: '/up' } }, minimumHealthyPercent: 50 },
  ),
  backends: fc.uniqueArray(
    fc.record({
      address: fc.constantFrom(...ADDRESSES),
      adminState: fc.constantFrom('ENABLED' as const, 'STANDBY' as const, 'DISABLED' as const),
    }),
    { selector: ({ address }) => address },
  ),
  reserved: fc.nat({ max: 2 }),
})
const clusters = fc.record({
  name: fc.constantFrom(...Object.keys(CLUSTERS)),
  mode: fc.constantFrom('ACTIVE', 'CORDONED', 'DRAINED'),
  forgotten: fc.boolean(),
  hasProber: fc.boolean(),
  unreachable: fc.boolean(),
})

it('whatever is created, the answer is what a read then gives', async () => {
  await fc.assert(
    fc.asyncProperty(inputs, fc.array(clusters), async ({ reserved, ...input }, states) => {
      await standAt(states)
      const reservations: string[] = []
      for (let index = 0; index < reserved; index += 1) reservations.push(await reserve())
      number += 1
      const name = `lb-${number}`
      const made = await createLoadBalancer(store, scope, {
        ...input,
        name,
        vpc,
        region,
        ipv4Reservations: reservations,
      })
      if (!('loadBalancer' in made)) throw new Error(JSON.stringify(made))
      const { loadBalancer } = made
      const read = await readLoadBalancers(store, { project, ids: [loadBalancer.id] })
      // Regions are remembered for a second; here their clusters come and go much faster.
      expect({ ...loadBalancer, region }).toEqual({ ...read.get(loadBalancer.id), region })
    }),
    { numRuns: 60 },
  )
})

it('an address lives where a cluster knows it that is not forgotten', async () => {
  const elsewhere = 'us-west-1'
  await createRegion(store, { code: elsewhere, displayName: 'US West', cityCode: 'SEA' })
  for (const [name, place, host] of [
    ['four', region, 6],
    ['west', elsewhere, 6],
  ] as const) {
    await registerCluster(store, { name, region: place, context: name })
    const { id } = await store.prisma.cluster.findFirstOrThrow({ where: { name } })
    await recordMachines(store, { id, name }, project, [host])
  }
  const backends = [{ address: 'fd00::6' }]
  const made = async (input: object) => {
    number += 1
    const asked = { vpc, region, protocol: { tcp: { port: 80 } }, name: `lb-${number}`, ...input }
    return createLoadBalancer(store, scope, asked)
  }
  const empty = await made({})
  if (!('loadBalancer' in empty)) throw new Error(JSON.stringify(empty))
  const answers = async (forgotten: string[]) => {
    await standAt(forgotten.map((name) => ({ name, mode: 'ACTIVE', forgotten: true })))
    const added = { loadBalancer: empty.loadBalancer.id, backends, validateOnly: true }
    return [await made({ backends }), await addBackends(store, scope, added)].map((answer) =>
      answer instanceof Refusal ? answer.code : 'accepted',
    )
  }
  expect(await answers([])).toEqual(['accepted', 'accepted'])
  expect(await answers(['four'])).toEqual(['BACKENDS_OUTSIDE_REGION', 'BACKENDS_OUTSIDE_REGION'])
  expect(await answers(['four', 'west'])).toEqual(['accepted', 'accepted'])
})

it('a cluster cordoned while a create is under way leaves nothing that waits for it', async () => {
  await standAt([])
  const reservation = await reserve()
  const other = await store.pool.connect()
  try {
    // The create has read its clusters, and waits.
    await other.query('BEGIN')
    await other.query('SELECT FROM ipv4_reservation WHERE id = $1 FOR UPDATE', [reservation])
    number += 1
    const creating = createLoadBalancer(store, scope, {
      name: `lb-${number}`,
      vpc,
      region,
      protocol: { tcp: { port: 443 } },
      backends: [{ address: 'fd00::1' }],
      ipv4Reservations: [reservation],
    })
    await expect.poll(() => waiting(), { timeout: PATIENCE, interval: 10 }).toBe(1)
    await store.pool.query(
      `UPDATE cluster SET mode = 'CORDONED', cordoned_since = now() WHERE name = 'one'`,
    )
    await other.query('COMMIT')
    const made = await creating
    if (!('loadBalancer' in made)) throw new Error(JSON.stringify(made))
    const { id, status } = made.loadBalancer
    expect(status.observedGeneration).toBe(1)
    const stored = await store.prisma.loadBalancer.findUniqueOrThrow({ where: { id } })
    expect(stored.observedGeneration).toBe(1)
    const read = (await readLoadBalancers(store, { project, ids: [id] })).get(id)
    expect({ ...made.loadBalancer, region }).toEqual({ ...read, region })
  } finally {
    other.release()
  }
})

async function waiting(): Promise<number> {
  const { rows } = await store.pool.query<{ count: number }>(
    `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`,
  )
  return rows[0]?.count ?? 0
}

async function standAt(states: { name: string; mode: string; [what: string]: unknown }[]) {
  await store.pool.query(
    `UPDATE cluster SET mode = 'ACTIVE', cordoned_since = NULL, forgotten_at = NULL, has_prober = false, unreachable_since = NULL`,
  )
  for (const { name, mode, forgotten, hasProber, unreachable } of states) {
    await store.pool.query(
      `UPDATE cluster SET mode = $2, cordoned_since = CASE WHEN $2 <> 'ACTIVE' THEN now() END,
         forgotten_at = CASE WHEN $3 THEN now() END, has_prober = $4,
         unreachable_since = CASE WHEN $5 THEN now() END
       WHERE name = $1`,
      [name, mode, forgotten, hasProber ?? false, unreachable],
    )
  }
}

async function reserve(): Promise<string> {
  number += 1
  const made = await createIPv4Reservation(store, scope, { name: `ip-${number}`, region })
  if (!('reservation' in made)) throw new Error(JSON.stringify(made))
  return made.reservation.id
}
