import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../../../src/db/client.ts'
import { rollback, transaction } from '../../../src/db/transaction.ts'
import { appendEvent, SYSTEM } from '../../../src/domain/events/append.ts'
import { hint } from '../../../src/domain/hints.ts'
import type { Ownership } from '../../../src/domain/placements/ownership.ts'
import { probed, uuidOf } from '../reporting.ts'
import type { Chance } from './chance.ts'
import type { Mutations } from './mutations.ts'

/**
 * Changes load balancers and reservations of one project, `writers` at a time: by the API's mutations, by
 * what probes find, and in transactions over several objects, of which some are rolled back.
 */
export class Writers {
  readonly #store: Store
  readonly #mutations: Mutations
  readonly #prober: Ownership
  readonly #awaited = new Set<{ goal: number; reached: () => void }>()
  #ended = false
  #committed = 0
  /** How often each way of writing was gone. */
  readonly ways = new Map<string, number>()

  constructor(store: Store, mutations: Mutations, prober: Ownership) {
    this.#store = store
    this.#mutations = mutations
    this.#prober = prober
  }

  /** Goes on until `end`; what fails meanwhile because somebody is away is tried no more. */
  async run(writers: number, chance: Chance): Promise<void> {
    await Promise.all(
      Array.from({ length: writers }, (_, number) => this.#write(chance.of(`writer ${number}`))),
    )
  }

  end(): void {
    this.#ended = true
  }

  /** Until so many more were committed, as far as the writers know. */
  written(more: number): Promise<void> {
    const goal = this.#committed + more
    return new Promise((resolve) => this.#awaited.add({ goal, reached: resolve }))
  }

  async #write(chance: Chance): Promise<void> {
    while (!this.#ended) {
      try {
        this.#commit(await this.#one(chance))
      } catch {
        // The database or the API is away: whether it was committed is known by who reads.
        await delay(20)
      }
      await delay(chance.below(80))
    }
  }

  #commit(way: string): void {
    this.ways.set(way, (this.ways.get(way) ?? 0) + 1)
    this.#committed += 1
    for (const waiting of this.#awaited) {
      if (this.#committed < waiting.goal) continue
      this.#awaited.delete(waiting)
      waiting.reached()
    }
  }

  async #one(chance: Chance): Promise<string> {
    const dice = chance.below(10)
    if (dice < 5) return this.#mutations.one(chance)
    if (dice < 6) {
      const address = chance.pick(this.#mutations.endpoints) ?? ''
      const state = chance.pick(['HEALTHY', 'UNHEALTHY'] as const) ?? 'HEALTHY'
      const id = uuidOf(this.#mutations.first)
      await probed(this.#store, this.#prober, id, { address, state })
      return 'probe'
    }
    await this.#transaction(chance)
    hint(this.#store)
    return 'transaction'
  }

  async #transaction(chance: Chance): Promise<void> {
    // In one order, so that they wait for each other and not in a circle.
    const ids = Array.from({ length: 1 + chance.below(5) }, () =>
      uuidOf(chance.pick(this.#mutations.live) ?? ''),
    )
    await transaction(this.#store, async (client) => {
      for (const id of ids.toSorted()) {
        const { rows } = await client.query<{ version: number; generation: number }>(
          `UPDATE load_balancer SET version = version + 1, generation = generation + 1,
             name = CASE WHEN $2 THEN name WHEN name LIKE 'blue-%' THEN 'green-' || substr(name, 6)
               ELSE 'blue-' || substr(name, 7) END
           WHERE id = $1 AND deleting_since IS NULL RETURNING version, generation`,
          [id, chance.next() > 0.3],
        )
        const [changed] = rows
        if (changed === undefined) continue
        await appendEvent(client, {
          ...{ project: 'alpha', actor: SYSTEM, objectKind: 'LoadBalancer', objectId: id },
          ...{ ...changed, reason: 'LoadBalancerUpdated', message: 'Changed.' },
        })
        await delay(chance.below(10))
      }
      return chance.below(10) === 0 ? rollback(undefined) : undefined
    })
  }
}
