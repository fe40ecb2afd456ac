import type { Store } from '../db/client.ts'
import { recordTrouble, type Trouble } from '../domain/clusters.ts'
import type { Ownership } from '../domain/placements/ownership.ts'
import type { Chores } from './chores.ts'
import { Latest } from './latest.ts'

/** What stands against serving a cluster is news when it lasts this long (ms): one reset is none. */
const PATIENCE = 3_000

/**
 * What stands against serving one cluster: that it doesn't answer, lacks something, or refuses us. Every
 * source (calls, each kind that is followed, what is written) tells of itself; the gravest is recorded.
 */
export class Reachability {
  readonly #records: Latest<Trouble | null>
  readonly #back: () => void
  readonly #troubles = new Map<string, Trouble>()
  /** By load balancer: what its writes are refused for. */
  readonly #refused = new Map<string, Trouble>()
  /** Those of them that are looked at again because one went through: that they do too is no news. */
  #retried = new Set<string>()
  #patience: NodeJS.Timeout | undefined
  /** undefined: nothing was recorded yet; null: that all is well. */
  #recorded: Trouble | null | undefined
  #closed = false

  /** `back`: what was put off because of it may go through now. */
  constructor(parts: { store: Store; owner: Ownership; chores: Chores; back: () => void }) {
    const { store, owner, chores } = parts
    this.#back = parts.back
    let again = false
    this.#records = new Latest((found, isLatest) =>
      chores.untilDone('record what stands against serving the cluster', async () => {
        if (!isLatest()) return
        const options = { again }
        again = true
        await recordTrouble(store, owner, found ?? undefined, options)
        again = false
      }),
    )
  }

  get callsFail(): boolean {
    return this.#troubles.has('calls')
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#patience)
  }

  /** It is served: an owner before may have left it said that it can't be. */
  begun(): void {
    if (this.#recorded === undefined && this.#troubles.size === 0) this.#record(null)
  }

  calls(failure: Error | undefined): void {
    this.tell(
      'calls',
      failure && { reason: 'ClusterUnreachable', message: failure.message, blind: true },
    )
  }

  /** What the last writes of a load balancer were refused for; undefined: nothing that is the cluster's. */
  placement(loadBalancer: string, trouble: Trouble | undefined): void {
    const retried = this.#retried.delete(loadBalancer)
    if (trouble !== undefined) this.#refused.set(loadBalancer, trouble)
    else if (!this.#refused.delete(loadBalancer)) return
    const [first] = this.#refused.values()
    this.#take('writes', first)
    if (trouble !== undefined || retried || this.#closed) return
    this.#retried = new Set(this.#refused.keys())
    this.#back()
  }

  tell(source: string, trouble: Trouble | undefined): void {
    if (this.#take(source, trouble)) this.#back()
  }

  /** Answers whether something ended that others were put off for. */
  #take(source: string, trouble: Trouble | undefined): boolean {
    if (this.#closed) return false
    const before = this.#troubles.get(source)
    if (trouble === undefined) this.#troubles.delete(source)
    else this.#troubles.set(source, trouble)
    const worst = this.#worst()
    if (worst === undefined) {
      clearTimeout(this.#patience)
      this.#patience = undefined
      if (this.#recorded !== null) this.#record(null)
    } else if (
      this.#recorded &&
      (worst.reason !== this.#recorded.reason || worst.blind !== this.#recorded.blind)
    ) {
      this.#record(worst)
    } else if (worst.message !== this.#recorded?.message) {
      // Counted from the first. Another message of the same may be another cause.
      this.#patience ??= setTimeout(() => this.#record(this.#worst() ?? null), PATIENCE)
    }
    const ended = trouble === undefined ? before : undefined
    return ended !== undefined && (worst === undefined || !ended.blind)
  }

  #worst(): Trouble | undefined {
    const all = [...this.#troubles.values()]
    return all.find(({ blind }) => blind) ?? all[0]
  }

  #record(found: Trouble | null): void {
    clearTimeout(this.#patience)
    this.#patience = undefined
    this.#recorded = found
    this.#records.tell(found)
  }
}
