import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Wheel } from '../../../src/workers/probe/wheel.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function turning() {
  const from = performance.now()
  const seen: [string, number][] = []
  const wheel = new Wheel<string>((item) => seen.push([item, performance.now() - from]))
  return { wheel, seen }
}

test('each comes once, when it is due, to a hundredth of a second', () => {
  const { wheel, seen } = turning()
  const due = { now: 0, soon: 14, later: 333, 'a minute on': 60_000 }
  for (const [item, milliseconds] of Object.entries(due)) wheel.set(item, milliseconds)
  vi.advanceTimersByTime(120_000)
  expect(seen.map(([item]) => item)).toEqual(Object.keys(due))
  for (const [item, at] of seen) {
    expect(Math.abs(at - due[item as keyof typeof due])).toBeLessThanOrEqual(10)
  }
})

test('what was said last of one counts, and what is taken back never comes', () => {
  const { wheel, seen } = turning()
  wheel.set('moved', 50)
  wheel.set('moved', 500)
  wheel.set('taken back', 100)
  wheel.delete('taken back')
  vi.advanceTimersByTime(10_000)
  expect(seen).toEqual([['moved', 500]])
})

test('one is due again as often as it is set, also from within', () => {
  const seen: number[] = []
  const wheel = new Wheel<string>((item) => {
    seen.push(performance.now())
    if (seen.length < 5) wheel.set(item, 0)
  })
  wheel.set('again', 0)
  vi.advanceTimersByTime(1_000)
  expect(seen).toHaveLength(5)
  wheel.set('again', 20)
  vi.advanceTimersByTime(1_000)
  expect(seen).toHaveLength(6)
})

test('one timer runs for all, and none where nothing is due', () => {
  const { wheel } = turning()
  for (let item = 0; item < 1_000; item += 1) wheel.set(`${item}`, item)
  expect(vi.getTimerCount()).toBe(1)
  for (let item = 0; item < 500; item += 1) wheel.delete(`${item}`)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(2_000)
  expect(vi.getTimerCount()).toBe(0)
})
