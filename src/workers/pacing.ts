import type { Store } from '../db/client.ts'
import { readTouching } from '../domain/inventory.ts'
import type { VpcAttachment } from '../rules/objects.ts'
import type { Rests } from './rests.ts'
import { endpointsOf } from './seen.ts'

/** By uid: what it carries now; undefined: it is gone. */
type Attachments = Map<string, VpcAttachment | undefined>

/**
 * What the inventory changes of a load balancer first goes at once; what it would change while the load
 * balancer rests is kept back until then.
 */
export class Pacing {
  readonly #store: Store
  readonly #cluster: string
  readonly #release: (kept: Attachments) => void
  readonly #rests: Rests
  #kept: Attachments = new Map()
  #timer: NodeJS.Timeout | undefined

  constructor(options: {
    store: Store
    cluster: string
    rests: Rests
    release: (kept: Attachments) => void
  }) {
    this.#store = options.store
    this.#cluster = options.cluster
    this.#rests = options.rests
    this.#release = options.release
  }

  /** Takes out what would change a load balancer that rests, and gives it back later. */
  async keepBack(attachments: Attachments): Promise<void> {
    // What comes now is newer.
    for (const uid of attachments.keys()) this.#kept.delete(uid)
    const resting = this.#rests.resting()
    if (resting.length === 0 || attachments.size === 0) return
    const uids = await readTouching(
      this.#store,
      this.#cluster,
      resting,
      [...attachments.keys()],
      [...attachments.values()].flatMap((each) => endpointsOf(each)),
    )
    for (const uid of uids) {
      this.#kept.set(uid, attachments.get(uid))
      attachments.delete(uid)
    }
    if (uids.length > 0) this.#releaseAt(Math.min(...resting.map((id) => this.#rests.until(id))))
  }

  /** These load balancers were changed just now. */
  changed(loadBalancers: string[]): void {
    this.#rests.begin(loadBalancers)
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
