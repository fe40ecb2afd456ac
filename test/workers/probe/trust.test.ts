import { describe, expect, test } from 'vitest'
import { Trust } from '../../../src/workers/probe/trust.ts'

/** Lets `count` backends of each of `loadBalancers` fail, at the instant 10. */
function failing(loadBalancers: number, count: number): Trust {
  const trust = new Trust()
  for (let lb = 0; lb < loadBalancers; lb += 1) {
    for (let number = 0; number < count; number += 1) {
      trust.note(`${lb}-${number}`, `lb-${lb}`, false, 10)
    }
  }
  return trust
}

describe('failures', () => {
  test.each([
    [1, 64, true],
    [2, 32, true],
    [3, 3, true],
    [3, 4, false],
    [10, 1, false],
  ])(
    'of %i load balancers with %i backends each, and no success, are believed: %s',
    (many, each, believed) => {
      expect(failing(many, each).believes(5)).toBe(believed)
    },
  )

  test('are believed as soon as anything succeeded since they began', () => {
    const trust = failing(5, 5)
    trust.note('another', 'lb-9', true, 4)
    expect(trust.believes(5)).toBe(false)
    trust.note('another', 'lb-9', true, 12)
    expect(trust.believes(5)).toBe(true)
  })

  test('of backends that are not probed any more do not count', () => {
    const trust = failing(3, 4)
    trust.forget('0-0')
    trust.forget('1-0')
    trust.forget('2-0')
    expect(trust.believes(5)).toBe(true)
  })
})
