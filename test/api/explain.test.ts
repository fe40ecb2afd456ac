import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { LINKS } from '../../src/domain/explain/explanation.ts'
import { rederive } from '../../src/domain/placements/derive.ts'
import { DATA_PLANE_NAMESPACE, NETWORK_RULES } from '../../src/rules/objects.ts'
import { isReason } from '../../src/rules/reasons.ts'
import type { Ruling } from '../support/gatekeeper.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import {
  add,
  attach,
  create,
  createSettled,
  isOf,
  known,
  storeId,
  vipOf,
} from '../workers/scene.ts'
import { explained, explainedAs, type Step } from './explanations.ts'
import {
  accepted,
  BIND,
  CREATE,
  DELETE,
  inputOf,
  RESERVE,
  type Reservation,
  UNBIND,
  UPDATE_BACKENDS,
} from './operations.ts'
import { clusterCalled, tell } from './operators.ts'

/** a and b are one region; probed has a prober; only served4 serves IPv4; small has two addresses. */
const CLUSTERS = {
  a: { name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false },
  b: { name: 'us-east-1-b', region: 'us-east-1', servesIPv4: false },
  served4: { name: 'us-west-1-a', region: 'us-west-1', servesIPv4: true },
  probed: { name: 'eu-south-1-a', region: 'eu-south-1', servesIPv4: false },
  lonely: { name: 'eu-north-1-a', region: 'eu-north-1', servesIPv4: false },
} as const
type Where = keyof typeof CLUSTERS

const installation = useInstallation({
  guarded: true,
  clusters: Object.values(CLUSTERS),
  limits: { teardownPatience: 300, rereadSchema: 200 },
  pools: [
    { name: 'east6', region: 'us-east-1', prefix: '2001:db8:1::/64', skipFirstAndLast: true },
    { name: 'west6', region: 'us-west-1', prefix: '2001:db8:2::/64', skipFirstAndLast: true },
    { name: 'south6', region: 'eu-south-1', prefix: '2001:db8:3::/64', skipFirstAndLast: true },
    { name: 'north6', region: 'eu-north-1', prefix: '2001:db8:4::/120' },
    { name: 'east4', region: 'us-east-1', prefix: '198.51.100.0/30' },
    { name: 'west4', region: 'us-west-1', prefix: '203.0.113.0/24', skipFirstAndLast: true },
  ],
})

const cluster = (where: Where) => installation.fleet.get(CLUSTERS[where].name)
const gate = (where: Where) => installation.gatekeeper(CLUSTERS[where].name)
const at = (...where: Where[]) =>
  where.flatMap((each) => installation.addresses(CLUSTERS[each].name))
const within = (where: Where) => ({ region: CLUSTERS[where].region })
const settledAt = (where: Where, more: object = {}) =>
  createSettled(installation, at(where), { ...within(where), ...more })
const NO = (message: string): Ruling => ({
  status: 403,
  body: {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    reason: 'Forbidden',
    code: 403,
    message,
  },
})

/** Refuses writes of one kind of object. */
function forbid(where: Where, plural: string) {
  gate(where).rule(({ method, path }) =>
    method === 'PATCH' && path.includes(`/${plural}/`) ? NO(`${plural} is forbidden`) : undefined,
  )
  return () => gate(where).rule(undefined)
}

/** A load balancer of which the data plane takes no step beyond the one that is held. */
async function heldAt(step: 'accept' | 'advertise' | 'bind') {
  const { dataPlane } = cluster('a')
  dataPlane.pause()
  const made = await create(installation, at('a'))
  const release = dataPlane.hold(step, vipOf(made))
  dataPlane.resume()
  return { id: made.id, undo: release }
}

async function gatewaysSay(reason: string | undefined, count = 2) {
  for (const node of ['us-east-1-a-gateway-1', 'us-east-1-a-gateway-2'].slice(0, count))
    cluster('a').dataPlane.setGatewayReady(node, reason)
}

async function reserved(where: Where): Promise<Reservation> {
  reservations += 1
  const { reservation } = await accepted<{ reservation: Reservation }>(installation.api, RESERVE, {
    name: `reserved-${reservations}`,
    ...within(where),
  })
  return reservation
}
let reservations = 0

const everySecond = { intervalSeconds: 1, timeoutSeconds: 1, fall: 1, rise: 1 }
async function stopped(count: number, more: object = {}) {
  const { id } = await clusterCalled(installation.operators, CLUSTERS.probed.name)
  await tell(installation.operators, 'updateCluster', { id, hasProber: true })
  const made = await settledAt('probed', { healthCheck: { ...everySecond, ...more } })
  await explainedAs(installation.api, made.id, null)
  const ends = cluster('probed').endpoints.filter(({ project }) => project === 'demo')
  for (const end of ends.slice(0, count)) await end.stop()
  return {
    id: made.id,
    undo: async () => {
      for (const end of ends.slice(0, count)) await end.start()
      await explainedAs(installation.api, made.id, null)
    },
  }
}

type Fault = {
  fault: string
  inject(): Promise<{ id: string; undo?: () => unknown }>
  broken: Pick<Step, 'name' | 'status' | 'reason'>
  reachable?: boolean
  /** What operators must find among the evidence. */
  evidence?: RegExp
}
const broken = (name: string, reason: string, status = 'FALSE') => ({ name, reason, status })

const FAULTS: Fault[] = [
  {
    fault: 'a VPC that is not the project’s any more',
    reachable: true,
    broken: broken('Accepted', 'VpcNotOwned'),
    async inject() {
      const made = await settledAt('a')
      const own = (owned: boolean) =>
        installation.store.prisma.vpc.updateMany({ where: { project: 'demo' }, data: { owned } })
      await own(false)
      return { id: made.id, undo: () => own(true) }
    },
  },
  {
    fault: 'an address that another load balancer has not let go of',
    broken: broken('AddressesHeld', 'AddressHeldElsewhere'),
    evidence: /still with the load balancer that had it/,
    async inject() {
      const { id: reservation, address } = await reserved('served4')
      const before = await settledAt('served4')
      const next = await settledAt('served4')
      await accepted(installation.api, BIND, { reservation, loadBalancer: before.id })
      await installation.api.settled(before.id)
      const undo = cluster('served4').dataPlane.hold('teardown', address)
      await accepted(installation.api, UNBIND, { reservation, loadBalancer: before.id })
      await accepted(installation.api, BIND, { reservation, loadBalancer: next.id })
      return { id: next.id, undo }
    },
  },
  {
    fault: 'no backend at all',
    broken: broken('BackendsResolved', 'NoBackends'),
    inject: () => create(installation, []),
  },
  {
    fault: 'backends that are all on standby',
    broken: broken('BackendsResolved', 'NoBackends'),
    evidence: /^STANDBY$/,
    async inject() {
      const made = await settledAt('a')
      const backends = at('a').map((address) => ({ address, adminState: 'STANDBY' }))
      await accepted(installation.api, UPDATE_BACKENDS, { loadBalancer: made.id, backends })
      return made
    },
  },
  {
    fault: 'an address that nobody knows in the VPC',
    broken: broken('BackendsResolved', 'AddressUnknown'),
    evidence: /fd20:1::dead is not known/,
    inject: () => create(installation, ['fd20:1::dead']),
  },
  {
    fault: 'a machine that already serves the port for an older backend',
    reachable: true,
    broken: broken('BackendsResolved', 'NodeConflict'),
    async inject() {
      const [older, younger] = ['fd20:1::c:1', 'fd20:1::c:2']
      for (const address of [older, younger]) {
        await attach(cluster('a'), { addresses: [address], node: 'shared' })
        await known(installation, address, [CLUSTERS.a.name])
      }
      const made = await createSettled(installation, [older])
      await add(installation, made, younger)
      return made
    },
  },
  {
    fault: 'a backend that lives where none are taken at the moment',
    reachable: true,
    broken: broken('BackendsResolved', 'ClusterCordoned'),
    async inject() {
      const made = await settledAt('a')
      const { id } = await clusterCalled(installation.operators, CLUSTERS.b.name)
      const mode = (to: string) => tell(installation.operators, 'updateCluster', { id, mode: to })
      await mode('CORDONED')
      await add(installation, made, ...at('b'))
      return {
        id: made.id,
        undo: async () => {
          await mode('ACTIVE')
          await rederive(installation.store, storeId(made.id))
        },
      }
    },
  },
  {
    fault: 'the only cluster down',
    broken: broken('RuleApplied', 'ClusterUnreachable', 'UNKNOWN'),
    async inject() {
      const made = await settledAt('b')
      gate('b').rule(() => 'reset')
      gate('b').breakWatches()
      return { id: made.id, undo: () => gate('b').rule(undefined) }
    },
  },
  {
    fault: 'one of two clusters down',
    reachable: true,
    broken: broken('RuleApplied', 'ClusterUnreachable', 'UNKNOWN'),
    async inject() {
      const made = await createSettled(installation, at('a', 'b'))
      gate('b').rule(() => 'reset')
      gate('b').breakWatches()
      return { id: made.id, undo: () => gate('b').rule(undefined) }
    },
  },
  {
    fault: 'a cluster without the kind of object that rules are',
    broken: broken('RuleApplied', 'SchemaMissing'),
    async inject() {
      const file = new URL('../../dev/crds/networkrules.yaml', import.meta.url)
      const crd = await readFile(file, 'utf8')
      const { storage } = cluster('lonely').server
      storage.setCrd(
        crd.replace('backends:', 'others:').replace('required: [backends,', 'required: ['),
      )
      await expect
        .poll(() => clusterCalled(installation.operators, CLUSTERS.lonely.name), {
          timeout: 10_000,
        })
        .toMatchObject({
          capabilities: expect.not.arrayContaining([{ name: 'dialect', value: 'backends' }]),
        })
      const made = await create(installation, at('lonely'), within('lonely'))
      return { id: made.id, undo: () => storage.setCrd(crd) }
    },
  },
  {
    fault: 'a missing right to write rules',
    broken: broken('RuleApplied', 'ApplyFailed'),
    evidence: /networkrules is forbidden/,
    async inject() {
      const undo = forbid('a', 'networkrules')
      const made = await create(installation, at('a'))
      return { id: made.id, undo }
    },
  },
  {
    fault: 'a missing right to write bindings',
    broken: broken('Programmed', 'ApplyFailed'),
    evidence: /servicevipbindings is forbidden/,
    async inject() {
      const undo = forbid('a', 'servicevipbindings')
      const made = await create(installation, at('a'))
      return { id: made.id, undo }
    },
  },
  {
    fault: 'a rule that somebody else edited and guards',
    broken: broken('RuleApplied', 'RuleEdited'),
    evidence: /fleet changed the rule/,
    async inject() {
      const made = await settledAt('a')
      const rule = (await rulesIn(cluster('a'))).find(isOf(made))
      const undo = forbid('a', 'networkrules')
      const where = { name: rule?.metadata.name ?? '', namespace: DATA_PLANE_NAMESPACE }
      await cluster('a').writer.patch(NETWORK_RULES, where, {
        spec: { vipAddresses: [vipOf(made), '2001:db8:1::ffff'] },
      })
      return { id: made.id, undo }
    },
  },
  {
    fault: 'an affinity that no cluster keeps',
    reachable: true,
    broken: broken('RuleApplied', 'AffinityNotSupported'),
    inject: () => settledAt('a', { sessionAffinity: 'CLIENT_IP' }),
  },
  {
    fault: 'an IPv4 address where IPv4 is not served',
    reachable: true,
    broken: broken('RuleApplied', 'AddressFamilyNotServed'),
    async inject() {
      const { id: reservation } = await reserved('a')
      return settledAt('a', { ipv4Reservations: [reservation] })
    },
  },
  {
    fault: 'a deletion that the data plane does not finish',
    broken: broken('RuleApplied', 'TeardownStuck'),
    async inject() {
      const made = await settledAt('a')
      const undo = cluster('a').dataPlane.hold('teardown', vipOf(made))
      await accepted(installation.api, DELETE, { id: made.id })
      return { id: made.id, undo }
    },
  },
  {
    fault: 'no worker that serves the cluster',
    broken: broken('RuleApplied', 'NoWorker', 'UNKNOWN'),
    async inject() {
      await installation.workers.close()
      const made = await create(installation, at('a'))
      return { id: made.id, undo: () => installation.restartWorkers() }
    },
  },
  {
    fault: 'a data plane that has not accepted the rule',
    broken: broken('DataPlaneAccepted', 'Progressing'),
    inject: () => heldAt('accept'),
  },
  {
    fault: 'a data plane that refuses the rule',
    broken: broken('DataPlaneAccepted', 'NotAccepted'),
    evidence: /NoCapacity/,
    async inject() {
      const held = await heldAt('accept')
      await explainedAs(installation.api, held.id, broken('DataPlaneAccepted', 'Progressing'))
      const uuid = storeId(held.id).replaceAll('-', '')
      const rule = (await rulesIn(cluster('a'))).find(({ metadata }) =>
        metadata.name.includes(uuid),
      )
      const where = { name: rule?.metadata.name ?? '', namespace: DATA_PLANE_NAMESPACE }
      const says = { type: 'Accepted', status: 'False', reason: 'NoCapacity', message: 'full' }
      const lastTransitionTime = '2026-01-01T00:00:00Z'
      await cluster('a').writer.patchStatus(NETWORK_RULES, where, {
        status: { conditions: [{ ...says, lastTransitionTime, observedGeneration: 1 }] },
      })
      return held
    },
  },
  {
    fault: 'a cluster whose gateways are gone',
    broken: broken('DataPlaneAccepted', 'NoGateway'),
    async inject() {
      const { dataPlane } = cluster('lonely')
      const nodes = ['eu-north-1-a-gateway-1', 'eu-north-1-a-gateway-2']
      for (const node of nodes) await dataPlane.dropGateway(node)
      const made = await create(installation, at('lonely'), within('lonely'))
      return {
        id: made.id,
        undo: async () => {
          for (const node of nodes) await dataPlane.addGateway(node)
        },
      }
    },
  },
  {
    fault: 'backends that are not bound on their machines',
    broken: broken('Programmed', 'Progressing'),
    inject: () => heldAt('bind'),
  },
  {
    fault: 'gateways that report trouble of their own',
    broken: broken('Programmed', 'EngineDegraded', 'UNKNOWN'),
    async inject() {
      const made = await settledAt('a')
      await gatewaysSay('EngineDegraded')
      return { id: made.id, undo: () => gatewaysSay(undefined) }
    },
  },
  {
    fault: 'an address that is not announced',
    broken: broken('Advertised', 'NotAdvertised'),
    inject: () => heldAt('advertise'),
  },
  {
    fault: 'one of two gateways that does not announce it',
    reachable: true,
    broken: broken('Advertised', 'PartlyAdvertised'),
    async inject() {
      const made = await settledAt('a')
      await gatewaysSay('AdvertisementFailed', 1)
      return { id: made.id, undo: () => gatewaysSay(undefined, 1) }
    },
  },
  {
    fault: 'backends that nobody has probed yet',
    broken: broken('BackendsHealthy', 'NotProbedYet', 'UNKNOWN'),
    async inject() {
      const { id } = await clusterCalled(installation.operators, CLUSTERS.probed.name)
      await tell(installation.operators, 'updateCluster', { id, hasProber: true })
      return settledAt('probed', { healthCheck: { intervalSeconds: 300, timeoutSeconds: 60 } })
    },
  },
  {
    fault: 'one of two backends that refuses connections',
    reachable: true,
    broken: broken('BackendsHealthy', 'SomeUnhealthy'),
    evidence: /onnection refused by \[fd20:1:/,
    inject: () => stopped(1),
  },
  {
    fault: 'fewer healthy backends than asked for',
    reachable: true,
    broken: broken('BackendsHealthy', 'FailOpen'),
    inject: () => stopped(1, { minimumHealthyPercent: 80 }),
  },
  {
    fault: 'backends that all refuse connections',
    broken: broken('BackendsHealthy', 'FailOpen'),
    evidence: /onnection refused by \[fd20:1:/,
    inject: () => stopped(2),
  },
  {
    fault: 'a way from outside that is cut',
    broken: broken('Reachable', 'ProbeFailed'),
    evidence: /seen by oslo: timed out/,
    async inject() {
      const made = await settledAt('a')
      const at = new Date().toISOString()
      const result = { address: vipOf(made), port: made.port, reachable: false, at }
      await tell(installation.operators, 'reportReachability', {
        vantage: 'oslo',
        results: [{ ...result, message: 'timed out' }],
      })
      return made
    },
  },
]

describe('explain', () => {
  it('finds nothing broken where everything holds, each link with its evidence', async () => {
    const made = await createSettled(installation, at('a', 'b'))
    const { reachable, steps } = await explainedAs(installation.api, made.id, null)
    expect(reachable).toBe(true)
    expect(steps.map(({ name }) => name)).toEqual(LINKS)
    for (const { status, remedy, evidence } of steps) {
      expect([status, remedy]).toEqual(['TRUE', null])
      expect(evidence.length).toBeGreaterThan(0)
    }
    expect(steps.find(({ name }) => name === 'Programmed')?.evidence).toHaveLength(2)
  })

  it.each(FAULTS)('names $broken.name / $broken.reason for $fault', async (row) => {
    const { id, undo } = await row.inject()
    try {
      const told = await explainedAs(installation.api, id, row.broken)
      expect(told.reachable).toBe(row.reachable ?? false)
      expect(told.firstBroken?.remedy).toMatch(/\w/)
      for (const { status, remedy, reason } of told.steps) {
        expect(remedy === null).toBe(status === 'TRUE')
        expect(isReason(reason)).toBe(true)
      }
      // Names of clusters, and of nodes, which hold them.
      for (const { name } of Object.values(CLUSTERS)) {
        expect(JSON.stringify(told)).not.toContain(name)
      }
      const { firstBroken } = await explained(installation.operators, id, 'operators')
      const evidence = firstBroken?.evidence ?? []
      if (row.evidence) {
        expect(evidence.map(({ value }) => value)).toContainEqual(
          expect.stringMatching(row.evidence),
        )
      }
      const ofClusters = ['RuleApplied', 'DataPlaneAccepted', 'Programmed', 'Advertised']
      if (ofClusters.includes(row.broken.name)) {
        expect(evidence.map(({ cluster }) => cluster)).toContainEqual(expect.any(String))
      }
    } finally {
      await undo?.()
    }
  })

  it('of a load balancer that was never made: the refusal says why, and what to do', async () => {
    const full = { ...within('lonely') }
    await installation.store.pool.query(
      `UPDATE address_pool_counter SET next = 1000 WHERE pool_id = (SELECT id FROM address_pool WHERE name = 'north6')`,
    )
    const answer = await installation.api.get(CREATE, {
      input: inputOf(installation, { name: 'one-too-many', backends: [], ...full }),
    })
    expect(answer).toMatchObject({
      __typename: 'PoolExhausted',
      code: 'POOL_EXHAUSTED',
      hint: expect.stringMatching(/another region/),
    })
  })
})
