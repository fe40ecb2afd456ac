import { describe, expect, it } from 'vitest'
import { addBackends, removeBackends } from '../../src/domain/loadBalancers/backends.ts'
import { updateLoadBalancer } from '../../src/domain/loadBalancers/update.ts'
import type { RuleChange } from '../../src/domain/plans/plan.ts'
import { Refusal } from '../../src/domain/refusals.ts'
import {
  DATA_PLANE_NAMESPACE,
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { createLoadBalancer } from './operations.ts'
import { quiet } from './plan.ts'

const REGION = 'us-west-1'
const CLUSTERS = ['us-west-1-a', 'us-west-1-b']
const installation = useInstallation({ endpointsPerCluster: 4 })
const running = (cluster: string) => installation.fleet.get(cluster)

describe('the objects that a plan tells operators of', () => {
  const scope = { project: 'demo', actor: { kind: 'USER', name: 'tester' } } as const

  type Objects = Map<string, NetworkRule | ServiceVIPBinding>
  async function objects(): Promise<Objects> {
    const found: Objects = new Map()
    for (const cluster of CLUSTERS) {
      const bindings = await running(cluster).cluster.list<ServiceVIPBinding>(
        SERVICE_VIP_BINDINGS,
        { namespace: DATA_PLANE_NAMESPACE },
      )
      for (const object of [...(await rulesIn(running(cluster))), ...bindings]) {
        found.set(`${cluster} ${object.kind} ${object.metadata.name}`, object)
      }
    }
    return found
  }
  const nameOf = ({ cluster, kind, name }: RuleChange) => `${cluster} ${kind} ${name}`
  type Answer = Awaited<ReturnType<typeof updateLoadBalancer>>
  const rulesOf = (answer: Answer): RuleChange[] => {
    if (answer instanceof Refusal || !('plan' in answer)) throw new Error(JSON.stringify(answer))
    return answer.plan.rules
  }

  async function compare(make: (validateOnly: boolean) => Promise<Answer>): Promise<RuleChange[]> {
    await quiet(installation)
    const before = await objects()
    const rules = rulesOf(await make(true))
    await make(false)
    await quiet(installation)
    const after = await objects()
    const of = (action: string) => rules.filter((rule) => rule.action === action).map(nameOf)
    const made = [...after].filter(
      ([name, { metadata }]) => before.get(name)?.metadata.uid !== metadata.uid,
    )
    const gone = [...before].filter(
      ([name, { metadata }]) => after.get(name)?.metadata.uid !== metadata.uid,
    )
    const edited = [...after].filter(([name, { metadata }]) => {
      const was = before.get(name)?.metadata
      return was?.uid === metadata.uid && was?.generation !== metadata.generation
    })
    expect(of('CREATE').sort()).toEqual(made.map(([name]) => name).sort())
    expect(of('DELETE').sort()).toEqual(gone.map(([name]) => name).sort())
    expect(of('UPDATE')).toEqual(expect.arrayContaining(edited.map(([name]) => name)))
    return rules
  }

  it('are written, removed and edited so, field by field', async () => {
    const [first, second] = installation.addresses('us-west-1-a')
    const [third] = installation.addresses('us-west-1-b')
    const made = await createLoadBalancer(installation, {
      name: 'for-operators',
      region: REGION,
      protocol: { tcp: { port: 90 } },
      backends: [{ address: first }],
    })
    const id = decodeId(made.id)?.uuid ?? ''
    const vip = made.addresses[0]?.address
    const { store } = installation

    const added = await compare((validateOnly) =>
      addBackends(store, scope, {
        loadBalancer: id,
        backends: [second, third].flatMap((address) => (address ? [{ address }] : [])),
        validateOnly,
      }),
    )
    const summary = added.map(({ cluster, kind, action, address }) =>
      [cluster, kind, action, address].join(' '),
    )
    expect(summary).toEqual([
      `us-west-1-a NetworkRule UPDATE ${vip}`,
      `us-west-1-a ServiceVIPBinding CREATE ${vip}`,
      `us-west-1-b NetworkRule CREATE ${vip}`,
      `us-west-1-b ServiceVIPBinding CREATE ${vip}`,
    ])
    expect(added[0]?.diff).toEqual([
      {
        path: ['metadata', 'annotations', 'lb.networking.datumapis.com/generation'],
        before: '1',
        after: '2',
      },
      { path: ['spec', 'backends', second, 'address'], before: null, after: second },
      { path: ['spec', 'backends', second, 'port'], before: null, after: '90' },
    ])

    const moved = await compare((validateOnly) =>
      updateLoadBalancer(store, scope, { id, protocol: { tcp: { port: 91 } }, validateOnly }),
    )
    expect(moved[0]?.diff).toContainEqual({ path: ['spec', 'port'], before: '90', after: '91' })

    const removed = await compare((validateOnly) =>
      removeBackends(store, scope, {
        loadBalancer: id,
        addresses: third ? [third] : [],
        validateOnly,
      }),
    )
    expect(removed.filter(({ cluster }) => cluster === 'us-west-1-b')).toMatchObject([
      { kind: 'NetworkRule', action: 'DELETE' },
      { kind: 'ServiceVIPBinding', action: 'DELETE' },
    ])
  })
})
