import { retryDelay } from '../../src/clusters/backoff.ts'
import { ApiFailure, Unreachable } from '../../src/clusters/cluster.ts'
import type { Gates, Step } from './gates.ts'

/** The next thing to do about one object. */
export type Action = {
  step: Step
  /** Names by which the step can be held back: the rule's, its VIPs. */
  subjects: string[]
  /** `seen`: what it did shows in what is known already; `unseen`: a watch event will tell. */
  run(): Promise<'seen' | 'unseen'>
}

/** Says what is to be done about an object, given what is known now; undefined: nothing. */
export type Plan = (key: string) => Action | undefined

type Job = { woken: PromiseWithResolvers<void>; step: Step | undefined; since: number }

/** A stale write waits this long for the watch to bring what is new. */
const STALE_MS = 500

/**
 * Level-triggered work, one line per object: whenever an object was touched, its plan is asked and
 * its action done until there is none. Objects don't wait for each other.
 */
export class Jobs {
  readonly #plan: Plan
  readonly #gates: Gates
  readonly #jobs = new Map<string, Job>()
  readonly #running = new Set<Promise<void>>()
  readonly #closing = Promise.withResolvers<void>()
  #closed = false

  constructor(plan: Plan, gates: Gates) {
    this.#plan = plan
    this.#gates = gates
  }

  /** Something about the object changed: look again. */
  touch(key: string): void {
    if (this.#closed) return
    const job = this.#jobs.get(key)
    if (job !== undefined) {
      job.woken.resolve()
      return
    }
    const fresh: Job = { woken: Promise.withResolvers(), step: undefined, since: 0 }
    this.#jobs.set(key, fresh)
    const running = this.#work(key, fresh)
    this.#running.add(running)
    void running.finally(() => this.#running.delete(running))
  }

  /** Resolves when nothing runs any more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#closing.resolve()
    for (const job of this.#jobs.values()) job.woken.resolve()
    await Promise.all(this.#running)
  }

  async #work(key: string, job: Job): Promise<void> {
    let failures = 0
    // What touched the object may still be on its way through the other handlers of one event.
    await Promise.resolve()
    while (!this.#closed) {
      job.woken = Promise.withResolvers()
      const action = this.#plan(key)
      if (action === undefined) break
      if (job.step !== action.step) {
        job.step = action.step
        job.since = performance.now()
      }
      const { step, subjects } = action
      if (!(await this.#gates.pass(step, subjects, job.since, job.woken.promise))) continue
      try {
        const outcome = await action.run()
        failures = 0
        if (outcome === 'unseen') await this.#rest(STALE_MS, job)
      } catch (error) {
        if (!(error instanceof ApiFailure) && !(error instanceof Unreachable)) throw error
        const stale = error instanceof ApiFailure && (error.code === 409 || error.code === 404)
        failures = stale ? 0 : failures + 1
        await this.#rest(stale ? STALE_MS : retryDelay(failures, Math.random, undefined), job)
      }
    }
    this.#jobs.delete(key)
  }

  /** Waits until the object is touched again, at most `ms`. */
  async #rest(ms: number, job: Job): Promise<void> {
    const timer = Promise.withResolvers<void>()
    const handle = setTimeout(timer.resolve, ms)
    await Promise.race([timer.promise, job.woken.promise, this.#closing.promise])
    clearTimeout(handle)
  }
}
