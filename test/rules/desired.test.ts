import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isIPv4 } from '../../src/rules/addresses.ts'
import { desired } from '../../src/rules/desired.ts'
import type { Capabilities, Wanted } from '../../src/rules/wanted.ts'
import {
  anyCapabilities,
  anyWanted,
  BACKENDS,
  backend,
  endpoint,
  IPV4_VIP,
  ipv4Vip,
  LOAD_BALANCER,
  SELECTOR,
  VIP,
  vip,
  wanted,
} from './wishes.ts'

const DNS_LABEL = /^[a-z]([a-z0-9-]*[a-z0-9])?$/

const listed = (want: Wanted, can: Capabilities): string[] =>
  desired(want, can).rules.flatMap(({ spec }) =>
    'backends' in spec ? spec.backends.map(({ address }) => address) : [],
  )

const placedReasons = (want: Wanted, can: Capabilities): string[] =>
  Object.values(desired(want, can).backends).map(({ placed }) => placed.reason)

describe('desired', () => {
  test('a rule of the backends dialect lists all that serve, and each has a binding', () => {
    const { rules, bindings } = desired(wanted(), BACKENDS)
    expect(rules).toEqual([
      {
        apiVersion: 'network.datumapis.com/v1alpha1',
        kind: 'NetworkRule',
        metadata: {
          name: expect.stringMatching(/^lb-0190a1b2c3d47e5f8a9b0c1d2e3f4a5b-[0-9a-f]{12}$/),
          namespace: 'galactic-system',
          labels: {
            'app.kubernetes.io/managed-by': 'network-load-balancers',
            'lb.networking.datumapis.com/instance': 'instance-1',
            'lb.networking.datumapis.com/load-balancer': LOAD_BALANCER,
          },
          annotations: { 'lb.networking.datumapis.com/generation': '2' },
        },
        spec: {
          vpcRef: '60',
          vpcAttachmentRef: 'a1',
          vipAddresses: [VIP],
          protocol: 'tcp',
          port: 80,
          backends: [
            { address: 'fd20:60::1', port: 80 },
            { address: 'fd20:60::2', port: 80 },
          ],
        },
      },
    ])
    expect(bindings.map(({ spec }) => spec)).toEqual(
      [1, 2].map((number) => ({
        targetRef: { kind: 'Node', name: `worker-${number}` },
        vipAddress: VIP,
        port: 80,
        protocol: 'tcp',
        backendAddress: `fd20:60::${number}`,
        backendPort: 80,
        egressKind: 'veth',
      })),
    )
  })

  test('a rule of the selector dialect selects labelled attachments, and we bind nothing', () => {
    const { rules, bindings, labels } = desired(wanted(), SELECTOR)
    expect(rules.map(({ spec }) => spec)).toEqual([
      {
        vpcRef: '60',
        vipAddresses: [VIP],
        protocol: 'tcp',
        port: 80,
        backendPort: 80,
        backendSelector: {
          matchLabels: { [`lb.networking.datumapis.com/${LOAD_BALANCER}`]: 'serving' },
        },
      },
    ])
    expect(bindings).toEqual([])
    expect(labels.map(({ name }) => name)).toEqual(['web-1', 'web-2'])
  })

  test('nothing is wanted where it is not placed', () => {
    const { rules, bindings, vips } = desired(wanted({ placed: false }), BACKENDS)
    expect([rules, bindings]).toEqual([[], []])
    expect(vips[VIP]).toMatchObject({ wanted: false, finding: { reason: 'Withdrawing' } })
  })

  test.each([
    ['disabled', { adminState: 'DISABLED' }, 'Disabled'],
    ['on standby', { adminState: 'STANDBY' }, 'Standby'],
    ['unhealthy', { unhealthy: true }, 'Unhealthy'],
    ['not known here', { endpoint: null }, 'AddressUnknown'],
    ['of a taken node', { nodeTaken: true }, 'NodeConflict'],
    ['new in a cordoned cluster', { cordoned: true }, 'ClusterCordoned'],
    ['of a family not served', { address: '10.0.0.5' }, 'AddressFamilyNotServed'],
  ] as const)('a backend that is %s is left out', (_, change, reason) => {
    const want = wanted({ backends: [backend(1), backend(2, change)] })
    expect(listed(want, BACKENDS)).toEqual(['fd20:60::1'])
    expect(placedReasons(want, BACKENDS)).toEqual(['Resolved', reason])
  })

  test('without a backend left there is no rule', () => {
    const { rules, vips } = desired(
      wanted({ backends: [backend(1, { endpoint: null })] }),
      BACKENDS,
    )
    expect(rules).toEqual([])
    expect(vips[VIP]?.finding.reason).toBe('NoBackends')
  })

  test('of two backends on one node the oldest that can serve does', () => {
    const pair = [
      backend(1, { endpoint: endpoint(1, 'n') }),
      backend(2, { endpoint: endpoint(2, 'n') }),
    ]
    expect(listed(wanted({ backends: pair }), BACKENDS)).toEqual(['fd20:60::1'])
    expect(placedReasons(wanted({ backends: pair }), BACKENDS)[1]).toBe('NodeConflict')
    const without = pair.map((each, index) => ({ ...each, unhealthy: index === 0 }))
    expect(listed(wanted({ backends: without }), BACKENDS)).toEqual(['fd20:60::2'])
    expect(placedReasons(wanted({ backends: pair }), SELECTOR)).toEqual(['Resolved', 'Resolved'])
  })

  test('an interface serves with all its backends or with none', () => {
    const shared = endpoint(1)
    const pair = [
      backend(1, { endpoint: shared }),
      backend(2, { endpoint: shared, adminState: 'DISABLED' }),
    ]
    expect(placedReasons(wanted({ backends: pair }), SELECTOR)).toEqual([
      'AttachmentShared',
      'Disabled',
    ])
  })

  test('an attachment that carries one more IPv6 address, which is no backend, serves with none', () => {
    const shared = { ...endpoint(1), otherAddresses: ['fd20:60::99'] }
    const other = backend(2)
    const alone = [backend(1, { endpoint: shared }), other]
    expect(placedReasons(wanted({ backends: alone }), SELECTOR)).toEqual([
      'AttachmentShared',
      'Resolved',
    ])
    expect(placedReasons(wanted({ backends: alone }), BACKENDS)).toEqual(['Resolved', 'Resolved'])
    const both = [...alone, backend(3, { address: 'fd20:60:0::99', endpoint: shared })]
    expect(placedReasons(wanted({ backends: both }), SELECTOR)).toEqual([
      'Resolved',
      'Resolved',
      'Resolved',
    ])
  })

  test('an address for which the gateways have no row left has no rule, and those that have one keep it', () => {
    const full = wanted({ vips: [vip(), ipv4Vip({ noRoom: true })] })
    const { rules, vips } = desired(full, { ...BACKENDS, servesIPv4: true })
    expect(rules).toHaveLength(1)
    expect(vips[IPV4_VIP]?.finding.reason).toBe('ClusterFull')
  })

  test('an IPv4 address has a rule only where IPv4 is served', () => {
    const want = wanted({ vips: [vip(), ipv4Vip()] })
    const without = desired(want, BACKENDS)
    expect(without.rules).toHaveLength(1)
    expect(without.vips[IPV4_VIP]?.finding.reason).toBe('AddressFamilyNotServed')
    const names = desired(want, { ...BACKENDS, servesIPv4: true }).rules.map(
      ({ metadata }) => metadata.name,
    )
    expect(new Set(names).size).toBe(2)
  })

  test('an address that another load balancer still holds has no rule', () => {
    const { rules, vips } = desired(wanted({ vips: [vip({ heldBy: 'another' })] }), BACKENDS)
    expect(rules).toEqual([])
    expect(vips[VIP]).toMatchObject({ wanted: false, finding: { reason: 'AddressHeldElsewhere' } })
  })

  test('affinity is written where the schema has it, and never silently dropped', () => {
    const want = wanted({ sessionAffinity: 'CLIENT_IP' })
    expect(desired(want, BACKENDS).affinity).toMatchObject({
      status: 'FALSE',
      reason: 'AffinityNotSupported',
    })
    expect(desired(want, BACKENDS).rules[0]?.spec).not.toHaveProperty('sessionAffinity')
    const able = desired(want, { ...BACKENDS, sessionAffinity: true })
    expect(able.affinity.status).toBe('TRUE')
    expect(able.rules[0]?.spec.sessionAffinity).toBe('ClientIP')
    expect(desired(wanted(), BACKENDS).affinity.status).toBe('TRUE')
  })

  test('without a known schema nothing is decided', () => {
    const { blocked, rules, vips } = desired(wanted(), { ...BACKENDS, dialect: undefined })
    expect(blocked?.reason).toBe('SchemaMissing')
    expect(rules).toEqual([])
    expect(vips[VIP]?.finding.reason).toBe('SchemaMissing')
  })

  test('the listed backends come in the order of their bytes, whatever their age', () => {
    const backends = [backend(0x10), backend(0x9), backend(0xa)]
    expect(listed(wanted({ backends }), BACKENDS)).toEqual([
      'fd20:60::9',
      'fd20:60::a',
      'fd20:60::10',
    ])
    expect(desired(wanted({ backends }), BACKENDS).rules[0]?.spec).toMatchObject({
      vpcAttachmentRef: 'a16',
    })
  })

  test('the data plane is never given what it chokes on', () => {
    fc.assert(
      fc.property(anyWanted, anyCapabilities, (want, can) => {
        const { rules, bindings, backends, vips } = desired(want, can)
        for (const { metadata, spec } of rules) {
          expect(metadata.name.length).toBeLessThanOrEqual(63)
          expect(metadata.name).toMatch(DNS_LABEL)
          expect(spec.vipAddresses).toHaveLength(1)
          if (!('backends' in spec)) continue
          const addresses = spec.backends.map(({ address }) => address)
          expect(addresses.length).toBeGreaterThan(0)
          expect(new Set(addresses).size).toBe(addresses.length)
          if (!can.servesIPv4) expect([...addresses, ...spec.vipAddresses].some(isIPv4)).toBe(false)
        }
        const rows = bindings.map(({ spec }) => `${spec.targetRef.name} ${spec.vipAddress}`)
        expect(new Set(rows).size).toBe(rows.length)
        const names = [...rules, ...bindings].map(({ metadata }) => metadata.name)
        expect(new Set(names).size).toBe(names.length)
        for (const { listed, placed, node } of Object.values(backends))
          if (listed) expect([placed.status, node === undefined]).toEqual(['TRUE', false])
        expect(rules).toHaveLength(Object.values(vips).filter(({ wanted }) => wanted).length)
      }),
      { numRuns: 400 },
    )
  })

  test('equal wishes give equal objects', () => {
    fc.assert(
      fc.property(anyWanted, anyCapabilities, (want, can) => {
        const again = desired(structuredClone(want), structuredClone(can))
        expect(JSON.stringify(again)).toBe(JSON.stringify(desired(want, can)))
      }),
    )
  })
})
