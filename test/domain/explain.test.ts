import { describe, expect, it } from 'vitest'
import { explain } from '../../src/domain/explain/explain.ts'
import type { Facts } from '../../src/domain/explain/explanation.ts'
import type { FoldBackend, FoldInput } from '../../src/domain/fold.ts'
import { fold } from '../../src/domain/fold.ts'
import type { StoredLoadBalancer } from '../../src/domain/loadBalancers/stored.ts'
import { found } from '../../src/rules/findings.ts'
import type { Reason } from '../../src/rules/reasons.ts'
import {
  backend,
  CREATED,
  failing,
  IPV4_VIP,
  input,
  NOW,
  placement,
  report,
  VIP,
  vipReport,
  vipSaying,
  withHealth,
  withIPv4,
} from './folding.ts'

const FACTS: Facts = {
  vpcOwned: true,
  clusters: ['a', 'b'].map((name) => ({
    name,
    served: true,
    trouble: null,
    lastError: null,
    attempts: 0,
    inventory: null,
  })),
  holds: [],
}

/** As the store would answer what is folded here. */
function explained(folded: FoldInput, facts: Partial<Facts> = {}) {
  const { loadBalancer, addresses, backends, placements, now } = folded
  const { generation, rulesGeneration, deleting, sessionAffinity, createdAt } = loadBalancer
  const status = fold(folded)
  const stored: StoredLoadBalancer = {
    id: 'load-balancer-1',
    version: 7,
    project: 'demo',
    name: 'web',
    displayName: null,
    description: null,
    labels: [],
    vpc: { id: 'vpc-1', name: 'vpc', project: 'demo' },
    regionId: 'region-1',
    protocol: 'TCP',
    port: 80,
    sessionAffinity,
    healthCheck: {
      enabled: true,
      probe: { kind: 'tcp', port: null },
      intervalSeconds: 10,
      timeoutSeconds: 5,
      rise: 2,
      fall: 3,
      minimumHealthyPercent: 0,
    },
    deletionProtection: false,
    generation,
    rulesGeneration,
    createdAt,
    updatedAt: createdAt,
    deletingSince: deleting ? CREATED : null,
    phase: status.phase,
    observedGeneration: status.observedGeneration,
    addresses,
    backends: backends.map((each) => ({ ...each, cordonedIn: each.cordonedIn ?? null })),
    status,
    placements,
  }
  return explain({ stored, probes: folded.probes ?? [], facts: { ...FACTS, ...facts }, now })
}

const first = (folded: FoldInput, facts: Partial<Facts> = {}) => {
  const { reachable, firstBroken } = explained(folded, facts)
  return [firstBroken?.name, firstBroken?.status, firstBroken?.reason, reachable]
}
const one = (change: Parameters<typeof placement>[1]) =>
  input({ placements: [placement('a', change)] })
const no = (reason: Reason) => found('FALSE', reason, 'It does not.')
const affine = (folded: FoldInput): FoldInput => ({
  ...folded,
  loadBalancer: { ...folded.loadBalancer, sessionAffinity: 'CLIENT_IP' },
})

describe('the first broken link', () => {
  it.each<[string, FoldInput, unknown[]]>([
    ['nothing, where all holds', input(), [undefined, undefined, undefined, true]],
    [
      'a database that was restored and is behind',
      one({ report: report({ inEffect: false, cluster: no('StoreBehind') }) }),
      ['RuleApplied', 'FALSE', 'StoreBehind', true],
    ],
    [
      'gateways without room',
      one({ report: { ...failing('ClusterFull'), cluster: no('ClusterFull') } }),
      ['RuleApplied', 'FALSE', 'ClusterFull', false],
    ],
    [
      'a gateway that could not load the rule',
      one({
        report: report({
          inEffect: false,
          backends: {},
          vips: { [VIP]: vipReport({ provisioned: no('LoadFailed') }) },
        }),
      }),
      ['Programmed', 'FALSE', 'LoadFailed', false],
    ],
    [
      'a machine that could not be bound, beside another that is',
      one({
        report: report({
          inEffect: false,
          vips: { [VIP]: vipReport({ provisioned: no('BindFailed') }) },
        }),
      }),
      ['Programmed', 'FALSE', 'BindFailed', true],
    ],
    [
      'a change that is on its way, while the one before is served',
      one({ asked: 6 }),
      ['RuleApplied', 'FALSE', 'Progressing', true],
    ],
    [
      'rules that have not left a cluster yet',
      input({
        placements: [
          placement('a'),
          placement('b', {
            placed: false,
            report: report({ inEffect: false, vips: { [VIP]: vipSaying('TeardownStuck', false) } }),
          }),
        ],
      }),
      ['RuleApplied', 'FALSE', 'TeardownStuck', true],
    ],
    [
      'what cuts, behind an affinity that only is not kept',
      affine(
        one({
          report: report({
            inEffect: false,
            affinity: no('AffinityNotSupported'),
            vips: {
              [VIP]: vipReport({
                advertised: no('NotAdvertised'),
                provisioned: no('NotAdvertised'),
              }),
            },
          }),
        }),
      ),
      ['Advertised', 'FALSE', 'NotAdvertised', false],
    ],
    [
      'what one of two addresses lacks',
      withIPv4({
        placements: [
          placement('a', {
            report: report({
              inEffect: false,
              vips: { [VIP]: vipReport(), [IPV4_VIP]: vipSaying('NotAccepted') },
            }),
          }),
        ],
      }),
      ['RuleApplied', 'FALSE', 'NotAccepted', false],
    ],
    [
      'backends of which each cluster lacks another link',
      input({
        placements: [
          placement('a', { report: failing('NotAccepted') }),
          placement('b', { unreachableSince: NOW }),
        ],
      }),
      ['RuleApplied', 'FALSE', 'NotAccepted', false],
    ],
    [
      'backends that are doubted with all others',
      input({ backends: [withHealth(1, 'UNKNOWN', 'ProberDistrusted')] }),
      ['BackendsHealthy', 'UNKNOWN', 'ProberDistrusted', false],
    ],
    [
      'one that comes and goes, beside one that is well',
      input({ backends: [backend(1), withHealth(2, 'UNHEALTHY', 'Flapping')] }),
      ['BackendsHealthy', 'FALSE', 'Flapping', true],
    ],
    [
      'a deletion that waits for a cluster that does not answer',
      {
        ...input({
          placements: [placement('a', { placed: false, unreachableSince: NOW })],
        }),
        loadBalancer: { ...input().loadBalancer, deleting: true },
      },
      ['RuleApplied', 'UNKNOWN', 'ClusterUnreachable', false],
    ],
    [
      'a load balancer without an address',
      input({ addresses: [] }),
      ['AddressesHeld', 'FALSE', 'AddressPending', false],
    ],
  ])('is %s', (_, folded, expected) => {
    expect(first(folded)).toEqual(expected)
  })

  it('counts clusters for tenants, and names them to nobody else', () => {
    const lost = input({ placements: [placement('a'), placement('b', { unreachableSince: NOW })] })
    const { firstBroken } = explained(lost)
    expect(firstBroken?.message).toBe(
      `One of the region's 2 clusters has not answered since ${NOW}; what is served there is not known.`,
    )
    expect(firstBroken?.evidence.map(({ cluster, seenAt }) => [cluster, seenAt])).toEqual([
      ['a', NOW],
      ['b', NOW],
    ])
  })

  it('tells of ten backends one by one, and of all in a number', () => {
    const many: FoldBackend[] = Array.from({ length: 20 }, (_, index) =>
      backend(index + 1, { knownIn: [] }),
    )
    const { steps } = explained(input({ backends: many }))
    const { evidence } = steps[2] ?? { evidence: [] }
    expect(evidence).toHaveLength(11)
    expect(evidence[0]).toMatchObject({ value: '0 of 20' })
  })
})
