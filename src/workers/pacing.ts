import type { Store } from '../db/client.ts'
import { readResting } from '../domain/inventory.ts'
import type { VpcAttachment } from '../rules/objects.ts'
import { endpointsOf } from './seen.ts'

/** By so much (ms) the ends of one rest may differ that were read at different times. */
const NEAR = 50

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
  /** By uid, each until an instant of `performance.now`. */
  readonly #kept = new Map<string, { attachment: VpcAttachment | undefined; until: number }>()
  /** These were kept back once: whatever changes the load balancer meanwhile, they go now, until they are taken in. */
  readonly #waited = new Set<string>()
  #timer: NodeJS.Timeout | undefined

  constructor(options: {
    store: Store
    cluster: string
    release: (kept: Attachments) => void
  }) {
    this.#store = options.store
    this.#cluster = options.cluster
    this.#release = options.release
  }

  /** Takes out what would change a load balancer that rests, and gives it back later. */
  async keepBack(attachments: Attachments): Promise<void> {
    // What comes now is newer.
    for (const uid of attachments.keys()) this.#kept.delete(uid)
    const fresh = [...attachments.keys()].filter((uid) => !this.#waited.has(uid))
    if (fresh.length === 0) return
    const seen = fresh.flatMap((uid) => endpointsOf(attachments.get(uid)))
    const resting = await readResting(this.#store, this.#cluster, fresh, seen)
    const now = performance.now()
    for (const { uid, milliseconds } of resting) {
      this.#kept.set(uid, { attachment: attachments.get(uid), until: now + milliseconds })
      attachments.delete(uid)
    }
    this.#arm()
  }

  /** What wasn't kept back has been taken in: what comes of it from now on is a change of its own. */
  takenIn(uids: Iterable<string>): void {
    for (const uid of uids) this.#waited.delete(uid)
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #arm(): void {
    clearTimeout(this.#timer)
    if (this.#kept.size === 0) return
    const next = Math.min(...[...this.#kept.values()].map(({ until }) => until))
    this.#timer = setTimeout(() => this.#giveBack(), Math.max(0, next + NEAR - performance.now()))
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
