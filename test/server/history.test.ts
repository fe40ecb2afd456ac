import { beforeAll, expect, test } from 'vitest'
import { backendReport } from '../domain/folding.ts'
import { ADDRESSES, probed, speakForClusters, uuidOf } from './reporting.ts'
import { create, field, useService } from './service.ts'

const service = useService()
let clusters: Awaited<ReturnType<typeof speakForClusters>>
beforeAll(async () => {
  clusters = await speakForClusters(service)
})

type Event = {
  cursor: string
  reason: string
  actor: { kind: string; name: string }
  objectId: string
  object: { id: string } | null
  generation: number
  changes: { path: string[]; before: string | null; after: string | null }[]
}

const EVENT =
  'cursor reason actor { kind name } objectId object { id } generation changes { path before after }'

/** The oldest first. */
async function history(filter: Record<string, unknown>, project = 'alpha'): Promise<Event[]> {
  const { body } = await service.query(
    `query ($filter: EventFilter) { events(first: 100, filter: $filter) { nodes { ${EVENT} } } }`,
    { filter },
    project === 'alpha' ? {} : { project, as: 'bob' },
  )
  return field<{ nodes: Event[] }>(body).nodes.toReversed()
}

/** Nobody's transaction is open any more that was begun before the newest event, also in other databases. */
async function cursorsExact(objectId: string): Promise<void> {
  const newest = async () => (await history({ objectId })).at(-1)?.cursor
  await expect.poll(async () => history({ objectId, since: await newest() })).toEqual([])
}

async function mutate(name: string, fields: string): Promise<void> {
  const { body } = await service.query(`mutation { ${name}(input: { ${fields} }) { __typename } }`)
  expect(field(body)).toEqual({ __typename: expect.stringMatching(/Payload$/) })
}

const reasons = (events: Event[]) => events.map(({ reason }) => reason)

test('the history of a load balancer tells who changed what, and what came of it, also when it is gone', async () => {
  const { id } = await create(service, 'told', {
    backends: ADDRESSES.map((address) => ({ address })),
    protocol: { tcp: { port: 7_100 } },
  })
  for (const name of ['east-1', 'east-2']) await clusters.settle(id, name)
  await mutate('updateLoadBalancer', `id: "${id}", displayName: "Told"`)
  const [first = ''] = ADDRESSES
  const ill = { address: first, state: 'UNHEALTHY' } as const
  await probed(service.store, clusters.ownerOf('east-1'), uuidOf(id), ill)
  for (const name of ['east-1', 'east-2']) await clusters.settle(id, name)
  await clusters.lose('east-2')
  await clusters.findAgain('east-2')
  await cursorsExact(id)
  const living = await history({ objectId: id })
  const [created] = living
  expect(created).toMatchObject({
    reason: 'LoadBalancerCreated',
    actor: { kind: 'USER', name: 'alice@example.com' },
    object: { id },
  })
  const changed = living.find(({ reason }) => reason === 'LoadBalancerUpdated')
  expect(changed).toMatchObject({
    actor: { kind: 'USER', name: 'alice@example.com' },
    changes: [{ path: ['displayName'], before: null, after: 'Told' }],
  })
  const turned = living.find(({ reason }) => reason === 'BackendUnhealthy')
  expect(turned).toMatchObject({ actor: { kind: 'SYSTEM' }, objectId: id })
  expect(turned?.changes[0]).toEqual({
    ...{ path: ['backends', first, 'health', 'state'], before: 'NOT_CHECKED', after: 'UNHEALTHY' },
  })
  expect(living.find(({ reason }) => reason === 'LoadBalancerSettled')?.generation).toBe(1)
  expect(living.flatMap(({ changes }) => changes)).toContainEqual(
    expect.objectContaining({ path: ['Provisioned'], after: 'UNKNOWN ClusterUnreachable' }),
  )

  await mutate('deleteLoadBalancer', `id: "${id}"`)
  for (const name of ['east-1', 'east-2'])
    await clusters.tell(id, name, await clusters.inEffect(id, name, { vips: {}, backends: {} }))
  const whole = await history({ objectId: id })
  expect(reasons(whole)).toEqual([
    ...reasons(living),
    'LoadBalancerDeletionRequested',
    ...reasons(whole.slice(living.length + 1, -1)),
    'LoadBalancerDeleted',
  ])
  expect(whole.every(({ objectId, object }) => objectId === id && object === null)).toBe(true)
  // A poller that has seen what was until then asks for what came since.
  const since = await history({ objectId: id, since: living.at(-1)?.cursor })
  expect(reasons(since)).toEqual(reasons(whole.slice(living.length)))
  expect(reasons(await history({ objectId: id, reason: ['LoadBalancerDeleted'] }))).toEqual([
    'LoadBalancerDeleted',
  ])
  expect(await history({ objectId: id }, 'beta')).toEqual([])
})

test('a change of status that is of one backend alone names it', async () => {
  const { id } = await create(service, 'partly', {
    backends: ADDRESSES.map((address) => ({ address })),
    protocol: { tcp: { port: 7_200 } },
  })
  for (const name of ['east-1', 'east-2']) await clusters.settle(id, name)
  const where = { loadBalancerId: uuidOf(id), address: ADDRESSES[0] ?? '' }
  const backend = await service.store.prisma.backend.findFirstOrThrow({ where })
  for (const name of ['east-1', 'east-2']) {
    const told = await clusters.inEffect(id, name)
    const other = { [backend.id]: backendReport({ serving: false }) }
    await clusters.tell(id, name, { ...told, backends: { ...told.backends, ...other } })
  }
  expect((await history({ objectId: id })).at(-1)?.changes).toEqual([
    { path: ['backends', ADDRESSES[0], 'serving'], before: 'true', after: 'false' },
  ])
})

test('who asks again and again for what came since misses nothing that was begun before and committed later', async () => {
  const { id } = await create(service, 'polled')
  await cursorsExact(id)
  const late = await service.store.pool.connect()
  await late.query('BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0')
  await late.query(
    `SELECT append_event('alpha', 'LoadBalancer', $1, 9, 1, 'LoadBalancerStatusChanged', 'late', 'SYSTEM', 's', '[]', NULL)`,
    [uuidOf(id)],
  )
  await mutate('updateLoadBalancer', `id: "${id}", displayName: "Polled"`)
  const seen = await history({ objectId: id })
  expect(reasons(seen)).toEqual(['LoadBalancerCreated', 'LoadBalancerUpdated'])
  await late.query('COMMIT')
  late.release()
  const since = await history({ objectId: id, since: seen.at(-1)?.cursor })
  expect(reasons(since)).toContain('LoadBalancerStatusChanged')
  expect(reasons(since)).not.toContain('LoadBalancerCreated')
})

test("a project's whole history is its own", async () => {
  await create(service, 'ours')
  const all = await history({})
  expect(reasons(all)).toContain('LoadBalancerCreated')
  expect(reasons(await history({}, 'beta'))).toEqual([])
})
