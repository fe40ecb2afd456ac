import { describe, expect, it } from 'vitest'
import { fold } from '../../src/domain/fold.ts'
import type { VantageProbe } from '../../src/domain/folding/probes.ts'
import { failing, IPV4_VIP, input, NOW, placement, says, VIP, withIPv4 } from './folding.ts'

const ago = (seconds: number) => new Date(Date.parse(NOW) - 1_000 * seconds).toISOString()
const probe = (reachable: boolean, change: Partial<VantageProbe> = {}): VantageProbe => ({
  vantage: 'oslo',
  address: VIP,
  reachable,
  message: null,
  at: ago(5),
  ...change,
})
const through = probe(true)
const fails = probe(false)
const idle = input({ backends: [], placements: [] })
const lost = input({ placements: [placement('a', { unreachableSince: ago(60) })] })

describe('Reachable', () => {
  it.each([
    ['nobody looks', input(), [], 'TRUE NotProbed'],
    ['a connection comes through', input(), [through], 'TRUE Probed'],
    ['a connection fails though all looks well', input(), [fails], 'FALSE ProbeFailed'],
    ['a connection comes through though the cluster is lost', lost, [through], 'TRUE Probed'],
    ['a connection fails and the cluster is lost', lost, [fails], 'FALSE ProbeFailed'],
    ['a connection fails, and it is known why', idle, [fails], 'FALSE NoBackends'],
    [
      'two vantage points disagree',
      input(),
      [through, probe(false, { vantage: 'lima' })],
      'UNKNOWN VantagesDisagree',
    ],
    ['what was found is a minute old', input(), [probe(false, { at: ago(60) })], 'TRUE NotProbed'],
    [
      'what was found is nearly a minute old',
      input(),
      [probe(false, { at: ago(59) })],
      'FALSE ProbeFailed',
    ],
    [
      'one of two vantage points has gone silent',
      input(),
      [through, probe(false, { vantage: 'lima', at: ago(61) })],
      'TRUE Probed',
    ],
    [
      'another address was tried',
      input(),
      [probe(false, { address: '2001:db8::99' })],
      'TRUE NotProbed',
    ],
    [
      'no cluster serves it',
      input({ placements: [placement('a', { report: failing('NotAdvertised') })] }),
      [],
      'FALSE NotAdvertised',
    ],
  ] as const)('where %s', (_, before, probes, expected) => {
    expect(says(fold({ ...before, probes: [...probes] }), 'Reachable')).toBe(expected)
  })

  it('is told of each address by itself', () => {
    const both = withIPv4({ probes: [through, probe(false, { address: IPV4_VIP })] })
    const { vips } = fold(both)
    expect(vips[VIP]?.reachable).toMatchObject({ status: 'TRUE', reason: 'Probed' })
    expect(vips[IPV4_VIP]?.reachable.status).toBe('FALSE')
  })

  it('leaves readiness alone: that is about what is in effect', () => {
    expect(says(fold(input({ probes: [fails] })), 'Ready')).toBe('TRUE Serving')
  })
})
