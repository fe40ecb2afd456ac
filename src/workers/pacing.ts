import type { Store } from '../db/client.ts'
import { readTouching } from '../domain/inventory.ts'
import type { VpcAttachment } from '../rules/objects.ts'
import { endpointsOf } from './seen.ts'

/** Further changes of a load balancer wait so long (ms) after the last and go together. */
const HOLD = 1_000

/** By uid: what it carries now; undefined: it is gone. */
type Attachments = Map<string, VpcAttachment | undefined>

/**
 * Each change of a backend set moves flows, so the inventory changes one load balancer at most once a
 * second: what comes first goes at once, what comes within a second of it is kept back until then.
 */
export class Pacing {
  readonly #store: Store
  readonly #cluster: string
  readonly #release: (kept: Attachments) => void
  /** By load balancer: until when (ms) it rests. */
  readonly #resting = new Map<string, number>()
  #kept: Attachments = new Map()
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store, cluster: string, release: (kept: Attachments) => void) {
    this.#store = store
    this.#cluster = cluster
    this.#release = release
  }

  /** Takes out what would change a load balancer that rests, and gives it back later. */
  async keepBack(attachments: Attachments): Promise<void> {
    // What comes now is newer.
    for (const uid of attachments.keys()) this.#kept.delete(uid)
    const now = performance.now()
    for (const [id, until] of this.#resting) if (until <= now) this.#resting.delete(id)
    if (this.#resting.size === 0 || attachments.size === 0) return
    const uids = await readTouching(
      this.#store,
      this.#cluster,
      [...this.#resting.keys()],
      [...attachments.keys()],
      [...attachments.values()].flatMap((each) => endpointsOf(each)),
    )
    for (const uid of uids) {
      this.#kept.set(uid, attachments.get(uid))
      attachments.delete(uid)
    }
    if (uids.length > 0) this.#releaseAt(Math.min(...this.#resting.values()))
  }

  /** These load balancers were changed just now. */
  changed(loadBalancers: string[]): void {
    const until = performance.now() + HOLD
    for (const id of loadBalancers) this.#resting.set(id, until)
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** What has to wait longer is kept back again then. */
  #releaseAt(instant: number): void {
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined
        const kept = this.#kept
        this.#kept = new Map()
        this.#release(kept)
      },
      Math.max(0, instant - performance.now()),
    )
  }
}
