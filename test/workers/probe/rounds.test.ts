import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { defaultHealthCheck } from '../../../src/domain/healthCheck.ts'
import type { Prober } from '../../../src/workers/probe/prober.ts'
import { Rounds } from '../../../src/workers/probe/rounds.ts'
import { Slots } from '../../../src/workers/probe/slots.ts'
import { groupOf, Target } from '../../../src/workers/probe/target.ts'

const check = { ...defaultHealthCheck('TCP'), intervalSeconds: 10, timeoutSeconds: 5 }
const group = groupOf({
  ...{ id: 'lb', rulesGeneration: 1, port: 80, healthCheck: check, backends: [], mark: '' },
})
const target = () => {
  const backend = { id: 'b', address: '::1', state: 'UNKNOWN', reason: 'NotProbedYet' } as const
  return new Target(group, { ...backend, flaps: null, mark: '' }, Date.now)
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Probes that take `takes` seconds each; answers the seconds at which they began. */
async function begun(random: () => number, takes: number, seconds: number): Promise<number[]> {
  const from = performance.now()
  const times: number[] = []
  const prober: Prober = {
    async connect() {
      times.push(Math.round((performance.now() - from) / 1_000))
      await new Promise((resolve) => setTimeout(resolve, takes * 1_000))
      return { ok: true }
    },
    http: () => Promise.reject(new Error('not asked for')),
  }
  const rounds = new Rounds({
    ...{ prober, slots: new Slots(1), second: 1_000, random },
    result: () => undefined,
    impossible: (error) => {
      throw error
    },
  })
  const one = target()
  rounds.schedule(one, 10_000)
  await vi.advanceTimersByTimeAsync(seconds * 1_000)
  rounds.stop(one)
  return times
}

test.each([
  ['soonest', () => 0, [0, 9, 18, 27, 36]],
  ['in the middle', () => 0.5, [5, 15, 25, 35]],
  ['latest', () => 0.999_999, [10, 21, 32, 43]],
])('a backend is probed every interval, give or take a tenth: %s', async (_, random, expected) => {
  const times = await begun(random, 0, 44)
  expect(times).toEqual(expected)
})

test('the interval counts from the beginning of a probe, and the next one waits for its end', async () => {
  expect(await begun(() => 0.5, 4, 40)).toEqual([5, 15, 25, 35])
  expect(await begun(() => 0.5, 13, 45)).toEqual([5, 18, 31, 44])
})
