import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../../../src/db/client.ts'
import { rollback, transaction } from '../../../src/db/transaction.ts'
import { appendEvent, SYSTEM } from '../../../src/domain/events/append.ts'
import { hint } from '../../../src/domain/hints.ts'
import { createLoadBalancer } from '../../../src/domain/loadBalancers/create.ts'
import { deleteLoadBalancer } from '../../../src/domain/loadBalancers/delete.ts'

export const scope = { project: 'alpha', actor: SYSTEM }
/** Half of them are blue at first; each may become what the other half is. */
export const COLOURS = ['blue', 'green']
/** Not more live at a time than the project's quota lets. */
const MOST = 40
const FEWEST = 15

const below = (bound: number) => Math.floor(Math.random() * bound)

/**
 * Changes load balancers of one project, `writers` at a time, in transactions of random length of which
 * some are rolled back. `displayName` is the version that each change makes.
 */
export class Writers {
  readonly #store: Store
  readonly #vpc: string
  readonly #live: string[] = []
  #made = 0
  #ended = false
  /** Transactions that were committed, as far as the writers know. */
  committed = 0

  constructor(store: Store, vpc: string) {
    this.#store = store
    this.#vpc = vpc
  }

  get live(): number {
    return this.#live.length
  }

  async create(): Promise<string | undefined> {
    const number = this.#made
    this.#made += 1
    const made = await createLoadBalancer(this.#store, scope, {
      name: `${COLOURS[number % 2]}-${number}`,
      displayName: '1',
      vpc: this.#vpc,
      region: 'us-east-1',
      protocol: { tcp: { port: 80 } },
    })
    if (!('loadBalancer' in made)) return undefined
    this.#live.push(made.loadBalancer.id)
    return made.loadBalancer.id
  }

  /** Goes on until `end`; what fails meanwhile because the database is away is tried no more. */
  async run(writers: number): Promise<void> {
    await Promise.all(Array.from({ length: writers }, () => this.#write()))
  }

  end(): void {
    this.#ended = true
  }

  async #write(): Promise<void> {
    while (!this.#ended) {
      try {
        await this.#one()
        this.committed += 1
        hint(this.#store)
      } catch {
        // The database is away: whether it was committed is known by who reads.
        await delay(20)
      }
      await delay(below(80))
    }
  }

  async #one(): Promise<void> {
    const dice = below(20)
    if (dice === 0 && this.#live.length < MOST) return void (await this.create())
    if (dice === 1 && this.#live.length > FEWEST) {
      // The first one stays: somebody watches it.
      const [id = ''] = this.#live.splice(1 + below(this.#live.length - 1), 1)
      await deleteLoadBalancer(this.#store, scope, { id })
      return
    }
    // In one order, so that they wait for each other and not in a circle.
    const ids = Array.from({ length: 1 + below(5) }, () => this.#live[below(this.#live.length)])
    await transaction(this.#store, async (client) => {
      for (const id of ids.toSorted()) {
        const { rows } = await client.query<{ name: string; version: number; generation: number }>(
          `UPDATE load_balancer SET version = version + 1, display_name = (version + 1)::text,
             name = CASE WHEN random() > 0.3 THEN name WHEN name LIKE 'blue-%' THEN 'green-' || substr(name, 6)
               ELSE 'blue-' || substr(name, 7) END
           WHERE id = $1 AND deleting_since IS NULL RETURNING name, version, generation`,
          [id],
        )
        const [changed] = rows
        if (id === undefined || changed === undefined) continue
        const { version, generation } = changed
        await appendEvent(client, {
          ...{ project: scope.project, actor: SYSTEM, objectKind: 'LoadBalancer', objectId: id },
          ...{ version, generation, reason: 'LoadBalancerUpdated', message: 'Changed.' },
        })
        await delay(below(10))
      }
      return below(10) === 0 ? rollback(undefined) : undefined
    })
  }
}
