import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type History, judge, unprobed } from '../../src/domain/health/judge.ts'

const REFUSED = 'connection refused by [2001:db8::1]:80'
const AT = { change: 0, at: 0 }

/** Judges letters in turn: S is a success, F a failure. */
function judging(
  letters: string,
  settings: { rise: number; fall: number },
  { from = unprobed(0), believed = true }: { from?: History; believed?: boolean } = {},
): History {
  return [...letters].reduce(
    (history, letter) =>
      judge(
        settings,
        history,
        letter === 'S' ? { ok: true, ...AT } : { ok: false, message: REFUSED, ...AT },
        believed,
      ),
    from,
  )
}

const standard = { rise: 2, fall: 3 }

describe('a backend', () => {
  test.each([
    ['', 'UNKNOWN', 'NotProbedYet'],
    ['S', 'UNKNOWN', 'NotProbedYet'],
    ['SS', 'HEALTHY', 'Healthy'],
    ['FF', 'UNKNOWN', 'NotProbedYet'],
    ['FFF', 'UNHEALTHY', 'Unhealthy'],
    ['FFSFF', 'UNKNOWN', 'NotProbedYet'],
    ['FFSFFF', 'UNHEALTHY', 'Unhealthy'],
    ['SSFF', 'HEALTHY', 'Healthy'],
    ['SSFFF', 'UNHEALTHY', 'Unhealthy'],
    ['FFFS', 'UNHEALTHY', 'Unhealthy'],
    ['FFFSFS', 'UNHEALTHY', 'Unhealthy'],
    ['FFFSS', 'HEALTHY', 'Healthy'],
  ])('after %j is %s', (letters, state, reason) => {
    expect(judging(letters, standard)).toMatchObject({ state, reason })
  })

  test('that turns unhealthy says why, in the words of the probe', () => {
    expect(judging('FFF', standard).message).toBe(REFUSED)
  })

  test('keeps state and streaks when the settings change', () => {
    const healthy = judging('SSF', { rise: 2, fall: 5 })
    expect(judging('F', { rise: 2, fall: 2 }, { from: healthy })).toMatchObject({
      state: 'UNHEALTHY',
      failures: 2,
    })
  })

  test('is not judged by a probe that began before its last change', () => {
    const changed = { ...judging('FF', standard), change: 1 }
    expect(judge(standard, changed, { ok: false, message: REFUSED, ...AT }, true)).toBe(changed)
  })

  test('is not made unhealthy by a prober that is not believed, and is once it is', () => {
    const doubted = judging('SSFFFF', standard, { believed: false })
    expect(doubted).toMatchObject({ state: 'UNKNOWN', reason: 'ProberDistrusted', failures: 4 })
    expect(judging('F', standard, { from: doubted }).state).toBe('UNHEALTHY')
    expect(judging('SS', standard, { from: doubted }).state).toBe('HEALTHY')
  })

  test('that is unhealthy stays so while the prober is not believed', () => {
    const down = judging('FFF', standard)
    expect(judging('F', standard, { from: down, believed: false }).state).toBe('UNHEALTHY')
  })

  test('is what the last full streak made it, whatever came before', () => {
    const bound = fc.integer({ min: 1, max: 10 })
    const letters = fc.string({ unit: fc.constantFrom('S', 'F'), maxLength: 60 })
    fc.assert(
      fc.property(letters, bound, bound, (results, rise, fall) => {
        const up = results.lastIndexOf('S'.repeat(rise))
        const down = results.lastIndexOf('F'.repeat(fall))
        const expected = up === down ? 'UNKNOWN' : up > down ? 'HEALTHY' : 'UNHEALTHY'
        const history = judging(results, { rise, fall })
        expect(history.state).toBe(expected)
        expect(history.successes).toBe(/S*$/.exec(results)?.[0].length)
        expect(history.failures).toBe(/F*$/.exec(results)?.[0].length)
      }),
    )
  })
})
