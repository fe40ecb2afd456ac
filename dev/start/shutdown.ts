/** One part of the whole, ended in the order opposite to that in which they were begun. */
type Part = { name: string; stop(): Promise<void>; patienceMs: number }

/** What has been started, and how it ends: in order, each within its time, and once. */
export class Shutdown {
  readonly #parts: Part[] = []
  #ending: Promise<void> | undefined

  /** `stop` may take `patienceMs`; then the next part's turn comes all the same. */
  add(name: string, patienceMs: number, stop: () => Promise<void>): void {
    this.#parts.push({ name, stop, patienceMs })
  }

  get begun(): boolean {
    return this.#ending !== undefined
  }

  end(): Promise<void> {
    this.#ending ??= this.#end()
    return this.#ending
  }

  async #end(): Promise<void> {
    for (let part = this.#parts.pop(); part !== undefined; part = this.#parts.pop()) {
      const { promise: late, resolve } = Promise.withResolvers<string>()
      const timer = setTimeout(() => resolve('it takes too long'), part.patienceMs)
      const ended = part.stop().then(
        () => undefined,
        (error: unknown) => String(error),
      )
      const problem = await Promise.race([ended, late])
      clearTimeout(timer)
      if (problem !== undefined) console.error(`Stopping ${part.name}: ${problem}.`)
    }
  }
}

/** A press of Ctrl-C may come twice: from the terminal's group, and passed on by npm. */
const SAME_PRESS_MS = 500

/** Calls `first` at the first signal to end, and `again` when somebody insists. */
export function onSignals(first: () => void, again: () => void): void {
  let pressed: number | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      const now = performance.now()
      if (pressed === undefined) {
        pressed = now
        first()
      } else if (now - pressed > SAME_PRESS_MS) {
        again()
      }
    })
  }
}
