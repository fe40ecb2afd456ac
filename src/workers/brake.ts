/** More than this share of what is known vanishing at once is not believed at first sight. */
const BRAKE = 0.3

/** `confirm`: a second look decides. `operator`: nothing is left, so that only an operator does. */
export type Verdict = 'believe' | 'confirm' | 'operator'

/** What to make of `vanished` of `known` objects being gone at once. */
export const verdictOn = (known: number, vanished: number): Verdict => {
  if (vanished <= known * BRAKE) return 'believe'
  return vanished < known ? 'confirm' : 'operator'
}

/** Decides whether a list that lacks much of what was known is believed. */
export class RelistBrake {
  /** What the last list lacked and was not believed. */
  held = 0
  #accepted = false

  believes(known: number, vanished: number): boolean {
    const verdict = verdictOn(known, vanished)
    // Two lists in a row say the same; an empty answer proves nothing, however often it is given.
    const believed =
      this.#accepted || verdict === 'believe' || (verdict === 'confirm' && this.held > 0)
    this.held = believed ? 0 : vanished
    if (believed) this.#accepted = false
    return believed
  }

  /** An operator says that the next list is right. */
  accept(): void {
    this.#accepted = this.held > 0
  }
}
