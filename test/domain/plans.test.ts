import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { recordCapabilities } from '../../src/domain/clusters.ts'
import { recordVpcs } from '../../src/domain/inventory.ts'
import {
  addBackends,
  removeBackends,
  setBackends,
} from '../../src/domain/loadBalancers/backends.ts'
import { createLoadBalancer } from '../../src/domain/loadBalancers/create.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { createAddressPool } from '../../src/domain/operators/pools.ts'
import { setProjectRelease } from '../../src/domain/operators/projects.ts'
import { createRegion } from '../../src/domain/operators/regions.ts'
import type { Plan } from '../../src/domain/plans/plan.ts'
import { Refusal } from '../../src/domain/refusals.ts'
import { useDatabase } from '../support/database.ts'
import { recordMachines } from './machines.ts'

const database = useDatabase()
const project = 'demo'
const scope = { project, actor: { kind: 'USER', name: 'tester' } } as const
const region = 'us-east-1'
let store: Store

/** Which hosts of fd00::/64 each cluster knows: the same in the first two. */
const CLUSTERS = {
  one: { hosts: [1, 2, 3], dialect: 'backends' },
  two: { hosts: [1, 2, 3], dialect: 'backends' },
  three: { hosts: [1, 4], dialect: 'selector' },
  unseen: { hosts: [5], dialect: undefined },
  closed: { hosts: [1, 6], dialect: 'backends' },
} as const

beforeAll(async () => {
  store = openStore({ connectionString: database.url })
  await createRegion(store, { code: region, displayName: 'US East', cityCode: 'IAD' })
  await createAddressPool(store, { name: 'east6', region, prefix: '2001:db8:1::/64' })
  await setProjectRelease(store, { project, released: true })
  await recordVpcs(store, [{ ref: 'vpc1', name: 'main', project }])
  for (const [name, { hosts, dialect }] of Object.entries(CLUSTERS)) {
    await registerCluster(store, { name, region, context: name })
    const { id } = await store.prisma.cluster.findFirstOrThrow({ where: { name } })
    await recordCapabilities(store, { cluster: id, epoch: 0 }, { dialect, sessionAffinity: false })
    await recordMachines(store, { id, name }, project, hosts)
  }
})
afterAll(() => store.close())

const backends = (...hosts: number[]) => hosts.map((host) => ({ address: `fd00::${host}` }))

let port = 1_000
async function create(...hosts: number[]): Promise<string> {
  port += 1
  const answer = await createLoadBalancer(store, scope, {
    name: `lb-${port}`,
    vpc: (await store.prisma.vpc.findFirstOrThrow()).id,
    region,
    protocol: { tcp: { port } },
    backends: backends(...hosts),
  })
  if (!('loadBalancer' in answer)) throw new Error(JSON.stringify(answer))
  return answer.loadBalancer.id
}
function planOf(answer: Awaited<ReturnType<typeof removeBackends>>): Plan {
  if (answer instanceof Refusal || !('plan' in answer)) throw new Error(JSON.stringify(answer))
  return answer.plan
}

describe('a plan', () => {
  it('counts clusters that have the same table together, and none whose table stays', async () => {
    const loadBalancer = await create(1, 2, 3, 4)
    const { flows } = planOf(
      await removeBackends(store, scope, {
        loadBalancer,
        addresses: ['fd00::2'],
        validateOnly: true,
      }),
    )
    expect(flows).toHaveLength(1)
    expect(flows).toMatchObject([{ clusters: 2, tableSize: 1021, taken: 0 }])
    const all = planOf(
      await removeBackends(store, scope, {
        loadBalancer,
        addresses: ['fd00::1'],
        validateOnly: true,
      }),
    )
    expect(all.flows.map(({ clusters }) => clusters)).toEqual([2, 1, 1])
  })

  it('tells of the labels by which the selector dialect finds backends', async () => {
    const loadBalancer = await create(1)
    const { rules } = planOf(
      await addBackends(store, scope, {
        loadBalancer,
        backends: backends(4),
        validateOnly: true,
      }),
    )
    const label = ['metadata', 'labels', `lb.networking.datumapis.com/${loadBalancer}`]
    expect(rules.filter(({ cluster }) => cluster === 'three')).toMatchObject([
      { kind: 'NetworkRule', action: 'UPDATE' },
      {
        kind: 'VPCAttachment',
        name: 'demo/machine-4',
        action: 'UPDATE',
        diff: [{ path: label, before: null, after: 'serving' }],
      },
    ])
  })

  it('expects nothing of a cluster whose data plane is not known', async () => {
    const loadBalancer = await create(1)
    const answer = planOf(
      await setBackends(store, scope, {
        loadBalancer,
        backends: backends(5),
        validateOnly: true,
      }),
    )
    expect(answer.flows.map(({ lost }) => lost)).toEqual([1021])
    expect(answer.rules.filter(({ cluster }) => cluster === 'unseen')).toEqual([])
  })

  it('leaves out, and warns of, what a cordoned cluster does not take', async () => {
    const loadBalancer = await create(1)
    await store.prisma.cluster.update({
      where: { name: 'closed' },
      data: { mode: 'CORDONED', cordonedSince: new Date() },
    })
    const input = { loadBalancer, backends: backends(6), validateOnly: true }
    const { flows, warnings, rules } = planOf(await addBackends(store, scope, input))
    expect(flows).toEqual([])
    expect(warnings).toMatchObject([
      { code: 'CLUSTER_CORDONED', path: ['backends', '0', 'address'] },
    ])
    const listed = rules.flatMap(({ diff }) => diff.map(({ path }) => path.join('.')))
    expect(listed.filter((path) => path.startsWith('spec'))).toEqual([])
  })
})
