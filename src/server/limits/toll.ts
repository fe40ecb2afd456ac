import { GraphQLError } from 'graphql'
import type { Code, LimitName } from '../../schema/failures.ts'
import { Budgets } from './budgets.ts'
import type { Limits } from './limits.ts'

/** What an operation cost, and what its project may still spend: told in `extensions.cost`. */
export type Charged = { requested: number; available: number }

/** For documents that aren't valid: going through 16 characters costs about as much as one object. */
const CHARACTERS = 16

/** Reading a document anew is free for so many milliseconds: nearly all take less. */
const FREE = 5
/** What a millisecond more costs: a project's whole income pays for a tenth of a processor. */
const MILLISECOND = 100

/** Takes what operations cost from the budgets of their projects. All of it refuses by throwing. */
export class Toll {
  readonly #limits: Limits
  readonly #budgets: Budgets

  /** `now` in milliseconds; it may never go back. */
  constructor(limits: Limits, now: () => number) {
    this.#limits = limits
    this.#budgets = new Budgets(limits.budget, now)
  }

  /** Before anything is looked at: looking costs, too. */
  requireBudget(place: string): void {
    this.#budgets.requireSome(place)
  }

  /**
   * Reads a document, and takes what that costs: some are made to take long. Processor time, since on a
   * busy machine the one who asks would pay for others.
   */
  reading<T>(place: string, read: () => T): T {
    const begun = process.threadCpuUsage()
    const result = read()
    const { user, system } = process.threadCpuUsage(begun)
    const slow = (user + system) / 1_000 - FREE
    if (slow > 0) this.#budgets.spend(place, slow * MILLISECOND)
    return result
  }

  /** Before an operation is executed. */
  take(place: string, requested: number): Charged {
    const { cost: most } = this.#limits
    if (requested > most) {
      this.#budgets.spend(place, 1)
      throw new GraphQLError(
        `The operation costs ${requested}; one may cost at most ${most}. Ask for smaller pages or fewer fields.`,
        {
          extensions: {
            code: 'BAD_USER_INPUT' satisfies Code,
            limit: 'cost' satisfies LimitName,
            cost: { requested, available: most },
            http: { spec: true, status: 400 },
          },
        },
      )
    }
    return { requested, available: this.#budgets.spend(place, requested) }
  }

  /** For a document that can't be executed. */
  takeForReading(place: string, query: unknown): void {
    const length = typeof query === 'string' ? query.length : 0
    this.#budgets.spend(place, 1 + Math.ceil(length / CHARACTERS))
  }
}
