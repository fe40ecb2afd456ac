import type { Store } from '../db/client.ts'
import { recordInventory } from '../domain/clusters.ts'
import type { Ownership } from '../domain/placements/ownership.ts'
import type { Resource } from '../rules/objects.ts'
import { REASONS, type Reason } from '../rules/reasons.ts'
import type { Finding } from '../rules/report.ts'
import type { Chores } from './chores.ts'
import { Latest } from './latest.ts'
import type { Logger } from './logger.ts'

/** A list that fails for less than this time (ms) is no news. */
const PATIENCE = 3_000

/** How much what is known of a cluster's endpoints is worth: recorded where it changes. */
export class InventoryWorth {
  readonly #log: Logger
  readonly #records: Latest<Finding>
  /** By plural of the kind: why it can't be read. */
  readonly #failing = new Map<string, string>()
  #patience: NodeJS.Timeout | undefined
  /** Something has failed for longer than that. */
  #stale = false
  #held = 0
  #unlabelled = false
  #told = ''
  #known = false
  #closed = false

  constructor(parts: { store: Store; owner: Ownership; chores: Chores; log: Logger }) {
    const { store, owner, chores } = parts
    this.#log = parts.log
    this.#records = new Latest((finding, isLatest) =>
      chores.untilDone('record what the inventory is worth', async () => {
        if (isLatest()) await recordInventory(store, owner, finding)
      }),
    )
  }

  /** All was read once: before, there is nothing to say but that it can't be read. */
  known(): void {
    this.#known = true
  }

  /** The list or watch of a kind that it rests on failed; undefined: it works again. */
  failing({ plural }: Resource, error: Error | undefined): void {
    const [named] = this.#failing.keys()
    if (error === undefined) this.#failing.delete(plural)
    else this.#failing.set(plural, error.message)
    if (this.#failing.size === 0) {
      clearTimeout(this.#patience)
      this.#patience = undefined
      this.#stale = false
      this.tell()
    } else if (this.#stale) {
      // What fails in the same place in other words is no news.
      if (!this.#failing.has(named ?? '')) this.tell()
    } else if (!this.#closed) this.#patience ??= setTimeout(() => this.#lostPatience(), PATIENCE)
  }

  #lostPatience(): void {
    this.#stale = true
    this.tell()
  }

  /** `unlabelled`: there are VPCs, and none says whose it is. */
  labels(unlabelled: boolean): void {
    this.#unlabelled = unlabelled
    this.tell()
  }

  /** `held`: how many objects that a list lacks are believed to be there all the same. */
  tell(held = this.#held): void {
    this.#held = held
    if (this.#closed || !(this.#known || this.#stale)) return
    const [failing] = this.#stale ? this.#failing : []
    const reason: Reason = failing
      ? 'InventoryStale'
      : held > 0
        ? 'InventoryDoubted'
        : this.#unlabelled
          ? 'VpcsUnlabelled'
          : 'InventoryComplete'
    const detail = failing
      ? ` ${failing[0]}: ${failing[1]}`
      : held > 0
        ? ` Held back: ${held}.`
        : ''
    const message = `${REASONS[reason]}${detail}`.slice(0, 1_000)
    if (message === this.#told) return
    const status = reason === 'InventoryComplete' ? 'TRUE' : 'FALSE'
    if (status === 'FALSE') this.#log.warn({ held, failing }, REASONS[reason])
    this.#told = message
    this.#records.tell({ status, reason, message })
  }

  close(): void {
    this.#closed = true
    clearTimeout(this.#patience)
  }
}
