import { expect, it } from 'vitest'
import { Repairs } from '../../src/workers/repairs.ts'

it('what others change again and again is repaired at once a few times, then ever less often', () => {
  let now = 0
  const repairs = new Repairs(() => now)
  const rests = Array.from({ length: 13 }, () => {
    const rest = repairs.rest('a', true)
    // It is looked at before that, too, and left.
    if (rest > 1) expect(repairs.rest('a', false)).toBe(rest)
    now += rest
    if (rest > 0) expect(repairs.rest('a', false)).toBe(0)
    return rest
  })
  expect(rests).toEqual([0, 0, 0, 0, 0, 250, 500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000])
  expect(repairs.rest('b', true)).toBe(0)
})

it('what is left alone for a while is repaired at once again', () => {
  let now = 0
  const repairs = new Repairs(() => now)
  for (let times = 0; times < 5; times += 1) expect(repairs.rest('a', true)).toBe(0)
  expect(repairs.rest('a', true)).toBe(250)
  now += 20_000
  expect(repairs.rest('a', true)).toBe(0)
})

it('what is on its way is never left', () => {
  const repairs = new Repairs(() => 0)
  for (let times = 0; times < 5; times += 1) repairs.rest('a', true)
  for (let times = 0; times < 9; times += 1) expect(repairs.rest('a', false)).toBe(0)
})
