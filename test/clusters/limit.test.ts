import { getEventListeners } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { Limit } from '../../src/clusters/limit.ts'

test('calls with one signal end with it, for its reason and by one listener; one that is over does not', () => {
  const { signal, abort } = ending()
  const [one, other, over] = [begin(signal), begin(signal), begin(signal)]
  over.end()
  one.cut()
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  const reason = new Error('the lease is over')
  abort(reason)
  const late = begin(signal)
  const reasons = [one, other, over, late].map((limit) => limit.signal.reason)
  expect(reasons).toEqual([
    expect.objectContaining({ name: 'AbortError' }),
    reason,
    undefined,
    reason,
  ])
})

test('a call that ends as another one is cut is not cut itself', () => {
  const { signal, abort } = ending()
  const [one, other] = [begin(signal), begin(signal)]
  one.signal.addEventListener('abort', () => other.end())
  abort()
  expect([one, other].map((limit) => limit.signal.aborted)).toEqual([true, false])
})

function ending() {
  const controller = new AbortController()
  return { signal: controller.signal, abort: (reason?: Error) => controller.abort(reason) }
}

function begin(signal: AbortSignal): Limit {
  const limit = new Limit(60_000, signal)
  onTestFinished(() => limit.end())
  return limit
}
