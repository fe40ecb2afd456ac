import { expect, test } from 'vitest'
import { Slots } from '../../../src/workers/probe/slots.ts'

const { signal } = new AbortController()

test('slots are given to those who wait, first come first served', async () => {
  const slots = new Slots(1)
  await slots.take(signal)
  const order: number[] = []
  const waiting = [1, 2].map((number) => slots.take(signal).then(() => order.push(number)))
  slots.give()
  await waiting[0]
  expect(order).toEqual([1])
  slots.give()
  await waiting[1]
  expect(order).toEqual([1, 2])
})

test('a wait that is called off takes no slot', async () => {
  const slots = new Slots(1)
  await slots.take(signal)
  const calling = new AbortController()
  const waiting = slots.take(calling.signal)
  calling.abort()
  expect(await waiting).toBe(false)
  slots.give()
  expect(await slots.take(signal)).toBe(true)
  expect(await slots.take(AbortSignal.abort())).toBe(false)
})

test('thousands who wait are served in their order, but for those that were called off', async () => {
  const slots = new Slots(1)
  await slots.take(signal)
  const calling = new AbortController()
  const order: number[] = []
  const numbers = Array.from({ length: 5_000 }, (_, number) => number)
  const waiting = numbers.map(async (number) => {
    const taken = await slots.take(number % 3 === 0 ? calling.signal : signal)
    if (!taken) return
    order.push(number)
    slots.give()
  })
  calling.abort()
  slots.give()
  await Promise.all(waiting)
  expect(order).toEqual(numbers.filter((number) => number % 3 !== 0))
  expect(slots.takeNow()).toBe(true)
  expect(slots.takeNow()).toBe(false)
})
