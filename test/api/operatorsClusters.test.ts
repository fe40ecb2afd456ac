import { describe, expect, test } from 'vitest'
import { BGP_ADVERTISEMENTS, NETWORK_RULES, type Resource } from '../../src/rules/objects.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesUntil } from '../support/objects.ts'
import {
  ADD_BACKENDS,
  accepted,
  createLoadBalancer,
  DELETE,
  type LoadBalancer,
  REMOVE_BACKENDS,
  SHOW,
} from './operations.ts'
import { type Cluster, clusterCalled, type Told, tell } from './operators.ts'

const installation = useInstallation()

const update = async (name: string, change: Record<string, unknown>): Promise<Told> => {
  const { id } = await clusterCalled(installation.operators, name)
  return tell(installation.operators, 'updateCluster', { id, ...change })
}
/** Waits (bounded by the test's own time) until a cluster is as told. */
const clusterUntil = async (name: string, satisfied: (cluster: Cluster) => boolean) => {
  for (;;) {
    const cluster = await clusterCalled(installation.operators, name)
    if (satisfied(cluster)) return cluster
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const show = (id: string) => installation.api.get<LoadBalancer>(SHOW, { id })
const phaseUntil = async (id: string, phase: string) => {
  while ((await show(id)).status.phase !== phase) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const inClusters = async (id: string): Promise<string[]> => {
  const query = 'query ($id: ID!) { loadBalancer(id: $id) { placements { cluster { name } } } }'
  const { placements } = await installation.operators.get<{
    placements: { cluster: { name: string } }[]
  }>(query, { id })
  return placements.map(({ cluster }) => cluster.name)
}
const placedUntil = async (id: string, clusters: string[]) => {
  while (String(await inClusters(id)) !== String(clusters)) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const settledWith = async (name: string, addresses: string[], region = 'us-east-1') => {
  const backends = addresses.map((address) => ({ address }))
  const made = await createLoadBalancer(installation, { name, region, backends })
  await installation.api.settled(made.id)
  return made
}
const at = (cluster: string, index: number): string => {
  const address = installation.addresses(cluster)[index]
  if (address === undefined) throw new Error(`${cluster} has no endpoint ${index}`)
  return address
}
/**
 * Whether the other cluster announced a VIP at the moment when its rule began to go in this one, from
 * what was committed in both. Undefined: it has not gone.
 */
const whenRuleGoes = (from: string, other: string, vip: string): (() => boolean | undefined) => {
  const idOf = ({ plural, group }: Resource) => `${plural}.${group}`
  const carries = (object: unknown) => JSON.stringify(object).includes(vip)
  const announces = ({ object }: { object: unknown }) =>
    carries(object) && isAdvertised(object as { status?: { conditions?: Condition[] } })
  let then: boolean | undefined
  const { fleet } = installation
  fleet.get(from).server.storage.observe(idOf(NETWORK_RULES), ({ type, object }) => {
    const going = type === 'DELETED' || JSON.stringify(object).includes('deletionTimestamp')
    if (!going || !carries(object)) return
    then ??= fleet.get(other).server.storage.history(idOf(BGP_ADVERTISEMENTS)).some(announces)
  })
  return () => then
}
type Condition = { type: string; status: string }
const isAdvertised = ({ status }: { status?: { conditions?: Condition[] } }): boolean =>
  status?.conditions?.some((one) => one.type === 'Advertised' && one.status === 'True') ?? false
const gone = async (...made: LoadBalancer[]) => {
  for (const { id } of made) await accepted(installation.api, DELETE, { id })
}

describe('clusters', () => {
  test('are registered, and refused with a name, region or context that will not do', async () => {
    const { operators } = installation
    const input = { name: 'new-one', region: 'us-east-1', context: 'us-east-1-a' }
    const told = await tell(operators, 'registerCluster', { ...input, context: 'nowhere' })
    expect(told).toMatchObject({
      __typename: 'RegisterClusterPayload',
      cluster: { name: 'new-one', mode: 'ACTIVE', state: 'ACTIVE', rules: 0, behind: 0 },
    })
    expect(await tell(operators, 'registerCluster', input)).toMatchObject({
      __typename: 'NameTaken',
      takenName: 'new-one',
    })
    expect(await tell(operators, 'registerCluster', { ...input, region: 'mars' })).toMatchObject({
      __typename: 'NotFound',
      path: ['region'],
    })
    const wrong = await tell(operators, 'registerCluster', { ...input, name: 'No', context: '' })
    expect(wrong.issues?.map(({ path }) => path)).toEqual([['name'], ['context']])
    const id = told.cluster?.id
    const { cluster } = await tell(operators, 'updateCluster', { id, mode: 'DRAINED' })
    expect(cluster).toMatchObject({ mode: 'DRAINED', state: 'DRAINED' })
    expect(await tell(operators, 'removeCluster', { id })).toMatchObject({
      __typename: 'RemoveClusterPayload',
      cluster: { name: 'new-one', state: 'DRAINED' },
    })
    for (const name of ['updateCluster', 'removeCluster', 'forgetCluster']) {
      expect(await tell(operators, name, { id })).toMatchObject({
        __typename: 'NotFound',
        missingId: id,
      })
    }
  })

  test('tell what was seen of them and who serves them', async () => {
    const cluster = await clusterUntil('us-east-1-a', ({ sweep }) => sweep.status === 'TRUE')
    expect(cluster).toMatchObject({
      state: 'ACTIVE',
      servesIPv4: false,
      owner: expect.stringMatching(/^worker-/),
      reachable: { status: 'TRUE', reason: 'ClusterAnswers' },
      sweep: { status: 'TRUE', reason: 'Swept' },
      behind: 0,
      lagSeconds: 0,
    })
    expect(cluster.capabilities).toEqual([
      { name: 'dialect', value: 'backends' },
      { name: 'sessionAffinity', value: 'false' },
      { name: 'gateways', value: '2' },
    ])
    const page = await installation.operators.get(
      '{ clusters(region: "us-west-1") { totalCount nodes { name region { code } } } }',
    )
    expect(page).toMatchObject({ totalCount: 2, nodes: [{ name: 'us-west-1-a' }, {}] })
  })

  test('keep what is not named, and refuse a context that is none', async () => {
    const before = await clusterCalled(installation.operators, 'us-west-1-b')
    expect(await update('us-west-1-b', { hasProber: true })).toMatchObject({
      cluster: { ...before, hasProber: true, owner: expect.anything() },
    })
    expect(await update('us-west-1-b', { context: '' })).toMatchObject({
      __typename: 'ValidationFailed',
      issues: [{ path: ['context'] }],
    })
    await update('us-west-1-b', { hasProber: false })
  })

  test('that are in use are neither removed nor forgotten', async () => {
    const { operators } = installation
    const { id } = await clusterCalled(operators, 'us-west-1-b')
    expect(await tell(operators, 'removeCluster', { id })).toMatchObject({
      __typename: 'Refused',
      code: 'CLUSTER_NOT_DRAINED',
    })
    expect(await tell(operators, 'forgetCluster', { id })).toMatchObject({
      __typename: 'Refused',
      code: 'CLUSTER_REACHABLE',
    })
  })
})

describe('a cordoned cluster', () => {
  test('keeps what it has, takes nothing new and says so, and takes it once it is active again', async () => {
    const cluster = 'us-east-1-b'
    const both = [at('us-east-1-a', 0), at(cluster, 0)]
    const old = await settledWith('cordon-old', both)
    expect(await update(cluster, { mode: 'CORDONED' })).toMatchObject({
      cluster: { mode: 'CORDONED', state: 'CORDONED' },
    })
    const fresh = await createLoadBalancer(installation, {
      name: 'cordon-new',
      // Of one port only one of them could have the node.
      protocol: { tcp: { port: 81 } },
      backends: [{ address: at(cluster, 1) }],
    })
    expect(fresh.backends.nodes[0]?.resolved).toMatchObject({
      status: 'FALSE',
      reason: 'ClusterCordoned',
    })
    expect(await inClusters(fresh.id)).toEqual([])
    await accepted(installation.api, ADD_BACKENDS, {
      loadBalancer: old.id,
      backends: [{ address: at(cluster, 1) }],
    })
    await installation.api.settled(old.id)
    const kept = await show(old.id)
    expect(kept.backends.nodes.map(({ resolved }) => resolved.reason)).toEqual([
      'Resolved',
      'Resolved',
      'ClusterCordoned',
    ])
    expect(kept.status).toMatchObject({ phase: 'DEGRADED', ready: { status: 'TRUE' } })
    expect(await inClusters(old.id)).toEqual(['us-east-1-a', cluster])
    await update(cluster, { mode: 'ACTIVE' })
    await phaseUntil(old.id, 'ACTIVE')
    await placedUntil(fresh.id, [cluster])
    await gone(old, fresh)
  })
})

describe('a drained cluster', () => {
  test('is left by what another cluster serves; what has no other stays and is named until it moves', async () => {
    const { operators, fleet, api } = installation
    const cluster = 'us-west-1-b'
    const spread = await settledWith(
      'drain-spread',
      [at('us-west-1-a', 0), at(cluster, 0)],
      'us-west-1',
    )
    const alone = await settledWith('drain-alone', [at(cluster, 1)], 'us-west-1')
    await update(cluster, { mode: 'DRAINED' })
    await rulesUntil(fleet.get(cluster), (rules) => rules.length === 1)
    await placedUntil(spread.id, ['us-west-1-a'])
    const draining = await clusterUntil(cluster, ({ rules }) => rules === 1)
    expect(draining).toMatchObject({
      mode: 'DRAINED',
      state: 'DRAINING',
      blockedBy: { totalCount: 1, nodes: [{ id: alone.id }] },
    })
    expect((await show(alone.id)).status.ready.status).toBe('TRUE')
    expect(await tell(operators, 'removeCluster', { id: draining.id })).toMatchObject({
      __typename: 'ClusterInUse',
      rules: 1,
    })
    const vip = alone.addresses[0]?.address ?? ''
    const announced = whenRuleGoes(cluster, 'us-west-1-a', vip)
    await accepted(api, ADD_BACKENDS, {
      loadBalancer: alone.id,
      backends: [{ address: at('us-west-1-a', 1) }],
    })
    await rulesUntil(fleet.get(cluster), (rules) => rules.length === 0)
    expect(announced()).toBe(true)
    expect((await show(alone.id)).status.ready.status).toBe('TRUE')
    expect(await clusterUntil(cluster, ({ state }) => state === 'DRAINED')).toMatchObject({
      rules: 0,
      blockedBy: { totalCount: 0 },
    })
    await placedUntil(alone.id, ['us-west-1-a'])
    await update(cluster, { mode: 'ACTIVE' })
    for (const { id } of [spread, alone]) await placedUntil(id, ['us-west-1-a', cluster])
    await gone(spread, alone)
  })

  test('is not left while the other cluster serves nothing', async () => {
    const { fleet, api } = installation
    const cluster = 'us-east-1-b'
    const made = await settledWith('drain-late', [at(cluster, 0)])
    await fleet.get('us-east-1-a').server.close()
    await clusterUntil('us-east-1-a', ({ reachable }) => reachable.status === 'FALSE')
    const change = { loadBalancer: made.id, backends: [{ address: at('us-east-1-a', 0) }] }
    await accepted(api, ADD_BACKENDS, change)
    await update(cluster, { mode: 'DRAINED' })
    // Two rounds of what looks after draining: it had every occasion to go wrong.
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(await clusterCalled(installation.operators, cluster)).toMatchObject({
      state: 'DRAINING',
      rules: 1,
      blockedBy: { totalCount: 0 },
    })
    const addresses = [at('us-east-1-a', 0)]
    await accepted(api, REMOVE_BACKENDS, { loadBalancer: made.id, addresses })
    expect(await clusterCalled(installation.operators, cluster)).toMatchObject({
      rules: 1,
      blockedBy: { totalCount: 1, nodes: [{ id: made.id }] },
    })
  })
})
