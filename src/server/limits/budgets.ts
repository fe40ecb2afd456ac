import { tooManyRequests } from '../../schema/failures.ts'
import type { Limits } from './limits.ts'

/** More projects than one process serves at once; the fullest ones are forgotten then. */
const MOST_REMEMBERED = 10_000

type Budget = { left: number; at: number }

/**
 * What each project may still spend: it refills steadily, up to its most. Whoever has anything left may
 * spend all that one operation costs and is then in debt, so no size of operation is at a disadvantage.
 */
export class Budgets {
  readonly #most: number
  /** Per millisecond. */
  readonly #rate: number
  readonly #now: () => number
  readonly #budgets = new Map<string, Budget>()

  /** `now` in milliseconds; it may never go back. */
  constructor({ most, perSecond }: Limits['budget'], now: () => number) {
    this.#most = most
    this.#rate = perSecond / 1_000
    this.#now = now
  }

  /** Refuses, by throwing, who has spent all. */
  requireSome(project: string): void {
    const { left } = this.#refilled(project)
    if (left > 0) return
    const seconds = Math.ceil((1 - left) / this.#rate / 1_000)
    throw tooManyRequests(
      `The project has spent its budget for requests; try again in ${seconds} s.`,
      'budget',
      seconds,
    )
  }

  /** Answers what is left, as a whole number and no less than none. */
  spend(project: string, cost: number): number {
    const budget = this.#refilled(project)
    budget.left -= cost
    return Math.max(0, Math.floor(budget.left))
  }

  #refilled(project: string): Budget {
    const now = this.#now()
    const budget = this.#budgets.get(project)
    if (budget === undefined) return this.#begin(project, now)
    budget.left = Math.min(this.#most, budget.left + (now - budget.at) * this.#rate)
    budget.at = now
    return budget
  }

  #begin(project: string, now: number): Budget {
    if (this.#budgets.size >= MOST_REMEMBERED) this.#forget(now)
    const budget = { left: this.#most, at: now }
    this.#budgets.set(project, budget)
    return budget
  }

  /** A full budget is as good as none. */
  #forget(now: number): void {
    for (const [project, { left, at }] of this.#budgets) {
      if (left + (now - at) * this.#rate >= this.#most) this.#budgets.delete(project)
    }
  }
}
