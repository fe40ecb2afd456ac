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
  /** By uid, each until an instant of `performance.now`. */
  readonly #kept = new Map<string, { attachment: VpcAttachment | undefined; until: number }>()
  /** These were kept back once: whatever changes the load balancer meanwhile, they go now. */
  readonly #waited = new Set<string>()
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
    const fresh = [...attachments.keys()].filter((uid) => !this.#waited.delete(uid))
    const resting = this.#rests.resting()
    if (resting.length === 0 || fresh.length === 0) return
    const until = Math.max(...resting.map((id) => this.#rests.until(id)))
    const seen = fresh.flatMap((uid) => endpointsOf(attachments.get(uid)))
    for (const uid of await readTouching(this.#store, this.#cluster, resting, fresh, seen)) {
      this.#kept.set(uid, { attachment: attachments.get(uid), until })
      attachments.delete(uid)
    }
    this.#arm()
  }

  /** These load balancers were changed just now. */
  changed(loadBalancers: string[]): void {
    this.#rests.begin(loadBalancers)
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #arm(): void {
    clearTimeout(this.#timer)
    if (this.#kept.size === 0) return
    const next = Math.min(...[...this.#kept.values()].map(({ until }) => until))
    this.#timer = setTimeout(() => this.#giveBack(), Math.max(0, next - performance.now()))
  }

  #giveBack(): void {
    const now = performance.now()
    const due: Attachments = new Map()
    for (const [uid, { attachment, until }] of this.#kept) {
      if (until > now) continue
      due.set(uid, attachment)
      this.#waited.add(uid)
      this.#kept.delete(uid)
    }
    this.#arm()
    if (due.size > 0) this.#release(due)
  }
}
