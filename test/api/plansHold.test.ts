import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { addBackends, removeBackends } from '../../src/domain/loadBalancers/backends.ts'
import { updateLoadBalancer } from '../../src/domain/loadBalancers/update.ts'
import type { RuleChange } from '../../src/domain/plans/plan.ts'
import { Refusal } from '../../src/domain/refusals.ts'
import { type Impact, impactOf } from '../../src/maglev/impact.ts'
import { backendKey, type Table, tableOf } from '../../src/maglev/table.ts'
import {
  DATA_PLANE_NAMESPACE,
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import {
  ADD_BACKENDS,
  accepted,
  BIND,
  createLoadBalancer,
  type LoadBalancer,
  REMOVE_BACKENDS,
  RESERVE,
  type Reservation,
  SET_BACKENDS,
  SHOW,
  UNBIND,
  UPDATE,
  UPDATE_BACKENDS,
} from './operations.ts'
import { planned, quiet } from './plan.ts'

/** Where a region's clusters serve IPv4, so that bound reservations get rules too. */
const REGION = 'us-west-1'
const CLUSTERS = ['us-west-1-a', 'us-west-1-b']
const installation = useInstallation({ endpointsPerCluster: 4 })

const running = (cluster: string) => installation.fleet.get(cluster)
const vipsOf = ({ addresses }: LoadBalancer) => addresses.map(({ address }) => address)
const show = (id: string) => installation.api.get<LoadBalancer>(SHOW, { id })

/** What the rules in each cluster list for a load balancer, as a table; not by the code that plans. */
async function tables(loadBalancer: LoadBalancer): Promise<(Table | null)[]> {
  const vips = new Set(vipsOf(loadBalancer))
  return Promise.all(
    CLUSTERS.map(async (cluster) => {
      const mine = (await rulesIn(running(cluster))).filter(({ spec }) =>
        spec.vipAddresses.some((vip) => vips.has(vip)),
      )
      const listed = mine.map(({ spec }) => ('backends' in spec ? spec.backends : []))
      const [first] = listed
      // The rules of all its addresses list the same.
      for (const other of listed) expect(other).toEqual(first)
      const table = tableOf((first ?? []).map(({ address, port }) => backendKey(address, port)))
      return 'refused' in table ? null : table
    }),
  )
}

/** What happened to tables, as plans tell it. */
function happened(before: (Table | null)[], after: (Table | null)[]) {
  const told = new Map<string, Impact & { clusters: number }>()
  for (const [index, was] of before.entries()) {
    const is = after[index] ?? null
    const impact = impactOf(was, is)
    if (impact.moved === 0) continue
    const name = JSON.stringify([was?.keys, is?.keys])
    told.set(name, { ...impact, clusters: (told.get(name)?.clusters ?? 0) + 1 })
  }
  return sorted([...told.values()])
}

const sorted = <T extends Impact>(impacts: T[]) =>
  impacts.map(({ moved, lost, taken, needless }) => `${moved} ${lost} ${taken} ${needless}`).sort()

describe('what was planned', () => {
  let subject: LoadBalancer
  let reservation: Reservation
  const endpoints = () => CLUSTERS.flatMap((cluster) => installation.addresses(cluster))

  beforeAll(async () => {
    // An older one that has some of the places of the data plane at the same port.
    await createLoadBalancer(installation, {
      name: 'older',
      region: REGION,
      protocol: { tcp: { port: 80 } },
      backends: [0, 5].map((index) => ({ address: endpoints()[index] })),
    })
    subject = await createLoadBalancer(installation, {
      name: 'subject',
      region: REGION,
      protocol: { tcp: { port: 81 } },
      backends: [1, 2, 6].map((index) => ({ address: endpoints()[index] })),
    })
    const reserved = { name: 'static', region: REGION }
    const made = await accepted<{ reservation: Reservation }>(installation.api, RESERVE, reserved)
    reservation = made.reservation
  })

  const places = fc.uniqueArray(fc.nat(8), { minLength: 1, maxLength: 8 })
  const state = fc.constantFrom('ENABLED', 'ENABLED', 'STANDBY', 'DISABLED')
  // The ninth is an address that nobody knows.
  const address = (index: number) => endpoints()[index] ?? 'fd20:1::dead'
  const change = fc.oneof(
    places.map((list) => ({ operation: SET_BACKENDS, places: list })),
    places.map((list) => ({ operation: ADD_BACKENDS, places: list })),
    places.map((list) => ({ operation: REMOVE_BACKENDS, places: list })),
    state.map((adminState) => ({ operation: UPDATE_BACKENDS, adminState })),
    fc
      .record({
        protocol: fc.constantFrom({ tcp: { port: 80 } }, { tcp: { port: 81 } }),
        sessionAffinity: fc.constantFrom('NONE', 'CLIENT_IP'),
        displayName: fc.constantFrom('one', 'two'),
        healthCheck: fc.constantFrom({ enabled: false }, { enabled: true, fall: 4, rise: 1 }),
      })
      .map((fields) => ({ operation: UPDATE, fields })),
    fc.constantFrom(BIND, UNBIND).map((operation) => ({ operation })),
  )

  const inputOf = (
    of: { operation: string; places?: number[]; adminState?: string; fields?: object },
    now: LoadBalancer,
  ): Record<string, unknown> => {
    const loadBalancer = subject.id
    const addresses = (of.places ?? []).map(address)
    if (of.operation === REMOVE_BACKENDS) return { loadBalancer, addresses }
    if (of.places) return { loadBalancer, backends: addresses.map((one) => ({ address: one })) }
    if (of.adminState) {
      const [first, second] = now.backends.nodes
      const { adminState } = of
      return {
        loadBalancer,
        backends: [first, second].flatMap((one) =>
          one ? [{ address: one.address, adminState }] : [],
        ),
      }
    }
    if (of.fields) return { id: subject.id, ...of.fields }
    return { loadBalancer, reservation: reservation.id }
  }

  it('is what then happens: addresses, slots of each table, fields', async () => {
    await quiet(installation)
    const run = async (of: Parameters<typeof inputOf>[0]) => {
      const before = await show(subject.id)
      const bound = before.addresses.some(({ ipv4Reservation }) => ipv4Reservation)
      // Unbinding what isn't bound is refused.
      if (of.operation === UNBIND && !bound) return
      const input = inputOf(of, before)
      const was = await tables(before)
      const plan = await planned(installation.api, of.operation, input)
      expect(await tables(before)).toEqual(was)
      const { loadBalancer: after } = await accepted(installation.api, of.operation, input)
      await quiet(installation)

      const had = new Set(vipsOf(before))
      const has = new Set(vipsOf(after))
      expect(plan.addresses).toEqual(
        [...had.symmetricDifference(has)].map((one) => ({ address: one, action: 'UPDATE' })),
      )
      const all = { ...after, addresses: [...before.addresses, ...after.addresses] }
      expect(sorted(plan.flows)).toEqual(happened(was, await tables(all)))
      const unchanged = after.generation === before.generation
      expect(plan.changes).toEqual(unchanged ? [] : (await lastEvent(subject.id)).changes)
    }
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 4, maxLength: 4 }), async (list) => {
        for (const one of list) await run(one)
      }),
      { numRuns: 10, endOnFailure: true },
    )
  })
})

type Event = { changes: { path: string[]; before: string | null; after: string | null }[] }

/** The last change that somebody asked for. */
async function lastEvent(id: string): Promise<Event> {
  const { events } = await installation.api.get<{ events: { nodes: Event[] } }>(
    `query ($id: ID!) { loadBalancer(id: $id) { events(first: 1, filter: { reason: [
       "BackendsChanged", "LoadBalancerUpdated", "IPv4ReservationBound", "IPv4ReservationUnbound"] }) {
       nodes { changes { path before after } } } } }`,
    { id },
  )
  const [event] = events.nodes
  if (event === undefined) throw new Error('nothing happened')
  return event
}

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
