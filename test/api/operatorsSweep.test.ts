import { expect, test } from 'vitest'
import { ruleName } from '../../src/rules/names.ts'
import {
  GENERATION_ANNOTATION,
  INSTANCE_LABEL,
  LOAD_BALANCER_LABEL,
  NETWORK_RULES,
  type NetworkRule,
} from '../../src/rules/objects.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import {
  accepted,
  createLoadBalancer,
  DELETE,
  type LoadBalancer,
  SHOW,
  UPDATE,
} from './operations.ts'
import { type Cluster, clusterCalled, tell } from './operators.ts'

const installation = useInstallation({
  pools: [
    { name: 'east6', region: 'us-east-1', prefix: '2001:db8:1::/125', coolDownSeconds: 0 },
    { name: 'west6', region: 'us-west-1', prefix: '2001:db8:2::/64' },
  ],
})
const NAME = 'us-east-1-a'
const OTHER = 'us-west-1-a'
const until = async <T>(read: () => Promise<T>, satisfied: (now: T) => boolean): Promise<T> => {
  for (;;) {
    const now = await read()
    if (satisfied(now)) return now
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const clusterUntil = (satisfied: (now: Cluster) => boolean) =>
  until(() => clusterCalled(installation.operators, NAME), satisfied)
const allowSweep = async (name: string) => {
  const { id } = await clusterCalled(installation.operators, name)
  await tell(installation.operators, 'updateCluster', { id, allowSweep: true })
}
const created = async (name: string, cluster: string) => {
  const backends = [{ address: installation.addresses(cluster)[0] }]
  const region = cluster.slice(0, -2)
  const made = await createLoadBalancer(installation, { name, region, backends })
  await installation.api.settled(made.id)
  return made
}
const rulesNow = (cluster: string) => rulesIn(installation.fleet.get(cluster))
/** A rule like one of ours, of another load balancer (or installation). */
const copied = async (rule: NetworkRule, of: { owner: string; vip: string; instance?: string }) => {
  const { cluster } = installation.fleet.get(NAME)
  const { owner, vip, instance } = of
  const labels = {
    ...rule.metadata.labels,
    [LOAD_BALANCER_LABEL]: owner,
    ...(instance === undefined ? {} : { [INSTANCE_LABEL]: instance }),
  }
  return cluster.apply<NetworkRule>(NETWORK_RULES, {
    apiVersion: rule.apiVersion,
    kind: rule.kind,
    metadata: {
      name: ruleName(owner, vip),
      namespace: rule.metadata.namespace ?? '',
      labels,
      annotations: { [GENERATION_ANNOTATION]: '1' },
    },
    spec: { ...rule.spec, vipAddresses: [vip], port: 8_080 },
  } as NetworkRule)
}

test('a rule goes where its owner was deleted, waits with its address held where nobody knows it, and is left alone where it is of others', async () => {
  const { api, fleet, store } = installation
  const buried = await created('buried', NAME)
  const [pattern] = await rulesNow(NAME)
  if (pattern === undefined) throw new Error('no rule')
  await accepted(api, DELETE, { id: buried.id })
  await until(
    () => api.get(SHOW, { id: buried.id }),
    (now) => now === null,
  )
  await installation.workers.close()
  const [unknown, stranger] = [
    '00000000-0000-7000-8000-000000000001',
    '00000000-0000-7000-8000-000000000002',
  ] as const
  const owner = decodeId(buried.id)?.uuid ?? ''
  await copied(pattern, { owner, vip: '2001:db8:1::7' })
  await copied(pattern, { owner: unknown, vip: '2001:db8:1::6' })
  await copied(pattern, { owner: stranger, vip: '2001:db8:9::9', instance: 'another' })
  const names = async () => (await rulesNow(NAME)).map(({ spec }) => spec.vipAddresses[0]).sort()
  expect(await names()).toHaveLength(3)
  await installation.restartWorkers()
  await rulesUntil(fleet.get(NAME), (rules) => rules.length === 2)
  expect(await names()).toEqual(['2001:db8:1::6', '2001:db8:9::9'])
  const waiting = await clusterUntil(({ sweep }) => sweep.status === 'FALSE')
  expect(waiting).toMatchObject({ rules: 1, sweep: { reason: 'UnknownOwners' } })
  expect(waiting.sweep.message).toContain('1 such load balancers')

  // All that the pool has but the one that is held.
  const vips: string[] = []
  for (let index = 0; index < 7; index += 1) {
    const made = await createLoadBalancer(installation, { name: `other-${index}` })
    vips.push(made.addresses[0]?.address ?? '')
  }
  expect(vips).not.toContain('2001:db8:1::6')

  await allowSweep(NAME)
  await rulesUntil(fleet.get(NAME), (rules) => rules.length === 1)
  expect(await names()).toEqual(['2001:db8:9::9'])
  await clusterUntil(({ rules, sweep }) => rules === 0 && sweep.status === 'TRUE')
  expect(await store.prisma.cluster.count({ where: { sweepAllowedAt: { not: null } } })).toBe(0)
})

test('a rule of a newer generation than the store knows is left as it is until an operator decides', async () => {
  const { api, fleet, store } = installation
  const { cluster } = fleet.get(OTHER)
  const made = await created('restored', OTHER)
  const uuid = decodeId(made.id)?.uuid ?? ''
  const [rule] = (await rulesNow(OTHER)).filter(
    (one) => one.metadata.labels?.[LOAD_BALANCER_LABEL] === uuid,
  )
  if (rule === undefined) throw new Error('no rule')
  // As if the store had been restored from before its last changes.
  await cluster.merge(
    NETWORK_RULES,
    { name: rule.metadata.name, namespace: rule.metadata.namespace ?? '' },
    {
      metadata: { annotations: { [GENERATION_ANNOTATION]: '7' } },
    },
  )
  await accepted(api, UPDATE, { id: made.id, protocol: { tcp: { port: 81 } } })
  const query =
    'query ($id: ID!) { loadBalancer(id: $id) { placements { conditions { type reason } } } }'
  const behind = () =>
    installation.operators.get<{
      placements: { conditions: { type: string; reason: string }[] }[]
    }>(query, { id: made.id })
  await until(behind, ({ placements }) =>
    placements.some(({ conditions }) => conditions.some(({ reason }) => reason === 'StoreBehind')),
  )
  expect(
    (await rulesNow(OTHER)).find(({ metadata }) => metadata.name === rule.metadata.name)?.spec.port,
  ).toBe(80)
  await allowSweep(OTHER)
  await rulesUntil(fleet.get(OTHER), (rules) => rules.some(({ spec }) => spec.port === 81))
  await until(
    () => api.get<LoadBalancer>(SHOW, { id: made.id }),
    ({ generation, status }) => generation === 7 && status.observedGeneration === 7,
  )
  const events = await store.prisma.event.count({ where: { reason: 'LoadBalancerRestored' } })
  expect(events).toBe(1)
})
