import { afterAll, expect, it } from 'vitest'
import { BENCHMARKS } from '../../bench/all.ts'
import { lineOf, TINY } from '../../bench/benchmark.ts'
import { Ground } from '../../bench/ground.ts'

/** One of each kind, of those that need seconds only. */
const SOME = ['create', 'read-one', 'fan-out', 'probing']
const ground = new Ground()
afterAll(() => ground.close())

it.for(SOME)(
  'the benchmark %s starts and finds figures, however small it is',
  { timeout: 60_000 },
  async (name) => {
    const findings = await BENCHMARKS[name]?.(ground, TINY)
    expect(findings?.length).toBeGreaterThan(0)
    for (const finding of findings ?? []) {
      expect(Number.isFinite(finding.value), lineOf(finding)).toBe(true)
    }
  },
)

it('a finding says whether its target is met', () => {
  expect(lineOf({ name: 'one', value: 0.5, atLeast: 0.5 })).toMatch(
    /0\.50 {2}target ≥ 0\.5 {2}met$/,
  )
  expect(lineOf({ name: 'two', value: 51, unit: ' ms', atMost: 50 })).toMatch(/51 ms .*MISSED$/)
})
