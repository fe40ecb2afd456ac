import { verdictOn } from './brake.ts'

/** An attachment that isn't shown any more. */
export type Vanished = { uid: string; key: string }

type Surroundings = {
  /** Milliseconds: see `Limits`. */
  settle: number
  confirm: number
  /** How many attachments there are now. */
  present: () => number
  /** The uids of all attachments, as the API server answers now. */
  look: () => Promise<Set<string>>
  believe: (uids: string[]) => void
  /** Another number of them is held back. */
  changed: () => void
  failed: (error: unknown) => void
}

/**
 * Attachments that vanished one by one (watch events, or while nobody looked). A kind whose definition
 * is deleted vanishes like that too, so what goes at once is seen together: where it is too much, it
 * is held back until a second look finds others still there, or an operator says that it is right.
 */
export class Vanishing {
  readonly #with: Surroundings
  /** By uid. */
  readonly #fresh = new Map<string, Vanished>()
  readonly #doubted = new Map<string, Vanished>()
  /** By `namespace/name`: the uid that is doubted. */
  readonly #byKey = new Map<string, string>()
  #knownBefore = 0
  /** Nothing was left: what shows up again doesn't prove that the rest is gone. */
  #wasEmptied = false
  #settling: NodeJS.Timeout | undefined
  #confirming: NodeJS.Timeout | undefined
  #looking: Promise<void> | undefined
  #failures = 0
  #closed = false

  constructor(surroundings: Surroundings) {
    this.#with = surroundings
  }

  /** How many are held back. */
  get held(): number {
    return this.#doubted.size
  }

  /** One isn't shown any more. */
  gone(vanished: Vanished): void {
    this.#fresh.set(vanished.uid, vanished)
    this.#settling ??= setTimeout(() => {
      this.#settling = undefined
      const fresh = [...this.#fresh.values()]
      this.#fresh.clear()
      this.judge(this.#with.present() + fresh.length, fresh)
    }, this.#with.settle)
  }

  /** One is shown: itself it is there, and what was called so before is known to be gone. */
  shown({ uid, key }: Vanished): void {
    this.#fresh.delete(uid)
    const isBack = this.#doubted.has(uid)
    this.#clear(uid)
    const before = this.#byKey.get(key)
    if (before !== undefined) {
      this.#clear(before)
      this.#with.believe([before])
    } else if (!isBack) return
    if (this.#doubted.size === 0) this.#with.changed()
    else this.#confirmSoon()
  }

  /** Decides on some of `known` attachments being gone. */
  judge(known: number, vanished: Vanished[]): void {
    if (this.#closed || vanished.length === 0) return
    const all = vanished.length + this.#doubted.size
    // A single one is told by its own event; it is too much only where nothing is left.
    const few = all === 1 && known > 1
    if (few || verdictOn(known + this.#doubted.size, all) === 'believe') {
      this.#with.believe(vanished.map(({ uid }) => uid))
      return
    }
    if (this.#doubted.size === 0) this.#knownBefore = known
    for (const each of vanished) {
      this.#doubted.set(each.uid, each)
      this.#byKey.set(each.key, each.uid)
    }
    this.#with.changed()
    this.#confirmSoon()
  }

  /** An operator says that all that is held back is gone. */
  accept(): void {
    const uids = [...this.#doubted.keys()]
    for (const uid of uids) this.#clear(uid)
    if (uids.length === 0) return
    this.#with.believe(uids)
    this.#with.changed()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#settling)
    clearTimeout(this.#confirming)
    await this.#looking
  }

  #clear(uid: string): void {
    const doubted = this.#doubted.get(uid)
    this.#doubted.delete(uid)
    if (doubted !== undefined && this.#byKey.get(doubted.key) === uid)
      this.#byKey.delete(doubted.key)
  }

  #confirmSoon(): void {
    if (this.#closed) return
    clearTimeout(this.#confirming)
    const { confirm } = this.#with
    const backOff = confirm * Math.min(2 ** this.#failures, 16) * (0.75 + Math.random() / 2)
    this.#confirming = setTimeout(() => {
      this.#looking = this.#confirm().finally(() => {
        this.#looking = undefined
      })
    }, backOff)
  }

  async #confirm(): Promise<void> {
    if (this.#doubted.size === 0) return
    let present: Set<string>
    try {
      present = await this.#with.look()
    } catch (error) {
      // What can't be read isn't gone.
      this.#failures += 1
      this.#with.failed(error)
      this.#confirmSoon()
      return
    }
    this.#failures = 0
    for (const uid of this.#doubted.keys()) if (present.has(uid)) this.#clear(uid)
    const verdict = this.#wasEmptied
      ? verdictOn(this.#knownBefore, this.#doubted.size)
      : present.size > 0 || this.#doubted.size === 1
        ? 'believe'
        : 'operator'
    if (verdict === 'believe') {
      this.#wasEmptied = false
      this.accept()
    } else this.#wasEmptied = true
    this.#with.changed()
  }
}
