import type { Outcome, Prober } from './prober.ts'
import type { Slots } from './slots.ts'
import type { Target } from './target.ts'
import { Wheel } from './wheel.ts'

/** Intervals vary by so much of themselves, so that backends don't stay in step. */
const JITTER = 0.1

export type RoundsOptions = {
  prober: Prober
  slots: Slots
  /** How long a second of the settings is, in milliseconds. */
  second: number
  random: () => number
  result: (target: Target, outcome: Outcome, probe: { change: number; beganAt: number }) => void
  /** A probe couldn't be made, which says nothing about the backend. */
  impossible: (error: unknown) => void
}

/** Probes each target again and again, never twice at once, until it ends. */
export class Rounds {
  readonly #with: RoundsOptions
  readonly #waiting = new Wheel<Target>((target) => {
    this.#running.add(target)
    void this.#round(target)
  })
  /** No promises: of a map of them, each refilled thousands of times, old tables kept alive what was over. */
  readonly #running = new Set<Target>()
  #noneRuns: () => void = () => undefined

  constructor(options: RoundsOptions) {
    this.#with = options
  }

  /** Probes it for the first time (or next, if it is waiting for that) within some milliseconds. */
  schedule(target: Target, within: number): void {
    // One under way goes on by the settings of now when it is over.
    if (!this.#running.has(target)) this.#waiting.set(target, this.#with.random() * within)
  }

  stop(target: Target): void {
    this.#waiting.delete(target)
    target.end()
  }

  /** All targets having been stopped: resolves when no probe is under way any more. */
  async settled(): Promise<void> {
    if (this.#running.size === 0) return
    await new Promise<void>((resolve) => {
      this.#noneRuns = resolve
    })
  }

  async #round(target: Target): Promise<void> {
    const { slots, second, random, result, impossible } = this.#with
    const due = performance.now()
    if (slots.takeNow() || (await slots.take(target.ended))) {
      const probe = { change: target.change, beganAt: performance.now() }
      try {
        const outcome = await this.#ask(target)
        if (!target.ended.aborted) result(target, outcome, probe)
      } catch (error) {
        if (!target.ended.aborted) impossible(error)
      } finally {
        slots.give()
      }
    }
    this.#running.delete(target)
    if (this.#running.size === 0) this.#noneRuns()
    if (target.ended.aborted) return
    const interval = target.group.check.intervalSeconds * second
    const jittered = interval * (1 - JITTER + 2 * JITTER * random())
    this.#waiting.set(target, due + jittered - performance.now())
  }

  #ask(target: Target): Promise<Outcome> {
    const { prober, second } = this.#with
    const { probe, timeoutSeconds } = target.group.check
    const timeout = timeoutSeconds * second
    return probe.kind === 'tcp'
      ? prober.connect(target.address, target.port, timeout, target.ended)
      : prober.http(target.address, target.port, probe, timeout, target.ended)
  }
}
