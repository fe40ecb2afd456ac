import type { Store } from '../../db/client.ts'
import { recordHealth } from '../../domain/health/record.ts'
import { LeaseLost, type Ownership } from '../../domain/placements/ownership.ts'
import type { Logger } from '../logger.ts'
import { Slots } from './slots.ts'
import type { Group } from './target.ts'

/** Backends that fail together are written together: so long (ms) the first waits for others. */
const GATHER = 25
/** So many load balancers are written at a time: a store that is slow must not be asked by all at once. */
const AT_A_TIME = 4

type TransitionsOptions = {
  store: Store
  owner: Ownership
  /** How long (ms) a load balancer rests after a write. */
  rest: number
  leaseLost: () => void
  log: Logger
}

/** Writes transitions: the first of a load balancer at once, those that follow while it rests together. */
export class Transitions {
  readonly #with: TransitionsOptions
  readonly #slots = new Slots(AT_A_TIME)
  readonly #closing = new AbortController()
  readonly #timers = new Map<Group, NodeJS.Timeout>()
  readonly #writing = new Map<Group, Promise<void>>()

  constructor(options: TransitionsOptions) {
    this.#with = options
  }

  /** Something of it may have to be written. */
  look(group: Group): void {
    if (this.#closing.signal.aborted || this.#timers.has(group) || this.#writing.has(group)) return
    if (waiting(group).length === 0) return
    const hold = group.restsUntil - performance.now()
    const begin = () => {
      this.#timers.delete(group)
      const ended = () => {
        this.#writing.delete(group)
        // What couldn't be written, or came while others were.
        this.look(group)
      }
      this.#writing.set(group, this.#write(group, hold > 0 && group.restsForAll).finally(ended))
    }
    this.#timers.set(group, setTimeout(begin, Math.max(GATHER, hold)))
  }

  /** Whether it is being written at the moment. */
  isWriting(group: Group): boolean {
    return this.#writing.has(group)
  }

  /** Writes nothing more. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    await Promise.all(this.#writing.values())
  }

  /** `waited`: for a rest of the load balancer, which another cluster's owner may have begun anew. */
  async #write(group: Group, waited: boolean): Promise<void> {
    const { store, owner, rest, leaseLost, log } = this.#with
    if (!(await this.#slots.take(this.#closing.signal))) return
    const transitions = waiting(group)
    let forAll: number | undefined
    try {
      const pace = { rest, waited }
      const { marks, resting } = await recordHealth(store, owner, group, transitions, pace)
      forAll = resting
      const at = performance.now()
      for (const transition of transitions) {
        const mark = marks.get(transition.id)
        if (mark !== undefined) group.targets.get(transition.id)?.written(transition, mark, at)
      }
    } catch (error) {
      if (error instanceof LeaseLost) leaseLost()
      else log.warn({ err: error, loadBalancer: group.id }, 'health could not be written')
    } finally {
      this.#slots.give()
    }
    group.restsUntil = performance.now() + (forAll ?? rest)
    group.restsForAll = forAll !== undefined
  }
}

const waiting = (group: Group) =>
  [...group.targets.values()].flatMap((target) => target.transition() ?? [])
