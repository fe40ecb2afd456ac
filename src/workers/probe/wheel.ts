/**
 * How fine instants are told apart (ms). What is due within it comes together, and one wake-up serves
 * all: with a timer for each of 10,000 backends waking cost more than connecting.
 */
const TICK = 10
/** So many ticks are looked ahead for the next one that something is due at. */
const AHEAD = 100

/** What is due once, at an instant of its own; `tick` is the wheel's, which looks up nothing that way. */
export type Turning = { tick: number | undefined }

/** One timer for many things. */
export class Wheel<T extends Turning> {
  readonly #due: (item: T) => void
  /** By tick; those that are due at another by now, or at none, are passed over. */
  readonly #dueAt = new Map<number, T[]>()
  #count = 0
  #timer: NodeJS.Timeout | undefined
  /** The tick that the timer wakes at. */
  #next = Number.POSITIVE_INFINITY
  /** The last one that is over. */
  #last = Number.NEGATIVE_INFINITY

  constructor(due: (item: T) => void) {
    this.#due = due
  }

  /** Due in some milliseconds from now, whatever was said of it before. */
  set(item: T, milliseconds: number): void {
    const tick = Math.max(this.#last + 1, Math.round((performance.now() + milliseconds) / TICK))
    if (item.tick === undefined) this.#count += 1
    item.tick = tick
    const together = this.#dueAt.get(tick)
    if (together) together.push(item)
    else this.#dueAt.set(tick, [item])
    if (tick < this.#next) this.#wakeAt(tick)
  }

  delete(item: T): void {
    if (item.tick === undefined) return
    item.tick = undefined
    this.#count -= 1
    if (this.#count === 0) this.#rest()
  }

  #rest(): void {
    clearTimeout(this.#timer)
    this.#next = Number.POSITIVE_INFINITY
    this.#dueAt.clear()
  }

  #wakeAt(tick: number): void {
    clearTimeout(this.#timer)
    this.#next = tick
    this.#timer = setTimeout(() => this.#turn(), Math.max(0, tick * TICK - performance.now()))
  }

  #turn(): void {
    // A timer may come some milliseconds early: half a tick is near enough.
    const now = Math.round(performance.now() / TICK)
    for (let tick = this.#next; tick <= now; tick += 1) this.#end(tick)
    if (this.#count === 0) {
      this.#rest()
      return
    }
    let next = now + 1
    while (next < now + AHEAD && !this.#dueAt.has(next)) next += 1
    this.#wakeAt(next)
  }

  #end(tick: number): void {
    this.#last = tick
    const together = this.#dueAt.get(tick)
    if (together === undefined) return
    this.#dueAt.delete(tick)
    for (const item of together) {
      if (item.tick !== tick) continue
      item.tick = undefined
      this.#count -= 1
      this.#due(item)
    }
  }
}
