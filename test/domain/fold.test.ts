import { describe, expect, test } from 'vitest'
import { fold } from '../../src/domain/fold.ts'
import { found } from '../../src/rules/findings.ts'
import type { SessionAffinity } from '../../src/rules/wanted.ts'
import {
  backend,
  backendReport,
  CREATED,
  failing,
  IPV4_VIP,
  input,
  LATER,
  NOW,
  placement,
  report,
  said,
  says,
  VIP,
  vipReport,
  vipSaying,
  withHealth,
  withIPv4,
} from './folding.ts'

const { loadBalancer } = input()
const served = fold(input())
const asking = (affinity: SessionAffinity) => ({ ...loadBalancer, sessionAffinity: affinity })
const unsettled = { settledGeneration: 0 }
const down = { unreachableSince: CREATED }

describe('observedGeneration', () => {
  const later = { ...loadBalancer, generation: 4, rulesGeneration: 4 }

  test('is 0 until every cluster has settled once', () => {
    const placements = [placement('a'), placement('b', unsettled)]
    expect(fold(input({ placements })).observedGeneration).toBe(0)
    expect(fold(input()).observedGeneration).toBe(3)
  })

  test('waits for the last cluster, and is never lowered', () => {
    const waiting = input({
      loadBalancer: later,
      placements: [placement('a', { settledGeneration: 4 }), placement('b')],
      previous: served,
    })
    expect(fold(waiting).observedGeneration).toBe(3)
    const placements = ['a', 'b'].map((name) => placement(name, { settledGeneration: 4 }))
    const status = fold({ ...waiting, placements })
    expect(status.observedGeneration).toBe(4)
    expect(status.conditions.every((each) => each.observedGeneration === 4)).toBe(true)
  })

  test('follows at once a change that touches no rule', () => {
    const renamed = { ...loadBalancer, generation: 9 }
    expect(fold(input({ loadBalancer: renamed })).observedGeneration).toBe(9)
  })

  test('follows at once where there is no cluster to wait for', () => {
    expect(fold(input({ backends: [], placements: [] })).observedGeneration).toBe(3)
  })

  test('is 0 where the clusters are not known', () => {
    const status = fold(input({ placements: null }))
    expect([status.observedGeneration, status.phase]).toEqual([0, 'PENDING'])
  })

  test('is not lowered by health or an outage', () => {
    const given = input({ previous: served, placements: [placement('a', down)] })
    expect(fold(given).observedGeneration).toBe(3)
  })

  test('waits for a cluster that should let go', () => {
    const leaving = placement('b', { placed: false, settledGeneration: 3, report: null })
    const given = input({
      loadBalancer: later,
      placements: [placement('a', { settledGeneration: 4 }), leaving],
      previous: served,
    })
    expect(fold(given).observedGeneration).toBe(3)
    expect(says(fold(given), 'Provisioned')).toBe('FALSE Progressing')
    expect(fold(given).phase).toBe('ACTIVE')
  })
})

describe('conditions', () => {
  test('come in a fixed order, the last two only where they apply', () => {
    const always = [
      'Ready',
      'AddressesAllocated',
      'BackendsResolved',
      'Provisioned',
      'Advertised',
      'BackendsHealthy',
      'Reachable',
    ]
    expect(fold(input()).conditions.map(({ type }) => type)).toEqual(always)
    const all = fold(withIPv4({ loadBalancer: asking('CLIENT_IP') }))
    expect(all.conditions.map(({ type }) => type)).toEqual([
      ...always,
      'IPv4Served',
      'AffinityHonoured',
    ])
  })

  test('all hold where all is well', () => {
    expect(said(fold(input()))).toEqual({
      Ready: 'TRUE Serving',
      AddressesAllocated: 'TRUE Allocated',
      BackendsResolved: 'TRUE Resolved',
      Provisioned: 'TRUE InEffect',
      Advertised: 'TRUE Advertised',
      BackendsHealthy: 'TRUE Healthy',
      Reachable: 'TRUE NotProbed',
    })
  })

  test('move their time only when their status does', () => {
    const broken = fold({
      ...input({ now: LATER, previous: served }),
      placements: [placement('a', down)],
    })
    const since = Object.fromEntries(
      broken.conditions.map(({ type, lastTransitionTime }) => [type, lastTransitionTime]),
    )
    expect(since).toMatchObject({ Ready: LATER, AddressesAllocated: CREATED, Provisioned: LATER })
  })

  test('that hold since the creation say so at the first fold', () => {
    const status = fold(input({ placements: [placement('a', { ...unsettled, report: null })] }))
    expect(status).toEqual(fold(input({ placements: null, now: CREATED })))
  })

  test('an outage is told by its start, without the name of a cluster', () => {
    const placements = [placement('alpha'), placement('beta', down)]
    const status = fold(input({ placements }))
    const provisioned = status.conditions.find(({ type }) => type === 'Provisioned')
    expect(provisioned).toMatchObject({ status: 'UNKNOWN', reason: 'ClusterUnreachable' })
    expect(provisioned?.message).toContain("One of the region's 2 clusters")
    expect(provisioned?.message).toContain(CREATED)
    expect(JSON.stringify(status)).not.toMatch(/alpha|beta/)
  })

  test('Provisioned counts a report only for what it is about', () => {
    const status = fold(input({ placements: [placement('a', { asked: 6 })] }))
    expect(says(status, 'Provisioned')).toBe('FALSE Progressing')
    expect(status.vips[VIP]?.provisioned.reason).toBe('Progressing')
    expect(status.vips[VIP]?.advertised.status).toBe('TRUE')
  })

  test('what is not announced yet is on its way; once it was, it is a failure', () => {
    const at = (settledGeneration: number) =>
      says(
        fold(
          input({
            placements: [placement('a', { settledGeneration, report: failing('NotAdvertised') })],
          }),
        ),
        'Provisioned',
      )
    expect([at(2), at(3)]).toEqual(['FALSE Progressing', 'FALSE NotAdvertised'])
  })

  test('IPv4Served says where IPv4 is not served', () => {
    const vips = { [VIP]: vipReport(), [IPV4_VIP]: vipSaying('AddressFamilyNotServed', false) }
    const placements = [placement('a', { report: report({ vips }) })]
    const status = fold(withIPv4({ placements }))
    expect(says(status, 'IPv4Served')).toBe('FALSE AddressFamilyNotServed')
    expect(says(status, 'Advertised')).toBe('TRUE Advertised')
    expect(status.vips[IPV4_VIP]?.provisioned.reason).toBe('AddressFamilyNotServed')
  })

  test.each([
    ['all are healthy', [withHealth(1, 'HEALTHY')], 'TRUE Healthy'],
    [
      'nobody can look',
      [withHealth(1, 'NOT_CHECKED', 'NoProber'), withHealth(2, 'NOT_CHECKED', 'NoProber')],
      'TRUE NoProber',
    ],
    ['there is no check', [withHealth(1, 'NOT_CHECKED', 'NoHealthCheck')], 'TRUE NoHealthCheck'],
    ['one is new', [backend(1), withHealth(2, 'UNKNOWN', 'NotProbedYet')], 'UNKNOWN NotProbedYet'],
    ['one fails', [backend(1), withHealth(2, 'UNHEALTHY')], 'FALSE SomeUnhealthy'],
    ['one comes and goes', [backend(1), withHealth(2, 'UNHEALTHY', 'Flapping')], 'FALSE Flapping'],
    [
      'one fails and one comes and goes',
      [backend(1), withHealth(2, 'UNHEALTHY'), withHealth(3, 'UNHEALTHY', 'Flapping')],
      'FALSE SomeUnhealthy',
    ],
    ['all come and go', [withHealth(1, 'UNHEALTHY', 'Flapping')], 'FALSE FailOpen'],
    ['all fail', [withHealth(1, 'UNHEALTHY'), withHealth(2, 'UNHEALTHY')], 'FALSE FailOpen'],
    [
      'a disabled one fails',
      [backend(1), { ...withHealth(2, 'UNHEALTHY'), adminState: 'DISABLED' as const }],
      'TRUE Healthy',
    ],
  ])('BackendsHealthy where %s', (_, backends, expected) => {
    expect(says(fold(input({ backends })), 'BackendsHealthy')).toBe(expected)
  })

  test('below the minimum share it fails open', () => {
    const backends = [backend(1), withHealth(2, 'UNHEALTHY'), withHealth(3, 'UNHEALTHY')]
    const at = (minimumHealthyPercent: number) =>
      says(
        fold(input({ backends, loadBalancer: { ...loadBalancer, minimumHealthyPercent } })),
        'BackendsHealthy',
      )
    expect([at(33), at(34)]).toEqual(['FALSE SomeUnhealthy', 'FALSE FailOpen'])
  })

  test('a backend serves where some cluster says so', () => {
    const quiet = report({ backends: { 'backend-2': backendReport({ serving: false }) } })
    const placements = [placement('a'), placement('b', { report: quiet })]
    expect(fold(input({ placements })).backends['backend-2']?.serving).toBe(true)
    const only = [placement('b', { report: quiet })]
    expect(fold(input({ placements: only })).backends['backend-2']?.serving).toBe(false)
  })

  test('a backend kept out in one cluster is resolved by another', () => {
    const out = report({
      backends: {
        'backend-1': backendReport({ placed: found('FALSE', 'NodeConflict', 'Taken.') }),
      },
    })
    const placements = [placement('a', { report: out }), placement('b')]
    const resolved = (knownIn: string[]) =>
      fold(input({ placements, backends: [backend(1, { knownIn })] })).backends['backend-1']
        ?.resolved.reason
    expect([resolved(['a', 'b']), resolved(['a'])]).toEqual(['Resolved', 'NodeConflict'])
  })

  test('reachable is derived, and says so', () => {
    expect(fold(input()).vips[VIP]?.reachable).toMatchObject({
      status: 'TRUE',
      reason: 'NotProbed',
      lastTransitionTime: NOW,
    })
    const dead = [withHealth(1, 'UNHEALTHY')]
    expect(fold(input({ backends: dead })).vips[VIP]?.reachable.reason).toBe('AllUnhealthy')
  })
})
