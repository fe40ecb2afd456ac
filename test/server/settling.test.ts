import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { reportPlacements } from '../../src/domain/placements/report.ts'
import { ADDRESSES, speakForClusters, uuidOf } from './reporting.ts'
import { create, field, useService } from './service.ts'
import { standing } from './standing.ts'
import { subscribe, TRANSPORTS } from './streams.ts'

/** Nothing that waits for a time to pass is told while it stands still. */
const clock = standing()
const service = useService({ clock })
/** As another process has one: what happens here is known to the API by the database alone. */
let store: Store
let clusters: Awaited<ReturnType<typeof speakForClusters>>
beforeAll(async () => {
  const { connectionString = '' } = service.store.pool.options
  store = openStore({ connectionString })
  clusters = await speakForClusters({ store })
})
afterAll(() => store.close())

const SETTLED = `subscription ($id: ID!) { loadBalancerSettled(id: $id, timeoutSeconds: 60) {
  outcome generation unmet { type status reason } } }`
type Told = {
  outcome: string
  generation: number
  unmet: { type: string; status: string; reason: string }[]
}

let port = 7_000
async function served(): Promise<string> {
  port += 1
  const { id } = await create(service, `served-${port}`, {
    backends: ADDRESSES.map((address) => ({ address })),
    protocol: { tcp: { port } },
  })
  return id
}

const show = async (id: string) => {
  const { body } = await service.query(
    `query ($id: ID!) { loadBalancer(id: $id) { generation events { nodes { reason } }
       status { observedGeneration conditions { type status reason lastTransitionTime } } } }`,
    { id },
  )
  return field<{
    generation: number
    events: { nodes: { reason: string }[] }
    status: { observedGeneration: number; conditions: { type: string }[] }
  }>(body)
}
const storedOf = async (id: string) => {
  const { rows } = await service.store.pool.query(
    `SELECT version, (SELECT count(*) FROM event WHERE object_id = load_balancer.id) AS events,
       xmin::text AS written, ARRAY(SELECT xmin::text FROM placement
         WHERE load_balancer_id = load_balancer.id ORDER BY cluster_id) AS "placementsWritten"
     FROM load_balancer WHERE id = $1`,
    [uuidOf(id)],
  )
  return rows[0]
}

test.each(TRANSPORTS)(
  'over %s, settling ends with the report of the last cluster, at once',
  async (transport) => {
    const id = await served()
    const stream = subscribe<Told>(service, transport, SETTLED, { id })
    expect(await stream.next()).toMatchObject({
      outcome: 'WAITING',
      unmet: [{ type: 'Ready' }, { type: 'Provisioned', reason: 'Progressing' }],
    })
    await clusters.settle(id, 'east-1')
    expect((await show(id)).status.observedGeneration).toBe(0)
    await clusters.settle(id, 'east-2')
    let told = await stream.next()
    while (told?.outcome === 'WAITING') told = await stream.next()
    expect(told).toEqual({ outcome: 'SETTLED', generation: 1, unmet: [] })
    expect(await stream.next()).toBeUndefined()
  },
)

test.each(TRANSPORTS)(
  'over %s, with one of two clusters down it waits, and tells what is unmet, also when time is up',
  async (transport) => {
    const id = await served()
    await clusters.lose('east-2')
    const stream = subscribe<Told>(service, transport, SETTLED, { id })
    await stream.next()
    await clusters.settle(id, 'east-1')
    const unmet = [
      { type: 'Ready', status: 'FALSE' },
      { type: 'Provisioned', status: 'UNKNOWN', reason: 'ClusterUnreachable' },
    ]
    let told = await stream.next()
    while (told?.unmet[1]?.reason !== 'ClusterUnreachable') told = await stream.next()
    expect(told).toMatchObject({ outcome: 'WAITING', unmet })
    const last = stream.next()
    await expect.poll(() => clock.dues).toContain(60_000)
    clock.move(60_000)
    expect(await last).toMatchObject({ outcome: 'TIMED_OUT', unmet })
    expect(await stream.next()).toBeUndefined()

    // What was in effect there before the cluster was lost is told when it is back.
    await clusters.findAgain('east-2')
    const again = subscribe<Told>(service, transport, SETTLED, { id })
    await again.next()
    await clusters.settle(id, 'east-2')
    let end = await again.next()
    while (end?.outcome === 'WAITING') end = await again.next()
    expect(end).toMatchObject({ outcome: 'SETTLED', unmet: [] })
  },
)

test.each(TRANSPORTS)(
  'over %s, with no time to wait it tells how it stands now',
  async (transport) => {
    const id = await served()
    const now = SETTLED.replace('60', '0')
    const waiting = subscribe<Told>(service, transport, now, { id })
    const unmet = [{ type: 'Ready' }, { type: 'Provisioned', reason: 'Progressing' }]
    expect(await waiting.next()).toMatchObject({ outcome: 'WAITING', generation: 1, unmet })
    const last = waiting.next()
    await expect.poll(() => clock.dues).toContain(0)
    clock.move(0)
    expect(await last).toMatchObject({ outcome: 'TIMED_OUT', generation: 1, unmet })
    expect(await waiting.next()).toBeUndefined()

    for (const name of ['east-1', 'east-2']) await clusters.settle(id, name)
    const settled = subscribe<Told>(service, transport, now, { id })
    expect(await settled.next()).toEqual({ outcome: 'SETTLED', generation: 1, unmet: [] })
  },
)

test.each(TRANSPORTS)(
  'over %s, waiting for a generation that was never asked for is refused, and why is said',
  async (transport) => {
    const id = await served()
    const query = SETTLED.replace('id: $id,', 'id: $id, generation: 99,')
    const stream = subscribe<Told>(service, transport, query, { id })
    await expect(stream.next()).rejects.toThrow('99 was never asked for')
  },
)

test('ten equal reports write nothing and make no event', async () => {
  const id = await served()
  await clusters.settle(id, 'east-1')
  await clusters.settle(id, 'east-2')
  const before = await storedOf(id)
  for (let time = 0; time < 10; time += 1) await clusters.settle(id, 'east-1')
  expect(await storedOf(id)).toEqual(before)
})

test('a change with the same outcome moves observedGeneration, and no time', async () => {
  const id = await served()
  for (const name of ['east-1', 'east-2']) await clusters.settle(id, name)
  const before = (await show(id)).status
  port += 1
  await service.query(
    'mutation ($id: ID!, $port: Port!) { updateLoadBalancer(input: { id: $id, protocol: { tcp: { port: $port } } }) { __typename } }',
    { id, port },
  )
  for (const name of ['east-1', 'east-2']) await clusters.settle(id, name)
  const after = await show(id)
  expect([before.observedGeneration, after.status.observedGeneration]).toEqual([1, 2])
  const of = (type: string) => (each: { type: string }) => each.type === type
  for (const type of ['Ready', 'AddressesAllocated', 'BackendsResolved']) {
    expect(after.status.conditions.find(of(type))).toEqual(before.conditions.find(of(type)))
  }
  expect(after.events.nodes[0]?.reason).toBe('LoadBalancerSettled')
})

test('what two clusters report together is folded once: one event, and it has settled', async () => {
  const id = await served()
  const before = await storedOf(id)
  const told = await Promise.all(
    ['east-1', 'east-2'].map(async (name) => ({
      owner: clusters.ownerOf(name),
      loadBalancer: uuidOf(id),
      report: await clusters.inEffect(id, name),
      applied: true,
      gone: [],
    })),
  )
  expect(await reportPlacements(service.store, told)).toEqual(['taken', 'taken'])
  expect(await storedOf(id)).toMatchObject({
    version: before.version + 1,
    events: before.events + 1,
  })
  expect((await show(id)).status.observedGeneration).toBe(1)
})

test('a report never takes the place of a newer one, nor does one of an owner who was replaced', async () => {
  const id = await served()
  const old = await clusters.inEffect(id, 'east-1', { inEffect: false })
  await service.store.pool.query(
    'UPDATE placement SET asked = asked + 1 WHERE load_balancer_id = $1',
    [uuidOf(id)],
  )
  for (const name of ['east-1', 'east-2']) await clusters.settle(id, name)
  const before = await storedOf(id)
  await clusters.tell(id, 'east-1', old)
  expect(await storedOf(id)).toEqual(before)
  expect((await show(id)).status.observedGeneration).toBe(1)

  const { cluster, epoch } = clusters.ownerOf('east-1')
  const replaced = { cluster, epoch: epoch - 1 }
  const told = { report: { ...old, asked: 99 }, applied: true, gone: [] }
  const late = [{ owner: replaced, loadBalancer: uuidOf(id), ...told }]
  expect(await reportPlacements(store, late)).toEqual(['lease-lost'])
  expect(await storedOf(id)).toEqual(before)
})
