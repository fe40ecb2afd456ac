import { describe, expect, it } from 'vitest'
import {
  BGP_ADVERTISEMENTS,
  DATA_PLANE_NAMESPACE,
  NETWORK_RULES,
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
} from '../../src/rules/objects.ts'
import { useInstallation } from '../support/installation.ts'
import { objectsUntil, rulesIn, rulesUntil } from '../support/objects.ts'
import {
  ADD_BACKENDS,
  accepted,
  createLoadBalancer,
  REMOVE_BACKENDS,
  UPDATE,
} from './operations.ts'

const installation = useInstallation()
const east = (letter: string) => installation.fleet.get(`us-east-1-${letter}`)
const west = (letter: string) => installation.fleet.get(`us-west-1-${letter}`)
const isOf = (address: string) => (rule: NetworkRule) => rule.spec.vipAddresses.includes(address)
/** Each test has a port of its own: endpoints are shared, and a node serves one VIP a port. */
let port = 8_000

async function create(clusters: string[]) {
  port += 1
  const backends = clusters.flatMap((cluster) => installation.addresses(cluster))
  const made = await createLoadBalancer(installation, {
    name: `on-${port}`,
    protocol: { tcp: { port } },
    backends: backends.map((address) => ({ address })),
  })
  await installation.api.settled(made.id)
  return { ...made, port, vip: made.addresses[0]?.address ?? '' }
}

describe('rules', () => {
  it('are written into the clusters that hold a backend, and into no other', async () => {
    const { vip, id, port } = await create(['us-east-1-a'])
    const [rule] = (await rulesIn(east('a'))).filter(isOf(vip))
    expect(rule?.spec).toMatchObject({
      vpcRef: '5dEmo1',
      vipAddresses: [vip],
      protocol: 'tcp',
      port,
      backends: installation.addresses('us-east-1-a').map((address) => ({ address, port })),
    })
    expect(rule?.metadata.name).toMatch(/^lb-[0-9a-f]{32}-[0-9a-f]{12}$/)
    const { instance } = await installation.store.prisma.store.findFirstOrThrow()
    const uuid = Buffer.from(id, 'base64').toString().split(':')[1]
    expect(rule?.metadata.labels).toEqual({
      'app.kubernetes.io/managed-by': 'network-load-balancers',
      'lb.networking.datumapis.com/instance': instance,
      'lb.networking.datumapis.com/load-balancer': uuid,
    })
    for (const other of [east('b'), west('a'), west('b')]) {
      expect((await rulesIn(other)).filter(isOf(vip))).toEqual([])
    }
  })

  it('follow backends into a second cluster, and leave it with the last of them', async () => {
    const { id, vip } = await create(['us-east-1-a'])
    const [address] = installation.addresses('us-east-1-b')
    await accepted(installation.api, ADD_BACKENDS, { loadBalancer: id, backends: [{ address }] })
    await rulesUntil(east('b'), (rules) => rules.some(isOf(vip)))
    await installation.api.settled(id)
    await accepted(installation.api, REMOVE_BACKENDS, { loadBalancer: id, addresses: [address] })
    await rulesUntil(east('b'), (rules) => !rules.some(isOf(vip)))
    await installation.api.settled(id)
    expect((await rulesIn(east('a'))).filter(isOf(vip))).toHaveLength(1)
  })

  it('that were deleted by hand are written again', async () => {
    const { vip } = await create(['us-east-1-a', 'us-east-1-b'])
    const [rule] = (await rulesIn(east('a'))).filter(isOf(vip))
    const { name = '', uid } = rule?.metadata ?? {}
    await east('a').cluster.remove(NETWORK_RULES, { name, namespace: DATA_PLANE_NAMESPACE })
    const again = await rulesUntil(east('a'), (rules) =>
      rules.some((one) => isOf(vip)(one) && one.metadata.uid !== uid),
    )
    expect(again.filter(isOf(vip)).map(({ metadata }) => metadata.name)).toEqual([name])
  })

  it('that were edited by hand are put right', async () => {
    const { vip, port } = await create(['us-east-1-a'])
    const [rule] = (await rulesIn(east('a'))).filter(isOf(vip))
    const { name = '', resourceVersion } = rule?.metadata ?? {}
    const where = { name, namespace: DATA_PLANE_NAMESPACE }
    await east('a').cluster.merge(NETWORK_RULES, where, {
      spec: { port: 1, backends: [{ address: 'fd00::bad', port: 1 }] },
    })
    const put = await rulesUntil(east('a'), (rules) =>
      rules.some(
        (one) =>
          isOf(vip)(one) &&
          one.spec.port === port &&
          one.metadata.resourceVersion !== resourceVersion,
      ),
    )
    expect(put.find(isOf(vip))?.spec).toEqual(rule?.spec)
  })

  it('keep their object when port and backends change', async () => {
    const { id, vip } = await create(['us-east-1-a'])
    const [before] = (await rulesIn(east('a'))).filter(isOf(vip))
    port += 1
    await accepted(installation.api, UPDATE, { id, protocol: { udp: { port } } })
    await installation.api.settled(id)
    const [after] = (await rulesIn(east('a'))).filter(isOf(vip))
    expect(after?.metadata.uid).toBe(before?.metadata.uid)
    expect(after?.spec).toMatchObject({ protocol: 'udp', port })
  })
})

describe('what is around a rule', () => {
  it('is one binding for each VIP and backend, and an advertisement on each gateway', async () => {
    const { vip, port } = await create(['us-east-1-a'])
    const bindings = await objectsUntil(east('a'), SERVICE_VIP_BINDINGS, () => true)
    const mine = bindings.filter((one) => 'spec' in one && Object(one.spec).vipAddress === vip)
    expect(mine.map((one) => Object(Object(one).spec))).toEqual(
      expect.arrayContaining(
        installation
          .addresses('us-east-1-a')
          .map((backendAddress) =>
            expect.objectContaining({ backendAddress, backendPort: port, vipAddress: vip, port }),
          ),
      ),
    )
    const advertised = await objectsUntil(east('a'), BGP_ADVERTISEMENTS, () => true)
    const prefixes = advertised.flatMap((one) => Object(Object(one).spec).prefixes)
    expect(prefixes.filter((prefix) => prefix === `${vip}/128`)).toHaveLength(2)
  })
})
