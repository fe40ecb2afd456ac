import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  canonical,
  canonicalPrefix,
  compareAddresses,
  hostPrefix,
} from '../../src/rules/addresses.ts'
import { bindingName, ruleName, servingLabel } from '../../src/rules/names.ts'
import { isReason, REASONS } from '../../src/rules/reasons.ts'

const anyIPv6 = fc.ipV6().filter((address) => !address.includes('.'))

describe('addresses', () => {
  test('of any spelling become one', () => {
    expect(canonical('2001:DB8:0:0::1')).toBe('2001:db8::1')
    expect(canonicalPrefix('2001:DB8:0::1/128')).toBe('2001:db8::1/128')
    expect(canonicalPrefix('203.0.113.7/32')).toBe(hostPrefix('203.0.113.7'))
    expect(canonical('not an address')).toBe('not an address')
  })

  test('keep their bytes however often they are spelt anew', () => {
    fc.assert(
      fc.property(anyIPv6, (address) => {
        expect(canonical(canonical(address))).toBe(canonical(address))
        expect(compareAddresses(address, canonical(address))).toBe(0)
        expect(hostPrefix(address.toUpperCase())).toBe(hostPrefix(address))
      }),
    )
  })

  test('have one order, by their bytes and not by their text', () => {
    const sorted = ['fd00::10', '10.0.0.9', 'fd00::9', '10.0.0.10'].toSorted(compareAddresses)
    expect(sorted).toEqual(['10.0.0.9', '10.0.0.10', 'fd00::9', 'fd00::10'])
    fc.assert(
      fc.property(anyIPv6, anyIPv6, (a, b) => {
        expect(Math.sign(compareAddresses(a, b))).toBe(-Math.sign(compareAddresses(b, a)) + 0)
      }),
    )
  })
})

describe('names', () => {
  test('fit where the data plane puts them, whatever the ids', () => {
    fc.assert(
      fc.property(fc.uuid(), anyIPv6, fc.domain(), (id, address, node) => {
        const rule = ruleName(id, address)
        expect(rule).toMatch(/^[a-z][a-z0-9-]{0,61}[a-z0-9]$/)
        const binding = bindingName(rule, address, node)
        expect(binding).toMatch(/^[a-z][a-z0-9-]{0,61}[a-z0-9]$/)
        expect(binding.startsWith(`${rule}-`)).toBe(true)
        expect(servingLabel(id).split('/')[1]?.length).toBeLessThanOrEqual(63)
      }),
    )
  })

  test('stay the same from release to release, since rules in clusters carry them', () => {
    const rule = ruleName('0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b', '2001:db8:100::1')
    expect(rule).toBe('lb-0190a1b2c3d47e5f8a9b0c1d2e3f4a5b-ca5dab1be18a')
    expect(bindingName(rule, 'fd20:60::5', 'n3')).toBe(`${rule}-20eca8b48f62`)
  })
})

describe('reasons', () => {
  test.each(Object.entries(REASONS))('%s has one line for people', (reason, line) => {
    expect(reason).toMatch(/^[A-Z][A-Za-z0-9]*$/)
    expect(line).toMatch(/^[A-Z][^\n]*\.$/)
    expect(isReason(reason)).toBe(true)
  })

  test('nothing else is one', () => {
    expect(['toString', '', 'inEffect'].some(isReason)).toBe(false)
  })
})
