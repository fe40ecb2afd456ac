/**
 * Draws that are the same for the same seed. Who draws beside others has a chance of its own, made by
 * name: then it draws the same whatever the others do meanwhile.
 */
export class Chance {
  readonly #seed: number
  #state: number

  constructor(seed: number) {
    this.#seed = seed
    this.#state = seed
  }

  of(name: string): Chance {
    let seed = this.#seed
    for (const letter of name) seed = Math.imul(seed ^ (letter.codePointAt(0) ?? 0), 0x01000193)
    return new Chance(seed | 0)
  }

  /** From 0, below 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  below(bound: number): number {
    return Math.floor(this.next() * bound)
  }

  pick<T>(list: readonly T[]): T | undefined {
    return list[this.below(list.length)]
  }
}

/** The one of `SEED`, or another one each time. */
export const seedOf = (given: string | undefined): number =>
  given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given)
