import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Turning, Wheel } from '../../../src/workers/probe/wheel.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

class Item implements Turning {
  tick: number | undefined
}

function turning() {
  const from = performance.now()
  const seen: [Item, number][] = []
  const wheel = new Wheel<Item>((item) => seen.push([item, performance.now() - from]))
  return { wheel, seen }
}

test('each comes once, when it is due, to a hundredth of a second', () => {
  const { wheel, seen } = turning()
  const due = [0, 14, 333, 60_000]
  const items = due.map((milliseconds) => {
    const item = new Item()
    wheel.set(item, milliseconds)
    return item
  })
  vi.advanceTimersByTime(120_000)
  expect(seen.map(([item]) => items.indexOf(item))).toEqual([0, 1, 2, 3])
  for (const [index, [, at]] of seen.entries()) {
    expect(Math.abs(at - (due[index] ?? 0))).toBeLessThanOrEqual(10)
  }
})

test('what was said last of one counts, and what is taken back never comes', () => {
  const { wheel, seen } = turning()
  const [moved, back, taken] = [new Item(), new Item(), new Item()]
  wheel.set(moved, 50)
  wheel.set(moved, 500)
  wheel.set(back, 200)
  wheel.set(back, 700)
  wheel.set(back, 200)
  wheel.set(taken, 100)
  wheel.delete(taken)
  vi.advanceTimersByTime(10_000)
  expect(seen).toEqual([
    [back, 200],
    [moved, 500],
  ])
})

test('one is due again as often as it is set, also from within', () => {
  let times = 0
  const wheel = new Wheel<Item>((item) => {
    times += 1
    if (times < 5) wheel.set(item, 0)
  })
  const item = new Item()
  wheel.set(item, 0)
  vi.advanceTimersByTime(1_000)
  expect(times).toBe(5)
  wheel.set(item, 20)
  vi.advanceTimersByTime(1_000)
  expect(times).toBe(6)
})

test('one timer runs for all, and none where nothing is due', () => {
  const { wheel, seen } = turning()
  const items = Array.from({ length: 1_000 }, () => new Item())
  for (const [index, item] of items.entries()) wheel.set(item, index)
  expect(vi.getTimerCount()).toBe(1)
  for (const item of items.slice(0, 500)) wheel.delete(item)
  expect(vi.getTimerCount()).toBe(1)
  vi.advanceTimersByTime(2_000)
  expect(seen).toHaveLength(500)
  expect(vi.getTimerCount()).toBe(0)
})
