import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Budgets } from '../../../src/server/limits/budgets.ts'

function refusal(budgets: Budgets): unknown {
  try {
    return budgets.requireSome('alpha')
  } catch (error) {
    return error
  }
}

test('whoever has anything left may spend more than that, and waits until the debt is paid', () => {
  let now = 0
  const budgets = new Budgets({ most: 100, perSecond: 10 }, () => now)
  budgets.requireSome('alpha')
  expect(budgets.spend('alpha', 99)).toBe(1)
  budgets.requireSome('alpha')
  expect(budgets.spend('alpha', 50)).toBe(0)
  const refused = { extensions: { limit: 'budget', http: { headers: { 'retry-after': '5' } } } }
  expect(refusal(budgets)).toMatchObject(refused)
  budgets.requireSome('beta')
  now = 4_800
  expect(() => budgets.requireSome('alpha')).toThrow()
  now = 5_000
  budgets.requireSome('alpha')
  now = 1_000_000
  expect(budgets.spend('alpha', 0)).toBe(100)
})

test('nobody spends more than their most and what refilled, whatever they do', () => {
  const steps = fc.array(fc.tuple(fc.nat(5_000), fc.integer({ min: 1, max: 80 })), {
    maxLength: 60,
  })
  fc.assert(
    fc.property(steps, (given) => {
      let now = 0
      let spent = 0
      const budgets = new Budgets({ most: 100, perSecond: 10 }, () => now)
      for (const [wait, cost] of given) {
        now += wait
        try {
          budgets.requireSome('alpha')
        } catch {
          continue
        }
        budgets.spend('alpha', cost)
        spent += cost
        // The last one may have been begun with the last point.
        expect(spent).toBeLessThanOrEqual(100 + (now / 1_000) * 10 + 80)
      }
    }),
  )
})
