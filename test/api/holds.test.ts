import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LOAD_BALANCER_LABEL, type NetworkRule } from '../../src/rules/objects.ts'
import { useInstallation } from '../support/installation.ts'
import {
  accepted,
  BIND,
  createLoadBalancer,
  DELETE,
  MOVE,
  RESERVE,
  type Reservation,
  SHOW_RESERVATION,
  UNBIND,
} from './operations.ts'

const installation = useInstallation({ guarded: true })
const RULES = 'networkrules.network.datumapis.com'
const CLUSTERS = ['us-west-1-a', 'us-west-1-b']
const STEPS = 60

/** Which load balancers' rules hold an address, over both clusters, and every instant at which it was more than one. */
function witness(addresses: string[]) {
  const holders = new Map(addresses.map((address) => [address, new Map<string, string>()]))
  const offences: string[] = []
  for (const cluster of CLUSTERS) {
    // Both servers are in this process and tell every version as it is committed: one order of all.
    installation.fleet.get(cluster).server.storage.observe(RULES, ({ type, object }) => {
      const { metadata, spec } = object as NetworkRule
      for (const [address, rules] of holders) {
        if (!spec.vipAddresses.includes(address)) continue
        const key = `${cluster}/${metadata.name}`
        if (type === 'DELETED') rules.delete(key)
        else rules.set(key, metadata.labels?.[LOAD_BALANCER_LABEL] ?? '')
        if (new Set(rules.values()).size > 1) offences.push(`${address}: ${[...rules.keys()]}`)
      }
    })
  }
  return { offences, holders }
}

const step = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      act: fc.constant('bind' as const),
      reservation: fc.nat(1),
      lb: fc.nat(3),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      act: fc.constant('unbind' as const),
      reservation: fc.nat(1),
      lb: fc.nat(3),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      act: fc.constant('move' as const),
      reservation: fc.nat(1),
      lb: fc.nat(3),
      to: fc.nat(3),
    }),
  },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('replace' as const), lb: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('pause' as const), cluster: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('resume' as const), cluster: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('fail' as const), cluster: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ act: fc.constant('mend' as const), cluster: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ act: fc.constant('worker' as const) }) },
  { weight: 3, arbitrary: fc.record({ act: fc.constant('breathe' as const) }) },
)

it("whatever is bound, unbound, moved and deleted while clusters answer late, or fail, and workers come and go, no address is ever in two load balancers' rules", async () => {
  const { api, fleet } = installation
  let number = 0
  const create = async (index: number) => {
    number += 1
    const made = await createLoadBalancer(installation, {
      name: `held-${number}`,
      region: 'us-west-1',
      protocol: { tcp: { port: 3_000 + number } },
      backends: installation
        .addresses(index % 2 === 0 ? 'us-west-1' : (CLUSTERS[(index % 4) >> 1] ?? ''))
        .map((address) => ({ address })),
    })
    return made.id
  }
  const lbs = await Promise.all([0, 1, 2, 3].map(create))
  const reservations: Reservation[] = []
  for (const name of ['first', 'second']) {
    const input = { name, region: 'us-west-1' }
    reservations.push(
      (await accepted<{ reservation: Reservation }>(api, RESERVE, input)).reservation,
    )
  }
  const { offences } = witness(reservations.map(({ address }) => address))
  const plane = (index: number) => fleet.get(CLUSTERS[index] ?? '').dataPlane
  const gate = (index: number) => installation.gatekeeper(CLUSTERS[index] ?? '')
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  const plan = fc.sample(step, { numRuns: STEPS, seed })
  for (const one of plan) {
    const reservation = 'reservation' in one ? reservations[one.reservation]?.id : ''
    const lb = 'lb' in one ? lbs[one.lb] : ''
    // Most are refused, which is as good: what counts is what is in the clusters.
    if (one.act === 'bind') await api.get(BIND, { input: { reservation, loadBalancer: lb } })
    if (one.act === 'unbind') await api.get(UNBIND, { input: { reservation, loadBalancer: lb } })
    if (one.act === 'move')
      await api.get(MOVE, { input: { reservation, from: lb, to: lbs[one.to] } })
    if (one.act === 'replace') {
      await api.get(DELETE, { input: { id: lb } })
      lbs[one.lb] = await create(one.lb)
    }
    if (one.act === 'pause') plane(one.cluster).pause()
    if (one.act === 'resume') plane(one.cluster).resume()
    if (one.act === 'fail') {
      // A write that isn't answered at all keeps its address for a minute: too long for so many steps.
      gate(one.cluster).rule(() => ({ status: 503, body: {} }))
      gate(one.cluster).breakWatches()
    }
    if (one.act === 'mend') gate(one.cluster).rule(undefined)
    if (one.act === 'worker') await installation.restartWorkers()
    if (one.act === 'breathe') await api.get('{ cursor }')
  }
  for (const index of [0, 1]) {
    plane(index).resume()
    gate(index).rule(undefined)
  }
  // Nothing is lost: in the end each is where it was put last.
  for (const { id } of reservations) {
    await expect
      .poll(async () => (await api.get<Reservation>(SHOW_RESERVATION, { id })).state)
      .toMatch(/^(?:RESERVED|BOUND)$/)
  }
  expect({ seed, offences }).toEqual({ seed, offences: [] })
})
