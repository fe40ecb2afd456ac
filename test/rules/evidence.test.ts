import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { desired } from '../../src/rules/desired.ts'
import { judge } from '../../src/rules/evidence.ts'
import { gone, type Observed } from '../../src/rules/observed.ts'
import type { PlacementReport } from '../../src/rules/report.ts'
import { condition, first, inEffect, NOW, replaced, report, troubled } from './galactic.ts'
import {
  anyCapabilities,
  anyWanted,
  BACKENDS,
  backend,
  IPV4_VIP,
  ipv4Vip,
  SELECTOR,
  VIP,
  vip,
  wanted,
} from './wishes.ts'

const nothing: Observed = { rules: [], bindings: [], advertisements: [], gateways: [] }

const provisioned = ({ vips }: PlacementReport, address = VIP) => vips[address]?.provisioned
const advertised = ({ vips }: PlacementReport, address = VIP) => vips[address]?.advertised
const serving = ({ backends }: PlacementReport) =>
  Object.values(backends).map((each) => each.serving)

describe('in effect', () => {
  test('whatever is wanted, it is where the data plane has done all of it', () => {
    fc.assert(
      fc.property(anyWanted, anyCapabilities, (want, can) => {
        const said = report(want, can)
        const waits = Object.values(said.vips).some(
          (each) => each.provisioned.reason === 'AddressHeldElsewhere',
        )
        expect(said.inEffect).toBe(!waits)
        const { backends } = desired(want, can)
        for (const [id, { listed }] of Object.entries(backends))
          expect(said.backends[id]?.serving ?? false).toBe(listed)
      }),
      { numRuns: 300 },
    )
  })

  test('it is though Accepted is of an older generation', () => {
    const said = report(wanted(), BACKENDS)
    expect(said).toMatchObject({ asked: 7, generation: 3, inEffect: true })
    expect(provisioned(said)).toMatchObject({ status: 'TRUE', reason: 'InEffect' })
    expect(serving(said)).toEqual([true, true])
  })

  test('a report is the same however often it is made', () => {
    const late = judge(wanted(), desired(wanted(), BACKENDS), nothing, '2027-01-01T00:00:00.000Z')
    expect(late).toEqual(judge(wanted(), desired(wanted(), BACKENDS), nothing, NOW))
  })

  test('where it is not placed and nothing is left, it is', () => {
    const want = wanted({ placed: false })
    const said = judge(want, desired(want, BACKENDS), nothing, NOW)
    expect(said.inEffect).toBe(true)
    expect(said.vips[VIP]).toMatchObject({ wanted: false, provisioned: { reason: 'Withdrawn' } })
  })

  test('where no backend can serve, it is once the rule is gone', () => {
    const want = wanted({ backends: [backend(1, { adminState: 'DISABLED' })] })
    expect(judge(want, desired(want, BACKENDS), nothing, NOW).inEffect).toBe(true)
    const before = inEffect(desired(wanted({ backends: [backend(1)] }), BACKENDS))
    expect(judge(want, desired(want, BACKENDS), before, NOW).inEffect).toBe(false)
  })

  test('a backend that is taken out is seen serving until its cluster has let go of it', () => {
    const before = inEffect(desired(wanted(), BACKENDS))
    const out = { adminState: 'STANDBY' } as const
    const want = wanted({ backends: [backend(1, out), backend(2, out)] })
    const said = judge(want, desired(want, BACKENDS), before, NOW)
    expect(said.inEffect).toBe(false)
    expect(serving(said)).toEqual([true, true])

    const unbound = { ...before, bindings: before.bindings.slice(1) }
    expect(serving(judge(want, desired(want, BACKENDS), unbound, NOW))).toEqual([false, true])
    const unannounced = { ...before, advertisements: [] }
    expect(serving(judge(want, desired(want, BACKENDS), unannounced, NOW))).toEqual([false, false])
    const rules = before.rules.map((rule) => ({
      ...rule,
      metadata: { ...rule.metadata, deletionTimestamp: NOW },
    }))
    expect(serving(judge(want, desired(want, BACKENDS), { ...before, rules }, NOW))).toEqual([
      false,
      false,
    ])
  })

  test('an IPv4 address that cannot be served keeps nothing from being so', () => {
    const said = report(wanted({ vips: [vip(), ipv4Vip()] }), BACKENDS)
    expect(said.inEffect).toBe(true)
    expect(said.vips[IPV4_VIP]).toMatchObject({
      wanted: false,
      provisioned: { status: 'FALSE', reason: 'AddressFamilyNotServed' },
    })
  })
})

describe('evidence', () => {
  test('that a gateway has programmed this rule outweighs the state of its engine', () => {
    const said = report(wanted(), SELECTOR, (seen) => ({
      ...seen,
      gateways: [troubled('gw-1', 'EngineDegraded'), ...seen.gateways.slice(1)],
    }))
    expect(said.inEffect).toBe(true)
  })

  test('one gateway of two that announces makes it partly announced', () => {
    const said = report(wanted(), BACKENDS, (seen) => ({
      ...seen,
      advertisements: seen.advertisements.slice(1),
    }))
    expect(advertised(said)).toMatchObject({ status: 'FALSE', reason: 'PartlyAdvertised' })
    expect(serving(said)).toEqual([true, true])
  })

  test('no announcement anywhere means that nothing is served', () => {
    const said = report(wanted(), BACKENDS, (seen) => ({ ...seen, advertisements: [] }))
    expect(advertised(said)).toMatchObject({ status: 'FALSE', reason: 'NotAdvertised' })
    expect(serving(said)).toEqual([false, false])
  })

  test('while a change is on its way the old backends are seen serving', () => {
    const before = desired(wanted({ backends: [backend(1)] }), BACKENDS)
    const want = wanted({ generation: 4, rulesGeneration: 4, asked: 8 })
    const said = judge(want, desired(want, BACKENDS), inEffect(before), NOW)
    expect(said.inEffect).toBe(false)
    expect(serving(said)).toEqual([true, false])
    expect(advertised(said)?.status).toBe('TRUE')
  })

  test('a backend whose node an older load balancer holds is kept out, and the rest is in effect', () => {
    const said = report(wanted(), SELECTOR, (seen) => {
      replaced(
        first(seen.rules),
        condition('worker-1/BackendsBound', 'False', 'BackendsClaimed', 3),
      )
      return undefined
    })
    expect(said.inEffect).toBe(true)
    expect(Object.values(said.backends).map(({ placed }) => placed.reason)).toEqual([
      'BackendsClaimed',
      'Resolved',
    ])
    expect(serving(said)).toEqual([false, true])
  })

  test('a rule that waits long for its removal is told with its start', () => {
    const want = wanted({ placed: false })
    const seen = inEffect(desired(wanted(), BACKENDS))
    first(seen.rules).metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    const said = (now: string) => judge(want, desired(want, BACKENDS), seen, now)
    expect(provisioned(said('2026-01-01T00:00:30.000Z'))?.reason).toBe('Withdrawing')
    const stuck = provisioned(said(NOW))
    expect(stuck).toMatchObject({ status: 'FALSE', reason: 'TeardownStuck' })
    expect(stuck?.message).toContain('2026-01-01T00:00:00Z')
    expect(said('2026-01-02T00:00:00.000Z')).toEqual(said(NOW))
  })

  test('an address that is no longer wanted is reported while any trace of it is left', () => {
    const before = inEffect(
      desired(wanted({ vips: [vip(), ipv4Vip()] }), { ...BACKENDS, servesIPv4: true }),
    )
    const want = wanted()
    const wish = desired(want, BACKENDS)
    const traces: Observed[] = [
      { ...inEffect(wish), rules: before.rules },
      { ...inEffect(wish), bindings: before.bindings },
      { ...inEffect(wish), advertisements: before.advertisements },
    ]
    for (const seen of traces) {
      const said = judge(want, wish, seen, NOW)
      expect(said.inEffect).toBe(false)
      expect(said.vips[IPV4_VIP]).toMatchObject({
        wanted: false,
        provisioned: { reason: 'Withdrawing' },
      })
    }
    expect(judge(want, wish, inEffect(wish), NOW).vips).not.toHaveProperty(IPV4_VIP)
  })

  test('an address that another still holds is waited for', () => {
    const said = report(wanted({ vips: [vip(), ipv4Vip({ heldBy: 'another' })] }), {
      ...BACKENDS,
      servesIPv4: true,
    })
    expect(said.inEffect).toBe(false)
    expect(said.vips[IPV4_VIP]).toMatchObject({
      wanted: true,
      applied: { reason: 'AddressHeldElsewhere' },
    })
  })

  test('a cluster newer than the store says so', () => {
    const said = report(wanted({ rulesGeneration: 1 }), BACKENDS, () =>
      inEffect(desired(wanted(), BACKENDS)),
    )
    expect(said).toMatchObject({ inEffect: false, cluster: { reason: 'StoreBehind' } })
  })

  test('a cluster without the schema says so', () => {
    const said = report(wanted(), { ...BACKENDS, dialect: undefined })
    expect(said).toMatchObject({ inEffect: false, cluster: { reason: 'SchemaMissing' } })
  })
})

describe('gone', () => {
  const wish = desired(wanted(), BACKENDS)
  const rule = first(wish.rules).metadata.name
  const seen = inEffect(wish)

  test('it is when rule, announcements and bindings are', () => {
    expect(gone(VIP, rule, { ...nothing, gateways: seen.gateways })).toBe(true)
  })

  test.each([
    ['the rule', { rules: seen.rules }],
    ['an announcement with its label', { advertisements: seen.advertisements }],
    ['a binding', { bindings: seen.bindings }],
    [
      'an announcement of its prefix in another spelling',
      {
        advertisements: seen.advertisements.map((each) => ({
          ...each,
          metadata: { ...each.metadata, labels: {} },
          spec: { ...each.spec, prefixes: ['2001:DB8:100:0:0::1/128'] },
        })),
      },
    ],
  ])('it is not while %s is left', (_, left) => {
    expect(gone(VIP, rule, { ...nothing, ...left })).toBe(false)
  })

  test('announcements of others do not count', () => {
    const others = seen.advertisements.map((each) => ({
      ...each,
      metadata: { ...each.metadata, labels: { 'galactic.datum.net/network-rule': 'another' } },
      spec: { ...each.spec, prefixes: ['2001:db8:100::/64', '2001:db8:100::2/128'] },
    }))
    expect(gone(VIP, rule, { ...nothing, advertisements: others })).toBe(true)
  })
})
