import { expect, test } from 'vitest'
import { ruleName } from '../../src/rules/names.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesUntil } from '../support/objects.ts'
import {
  accepted,
  BIND,
  createLoadBalancer,
  DELETE,
  type LoadBalancer,
  RESERVE,
  type Reservation,
  SHOW,
  SHOW_RESERVATION,
} from './operations.ts'
import { type Cluster, clusterCalled, tell } from './operators.ts'

const installation = useInstallation({
  pools: [
    { name: 'west6', region: 'us-west-1', prefix: '2001:db8:2::/126', coolDownSeconds: 0 },
    { name: 'west4', region: 'us-west-1', prefix: '203.0.113.0/31', coolDownSeconds: 0 },
  ],
})
const LOST = 'us-west-1-b'

const until = async <T>(read: () => Promise<T>, satisfied: (now: T) => boolean): Promise<T> => {
  for (;;) {
    const now = await read()
    if (satisfied(now)) return now
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
const cluster = () => clusterCalled(installation.operators, LOST)
const clusterUntil = (satisfied: (now: Cluster) => boolean) => until(cluster, satisfied)
const show = (id: string) => () => installation.api.get<LoadBalancer | null>(SHOW, { id })
const placements = async (id: string) => {
  const query = 'query ($id: ID!) { loadBalancer(id: $id) { placements { cluster { name } } } }'
  const { placements: list } = await installation.operators.get<{
    placements: { cluster: { name: string } }[]
  }>(query, { id })
  return list.map((one) => one.cluster.name)
}
const createdIn = async (name: string, clusters: string[], index = 0) => {
  const backends = clusters.map((one) => ({ address: installation.addresses(one)[index] }))
  const made = await createLoadBalancer(installation, { name, region: 'us-west-1', backends })
  await installation.api.settled(made.id)
  return made
}
const ipv6Of = ({ addresses }: LoadBalancer) => addresses[0]?.address ?? ''
const lose = async () => {
  const { id } = await cluster()
  await tell(installation.operators, 'updateCluster', { id, context: 'unplugged' })
  await clusterUntil(({ reachable }) => reachable.status === 'FALSE')
  return id
}
const forget = (input: object) => tell(installation.operators, 'forgetCluster', { ...input })
const registerAgain = () =>
  tell(installation.operators, 'registerCluster', {
    name: LOST,
    region: 'us-west-1',
    context: LOST,
    servesIPv4: true,
  })

test('a forgotten cluster leaves status, what may be left there is listed and held, and is swept when it returns', async () => {
  const { api, fleet, operators } = installation
  const spread = await createdIn('spread', ['us-west-1-a', LOST])
  const alone = await createdIn('alone', [LOST], 1)
  const { reservation } = await accepted<{ reservation: Reservation }>(api, RESERVE, {
    name: 'held',
    region: 'us-west-1',
  })
  await accepted(api, BIND, { reservation: reservation.id, loadBalancer: spread.id })
  await api.settled(spread.id)
  const id = await lose()
  await until(show(spread.id), (now) => now?.status.provisioned.reason === 'ClusterUnreachable')

  const told = await forget({ id })
  expect(told).toMatchObject({
    __typename: 'ForgetClusterPayload',
    cluster: { state: 'FORGOTTEN', rules: 3 },
  })
  const leftover = (of: LoadBalancer, address: string) => ({
    cluster: LOST,
    kind: 'NetworkRule',
    name: ruleName(decodeId(of.id)?.uuid ?? '', address),
    address,
  })
  const expected = [
    leftover(spread, ipv6Of(spread)),
    leftover(spread, reservation.address),
    leftover(alone, ipv6Of(alone)),
  ]
  expect(told.leftovers).toHaveLength(3)
  expect(told.leftovers).toEqual(expect.arrayContaining(expected))
  expect(await placements(spread.id)).toEqual(['us-west-1-a'])
  const left = await until(show(spread.id), (now) => now?.status.provisioned.status === 'TRUE')
  expect(left?.status.ready.status).toBe('TRUE')
  expect((await show(alone.id)())?.backends.nodes[0]?.resolved.reason).toBe('AddressUnknown')

  // Nobody is given what may still be carried there.
  await accepted(api, DELETE, { id: spread.id })
  await accepted(api, DELETE, { id: alone.id })
  await rulesUntil(fleet.get('us-west-1-a'), (rules) => rules.length === 0)
  expect((await show(alone.id)())?.status.phase).toBe('DELETING')
  const last = await until(
    () => installation.api.get<Reservation>(SHOW_RESERVATION, { id: reservation.id }),
    ({ bindings }) => bindings.every(({ state }) => state === 'UNBINDING'),
  )
  expect(last.state).toBe('UNBINDING')
  const taken: string[] = []
  for (const name of ['third', 'fourth', 'fifth']) {
    const input = {
      name,
      vpc: installation.vpc(),
      region: 'us-west-1',
      protocol: { tcp: { port: 81 } },
    }
    const answer = await api.get<{ __typename: string; loadBalancer?: LoadBalancer }>(
      'mutation ($input: CreateLoadBalancerInput!) { createLoadBalancer(input: $input) { __typename ... on CreateLoadBalancerPayload { loadBalancer { addresses { address } } } } }',
      { input },
    )
    taken.push(answer.loadBalancer === undefined ? answer.__typename : ipv6Of(answer.loadBalancer))
  }
  expect(taken[2]).toBe('PoolExhausted')
  expect(taken).not.toContain(ipv6Of(spread))
  expect(taken).not.toContain(ipv6Of(alone))

  expect(await tell(operators, 'updateCluster', { id, mode: 'ACTIVE' })).toMatchObject({
    __typename: 'Refused',
    code: 'CLUSTER_FORGOTTEN',
  })
  expect(await tell(operators, 'removeCluster', { id })).toMatchObject({
    __typename: 'ClusterInUse',
    rules: 3,
  })
  expect(await registerAgain()).toMatchObject({ cluster: { id, state: 'ACTIVE' } })
  await rulesUntil(fleet.get(LOST), (rules) => rules.length === 0)
  await until(show(spread.id), (now) => now === null)
  await until(show(alone.id), (now) => now === null)
  expect(await clusterUntil(({ rules }) => rules === 0)).toMatchObject({
    reachable: { status: 'TRUE' },
    sweep: { status: 'TRUE' },
  })
  const free = await installation.api.get<Reservation>(SHOW_RESERVATION, { id: reservation.id })
  expect(free).toMatchObject({ state: 'RESERVED', bindings: [] })
})

test('a cluster that is said to be destroyed frees its addresses at once', async () => {
  const { api } = installation
  const { store } = installation
  await store.prisma.loadBalancer.deleteMany({ where: { name: { in: ['third', 'fourth'] } } })
  await store.prisma.iPv6Block.updateMany({
    data: { loadBalancerId: null, reusableAt: new Date(0) },
  })
  const alone = await createdIn('doomed', [LOST])
  const id = await lose()
  expect(await forget({ id })).toMatchObject({ leftovers: [{ address: ipv6Of(alone) }] })
  await accepted(api, DELETE, { id: alone.id })
  expect((await show(alone.id)())?.status.phase).toBe('DELETING')
  expect(await forget({ id, destroyed: true })).toMatchObject({
    cluster: { state: 'FORGOTTEN', rules: 0 },
    leftovers: [],
  })
  expect(await show(alone.id)()).toBeNull()
  const given: string[] = []
  for (let heirs = 0; heirs < 4 && !given.includes(ipv6Of(alone)); heirs += 1) {
    const heir = { name: `heir-${heirs}`, region: 'us-west-1', backends: [] }
    given.push(ipv6Of(await createLoadBalancer(installation, heir)))
  }
  expect(given).toContain(ipv6Of(alone))
  expect(await tell(installation.operators, 'removeCluster', { id })).toMatchObject({
    __typename: 'RemoveClusterPayload',
  })
})
