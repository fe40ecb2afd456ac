import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type History, judge, unprobed } from '../../src/domain/health/judge.ts'

const MINUTE = 60_000
const EPOCH = Date.UTC(2026, 0, 1)
const once = { rise: 1, fall: 1 }

type Step = { at: number; ok: boolean; believed?: boolean }

/** Judges probes at some minutes; one success or failure is enough. */
function judged(steps: Step[]): History[] {
  const histories: History[] = []
  let history = unprobed(0)
  for (const { at, ok, believed = true } of steps) {
    const about = { change: 0, at: EPOCH + at * MINUTE }
    const result = ok
      ? { ok: true as const, ...about }
      : { ok: false as const, message: 'No.', ...about }
    history = judge(once, history, result, believed)
    histories.push(history)
  }
  return histories
}

/** Healthy, and then down and up again at each of these minutes. */
const cycles = (...minutes: number[]): Step[] => [
  { at: -10, ok: true },
  ...minutes.flatMap((at) => [
    { at, ok: false },
    { at: at + 0.4, ok: true },
  ]),
]
const lastOf = (steps: Step[]) => judged(steps).at(-1)
const held = (steps: Step[]) =>
  judged(steps).flatMap(({ flaps: { heldUntil } }, index, all) =>
    heldUntil === null || heldUntil === all[index - 1]?.flaps.heldUntil
      ? []
      : [(heldUntil - EPOCH) / MINUTE - (steps[index]?.at ?? 0)],
  )

describe('a backend that comes and goes', () => {
  test.each([
    ['three times in five minutes is let back each time', [0, 1, 2], 'HEALTHY', 'Healthy'],
    ['a fourth time in five minutes is held out', [0, 1, 2, 3], 'UNHEALTHY', 'Flapping'],
    ['a fourth time just within them', [0, 1, 2, 4.9], 'UNHEALTHY', 'Flapping'],
    ['a fourth time after them', [0, 1, 2, 5], 'HEALTHY', 'Healthy'],
    ['every other minute', [0, 2, 4, 6, 8, 10, 12], 'HEALTHY', 'Healthy'],
  ])('%s', (_, minutes, state, reason) => {
    expect(lastOf(cycles(...minutes))).toMatchObject({ state, reason })
  })

  test('says until when, and what the last probe met', () => {
    expect(lastOf([...cycles(0, 1, 2), { at: 3, ok: false }])?.message).toBe(
      'No. It came and went too often, so it is held out until 2026-01-01T00:04:00.000Z.',
    )
  })

  test('is let back by itself, by the first good probe after its time', () => {
    const [before, after] = judged([
      ...cycles(0, 1, 2, 3),
      { at: 3.99, ok: true },
      { at: 4, ok: true },
    ]).slice(-2)
    expect(before).toMatchObject({ state: 'UNHEALTHY', reason: 'Flapping' })
    expect(after).toMatchObject({
      state: 'HEALTHY',
      reason: 'Healthy',
      message: expect.any(String),
    })
  })

  test('and fails still when its time is over is no more than unhealthy, and says why', () => {
    const failing = [3.5, 4].map((at) => ({ at, ok: false }))
    const [before, after] = judged([...cycles(0, 1, 2), { at: 3, ok: false }, ...failing]).slice(-2)
    expect(before?.reason).toBe('Flapping')
    expect(after).toMatchObject({ state: 'UNHEALTHY', reason: 'Unhealthy', message: 'No.' })
  })

  test('is held out longer each time it goes on so, up to half an hour', () => {
    const minutes = [0, 1, 2, 3]
    for (const hold of [1, 2, 4, 8, 16, 30, 30]) minutes.push((minutes.at(-1) ?? 0) + hold + 0.1)
    const steps = [{ at: -10, ok: true }]
    for (const at of minutes) steps.push({ at: at - 0.05, ok: true }, { at, ok: false })
    expect(held(steps).map((hold) => Math.round(hold))).toEqual([1, 2, 4, 8, 16, 30, 30, 30])
  })

  test('begins with the shortest hold again after five steady minutes', () => {
    const steady = { at: 5, ok: true }
    const steps = [...cycles(0, 1, 2, 3), steady, ...cycles(10, 11, 12, 13).slice(1)]
    expect(held(steps).map((hold) => Math.round(hold))).toEqual([1, 1])
  })

  test('does not count what it did before it was ever healthy, nor what nobody believes', () => {
    const never = [0, 1, 2, 3, 4].map((at) => ({ at, ok: false }))
    expect(lastOf(never)).toMatchObject({ reason: 'Unhealthy', flaps: { turns: [] } })
    const doubted = cycles(0, 1, 2, 3).map((step) => ({ ...step, believed: false }))
    expect(lastOf(doubted)).toMatchObject({ state: 'HEALTHY', flaps: { turns: [] } })
  })
})

describe('whatever the probes say', () => {
  const steps = fc
    .array(fc.record({ after: fc.double({ min: 0.01, max: 3, noNaN: true }), ok: fc.boolean() }), {
      maxLength: 120,
    })
    .map((all) => {
      let at = 0
      return all.map(({ after, ok }) => {
        at += after
        return { at, ok }
      })
    })

  test('no backend turns unhealthy more than six times in any five minutes', () => {
    fc.assert(
      fc.property(steps, (all) => {
        const turned = judged(all).flatMap(({ state }, index, histories) =>
          state === 'UNHEALTHY' && histories[index - 1]?.state === 'HEALTHY'
            ? [all[index]?.at ?? 0]
            : [],
        )
        for (const [index, at] of turned.entries()) {
          expect(turned.slice(index).filter((other) => other < at + 5).length).toBeLessThan(7)
        }
      }),
    )
  })

  test('one that is held out is unhealthy, is let back by a later success, and remembers little', () => {
    fc.assert(
      fc.property(steps, (all) => {
        for (const [index, history] of judged(all).entries()) {
          const { heldUntil, turns } = history.flaps
          const at = EPOCH + (all[index]?.at ?? 0) * MINUTE
          if (heldUntil !== null && at < heldUntil) expect(history.state).toBe('UNHEALTHY')
          else expect(history.state === 'HEALTHY').toBe(all[index]?.ok === true)
          expect((heldUntil ?? at) - at).toBeLessThanOrEqual(30 * MINUTE)
          expect(turns.length).toBeLessThanOrEqual(4)
        }
      }),
    )
  })
})
