import { describe, expect, test } from 'vitest'
import { type FoldInput, fold } from '../../src/domain/fold.ts'
import type { Phase } from '../../src/domain/status.ts'
import { found } from '../../src/rules/findings.ts'
import type { SessionAffinity } from '../../src/rules/wanted.ts'
import {
  backend,
  backendReport,
  CREATED,
  doubtful,
  failing,
  IPV4_VIP,
  input,
  LATER,
  placement,
  report,
  says,
  VIP,
  vipReport,
  vipSaying,
  withHealth,
  withIPv4,
} from './folding.ts'

type Row = [what: string, given: FoldInput, phase: Phase, ready: string]

const { loadBalancer } = input()
const served = fold(input())
const asking = (affinity: SessionAffinity) => ({ ...loadBalancer, sessionAffinity: affinity })
const unsettled = { settledGeneration: 0 }
const down = { unreachableSince: CREATED }

const rows: Row[] = [
  [
    'nothing is settled and nothing reported',
    input({ placements: [placement('a', { ...unsettled, report: null })] }),
    'PENDING',
    'FALSE Progressing',
  ],
  [
    'nothing is settled yet and the first thing is in the way',
    input({ placements: [placement('a', { ...unsettled, report: failing('NoGateway') })] }),
    'PENDING',
    'FALSE NoGateway',
  ],
  [
    'nothing is settled yet and the cluster does not answer',
    input({ placements: [placement('a', { ...unsettled, ...down, report: null })] }),
    'PENDING',
    'FALSE ClusterUnreachable',
  ],
  ['it is settled and healthy everywhere', input(), 'ACTIVE', 'TRUE Serving'],
  [
    'a later change is on its way',
    input({
      loadBalancer: { ...loadBalancer, generation: 4, rulesGeneration: 4 },
      placements: [placement('a', { asked: 6 }), placement('b', { settledGeneration: 4 })],
      previous: served,
    }),
    'ACTIVE',
    'TRUE Serving',
  ],
  [
    'a backend is unhealthy',
    input({ backends: [backend(1), withHealth(2, 'UNHEALTHY')] }),
    'DEGRADED',
    'TRUE Serving',
  ],
  [
    'a backend is not known',
    input({ backends: [backend(1), backend(2, { knownIn: [] })] }),
    'DEGRADED',
    'TRUE Serving',
  ],
  [
    'a backend is kept out by an older one on its node',
    input({
      backends: [backend(1), backend(2, { knownIn: ['a'] })],
      placements: [
        placement('a', {
          report: report({
            backends: {
              'backend-1': backendReport(),
              'backend-2': backendReport({
                serving: false,
                placed: found('FALSE', 'NodeConflict', 'Taken.'),
              }),
            },
          }),
        }),
      ],
    }),
    'DEGRADED',
    'TRUE Serving',
  ],
  [
    'a backend lives in a cordoned cluster',
    input({ backends: [backend(1), backend(2, { knownIn: ['c'], cordonedIn: ['c'] })] }),
    'DEGRADED',
    'TRUE Serving',
  ],
  [
    'all backends are unhealthy, so all serve',
    input({ backends: [withHealth(1, 'UNHEALTHY'), withHealth(2, 'UNHEALTHY')] }),
    'DEGRADED',
    'TRUE Serving',
  ],
  [
    'one of several clusters does not answer',
    input({ placements: [placement('a'), placement('b', down)] }),
    'DEGRADED',
    'TRUE Serving',
  ],
  [
    'one of several clusters is in doubt',
    input({ placements: [placement('a'), placement('b', { report: doubtful() })] }),
    'DEGRADED',
    'TRUE Serving',
  ],
  [
    'one of several clusters has failed',
    input({ placements: [placement('a'), placement('b', { report: failing('NotAdvertised') })] }),
    'DEGRADED',
    'TRUE Serving',
  ],
  [
    'IPv4 is not served while IPv6 is',
    withIPv4({
      placements: [
        placement('a', {
          report: report({
            vips: {
              [VIP]: vipReport(),
              [IPV4_VIP]: vipSaying('AddressFamilyNotServed', false),
            },
          }),
        }),
      ],
    }),
    'ACTIVE',
    'TRUE Serving',
  ],
  [
    'an IPv4 backend is left out where IPv4 is not served',
    input({
      backends: [backend(1), backend(2, { knownIn: ['a'] })],
      placements: [
        placement('a', {
          report: report({
            backends: {
              'backend-1': backendReport(),
              'backend-2': backendReport({
                serving: false,
                placed: found('FALSE', 'AddressFamilyNotServed', 'IPv4.'),
              }),
            },
          }),
        }),
      ],
    }),
    'ACTIVE',
    'TRUE Serving',
  ],
  [
    'the affinity cannot be kept',
    input({
      loadBalancer: asking('CLIENT_IP'),
      placements: [
        placement('a', {
          report: report({ affinity: found('FALSE', 'AffinityNotSupported', 'No field.') }),
        }),
      ],
    }),
    'ACTIVE',
    'TRUE Serving',
  ],
  [
    'no backend is enabled',
    input({ backends: [backend(1, { adminState: 'DISABLED' })], placements: [] }),
    'IDLE',
    'FALSE NoBackends',
  ],
  ['there is no backend', input({ backends: [], placements: [] }), 'IDLE', 'FALSE NoBackends'],
  [
    'no enabled backend is known, before it ever served',
    input({ backends: [backend(1, { knownIn: [] })], placements: [] }),
    'PENDING',
    'FALSE AddressUnknown',
  ],
  [
    'no enabled backend is known any more',
    input({ backends: [backend(1, { knownIn: [] })], placements: [], previous: served }),
    'DEGRADED',
    'FALSE AddressUnknown',
  ],
  [
    'every cluster reported and said no',
    input({
      placements: [
        placement('a', { report: failing('NotAdvertised') }),
        placement('b', { report: failing('NoGateway') }),
      ],
    }),
    'FAILED',
    'FALSE NotAdvertised',
  ],
  [
    'no cluster serves it, but one does not answer',
    input({
      placements: [placement('a', { report: failing('NotAdvertised') }), placement('b', down)],
    }),
    'DEGRADED',
    'UNKNOWN ClusterUnreachable',
  ],
  [
    'the only cluster does not answer',
    input({ placements: [placement('a', down)] }),
    'DEGRADED',
    'UNKNOWN ClusterUnreachable',
  ],
  [
    'the only gateway is degraded',
    input({ placements: [placement('a', { report: doubtful() })] }),
    'DEGRADED',
    'UNKNOWN EngineDegraded',
  ],
  [
    'its first backend was just added',
    input({
      loadBalancer: { ...loadBalancer, generation: 4, rulesGeneration: 4 },
      placements: [placement('a', { ...unsettled, report: null })],
      previous: fold(input({ backends: [], placements: [] })),
    }),
    'PENDING',
    'FALSE Progressing',
  ],
  [
    'deletion was asked',
    input({ loadBalancer: { ...loadBalancer, deleting: true } }),
    'DELETING',
    'FALSE Deleting',
  ],
  [
    'an IPv4 address was just bound',
    withIPv4({
      loadBalancer: { ...loadBalancer, generation: 4, rulesGeneration: 4 },
      placements: [
        placement('a', {
          report: report({
            inEffect: false,
            vips: { [VIP]: vipReport(), [IPV4_VIP]: vipSaying('Progressing') },
          }),
        }),
      ],
      previous: served,
    }),
    'ACTIVE',
    'TRUE Serving',
  ],
  [
    'an address that was served no longer is, though another one is',
    withIPv4({
      placements: [
        placement('a', {
          report: report({
            inEffect: false,
            vips: { [VIP]: vipReport(), [IPV4_VIP]: vipSaying('NotAdvertised') },
          }),
        }),
      ],
      previous: served,
    }),
    'DEGRADED',
    'FALSE NotAdvertised',
  ],
  [
    'nothing serves one address and another one was just bound',
    withIPv4({
      placements: [
        placement('a', {
          report: report({
            inEffect: false,
            vips: { [VIP]: vipSaying('NotAdvertised'), [IPV4_VIP]: vipSaying('Progressing') },
          }),
        }),
      ],
      previous: served,
    }),
    'DEGRADED',
    'FALSE NotAdvertised',
  ],
]

describe('phase and readiness where', () => {
  test.each(rows)('%s', (_, given, phase, ready) => {
    const status = fold(given)
    expect([status.phase, says(status, 'Ready')]).toEqual([phase, ready])
    expect(fold({ ...given, previous: status, now: LATER })).toEqual(status)
  })
})
