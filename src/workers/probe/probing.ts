import { isDeepStrictEqual } from 'node:util'
import type { Store } from '../../db/client.ts'
import {
  type ProbedLoadBalancer,
  readNotProbed,
  readProbed,
  readProbedMarks,
} from '../../domain/health/probed.ts'
import { recordHealth } from '../../domain/health/record.ts'
import { recordStreaks } from '../../domain/health/streaks.ts'
import { LeaseLost, type Ownership } from '../../domain/placements/ownership.ts'
import { REST } from '../../domain/rests.ts'
import { REASONS } from '../../rules/reasons.ts'
import type { Logger } from '../logger.ts'
import type { Prober } from './prober.ts'
import { Rounds } from './rounds.ts'
import type { Slots } from './slots.ts'
import { type Group, groupOf, Target } from './target.ts'
import { Transitions } from './transitions.ts'
import { Trust } from './trust.ts'

/** What is to be probed is read this often (s), or less often so that reading takes a small share of time. */
const READ = 1
const READING_SHARE = 1 / 20
/** Where nobody probes it is looked this often (s): only an endpoint that moved there makes a difference. */
const DISCLAIM = 5
/** Streaks and last probe times are written this often (s). */
const WRITE_STREAKS = 5
/** Backends that come later are probed for the first time within so many milliseconds each. */
const APART = 10

export type ProbingOptions = {
  store: Store
  owner: Ownership
  /** Whether an operator said that the cluster's backends can be reached from here. */
  hasProber: boolean
  prober: Prober
  slots: Slots
  leaseLost: () => void
  log: Logger
  random?: () => number
  /** How long a second of settings and pauses is, in milliseconds: tests hurry. */
  second?: number
  /** Milliseconds since 1970: for what outlives this worker. */
  now?: () => number
}

/**
 * Probes the backends of one cluster for as long as its owner has the lease. Where no prober stands it
 * only sees to it that their health says so.
 */
export class Probing {
  readonly #with: ProbingOptions
  readonly #second: number
  readonly #now: () => number
  readonly #groups = new Map<string, Group>()
  readonly #trust = new Trust()
  readonly #rounds: Rounds
  readonly #transitions: Transitions
  readonly #closing = new AbortController()
  readonly #probed = new Set<Target>()
  readonly #leftBehind = new Set<string>()
  readonly #following: Promise<void>
  readonly #streaks: NodeJS.Timeout
  #writingStreaks: Promise<void> | undefined
  #hasProber: boolean
  /** Nothing was read yet: the first probes are spread over a whole interval. */
  #first = true
  #wake: () => void = () => undefined
  #impossible = 0

  constructor(options: ProbingOptions) {
    const { store, owner, prober, slots, leaseLost, log, random = Math.random } = options
    this.#with = options
    this.#hasProber = options.hasProber
    const second = options.second ?? 1_000
    this.#second = second
    this.#now = options.now ?? Date.now
    const rest = (REST * second) / 1_000
    this.#transitions = new Transitions({ store, owner, rest, leaseLost, log })
    this.#rounds = new Rounds({
      prober,
      slots,
      second,
      random,
      result: (target, outcome, probe) => {
        this.#trust.note(target.id, target.group.id, outcome.ok, performance.now())
        target.judge(outcome, probe, this.#trust)
        this.#probed.add(target)
        if (target.transition() !== undefined) this.#transitions.look(target.group)
      },
      impossible: (error) => {
        // One line for all of a while: what is lacking is lacking for all of them.
        if (this.#impossible === 0) log.warn({ err: error }, 'a probe could not be made')
        this.#impossible += 1
      },
    })
    this.#streaks = setInterval(() => void this.#writeStreaks(), WRITE_STREAKS * second)
    this.#following = this.#follow()
  }

  /** An operator may have said something else. */
  set hasProber(hasProber: boolean) {
    if (hasProber === this.#hasProber) return
    this.#hasProber = hasProber
    if (!hasProber) this.#keepOnly(new Set())
    this.#first = true
    this.#wake()
  }

  /** Resolves when no probe and no write is under way any more. */
  async close(): Promise<void> {
    this.#closing.abort()
    clearInterval(this.#streaks)
    this.#wake()
    await this.#following
    for (const group of this.#groups.values()) {
      for (const target of group.targets.values()) this.#rounds.stop(target)
    }
    await Promise.all([this.#rounds.settled(), this.#transitions.close()])
    await this.#writingStreaks
    await this.#writeStreaks()
  }

  async #follow(): Promise<void> {
    const { leaseLost, log } = this.#with
    while (!this.#closing.signal.aborted) {
      const began = performance.now()
      const hasProber = this.#hasProber
      try {
        if (hasProber) await this.#read(began)
        else await this.#disclaim()
      } catch (error) {
        if (error instanceof LeaseLost) leaseLost()
        else log.warn({ err: error }, 'what is to be probed could not be read')
      }
      // Something else was said meanwhile, when nobody paused who could be woken.
      if (hasProber !== this.#hasProber) continue
      const took = performance.now() - began
      const apart = (hasProber ? READ : DISCLAIM) * this.#second
      await this.#pause(Math.max(apart, took / READING_SHARE))
    }
  }

  async #read(at: number): Promise<void> {
    const { store, owner } = this.#with
    const marks = await readProbedMarks(store, owner.cluster)
    const others = [...marks].flatMap(([id, mark]) =>
      this.#groups.get(id)?.mark === mark ? [] : id,
    )
    const read = await readProbed(store, owner.cluster, others)
    if (this.#closing.signal.aborted || !this.#hasProber) return
    this.#keepOnly(marks)
    this.#apply(read, at)
    this.#first = false
  }

  /** Of load balancers; the others are not probed any more. */
  #keepOnly(present: { has(id: string): boolean }): void {
    for (const [id, group] of this.#groups) {
      if (present.has(id)) continue
      for (const target of group.targets.values()) this.#stop(target)
      this.#groups.delete(id)
    }
  }

  /** Takes over what the store says of some, read from the instant `at` on. */
  #apply(read: ProbedLoadBalancer[], at: number): void {
    const added = read.flatMap((loadBalancer) => this.#applyOne(loadBalancer, at))
    for (const target of added) {
      const interval = target.group.check.intervalSeconds * this.#second
      const apart = Math.min(interval, added.length * APART)
      this.#rounds.schedule(target, this.#first ? interval : apart)
    }
  }

  /** Answers those that are to be probed from now on. */
  #applyOne(read: ProbedLoadBalancer, at: number): Target[] {
    const { id, rulesGeneration, port, healthCheck, backends } = read
    const group = this.#groups.get(id) ?? groupOf(read)
    this.#groups.set(id, group)
    const before = { port: group.port, check: group.check }
    Object.assign(group, { rulesGeneration, port, check: healthCheck })
    const otherwise =
      before.port !== port || !isDeepStrictEqual(before.check.probe, healthCheck.probe)
    const paced = before.check.intervalSeconds !== healthCheck.intervalSeconds
    const writing = this.#transitions.isWriting(group)
    const present = new Set(backends.map((backend) => backend.id))
    for (const target of group.targets.values()) {
      if (!present.has(target.id)) this.#stop(target)
      else if (paced) this.#rounds.schedule(target, healthCheck.intervalSeconds * this.#second)
    }
    const added = backends.flatMap((backend) => {
      const target = group.targets.get(backend.id)
      if (target === undefined) {
        const made = new Target(group, backend, this.#now)
        group.targets.set(made.id, made)
        return [made]
      }
      if (otherwise) target.askedOtherwise()
      if (!writing) target.refresh(backend, at)
      return []
    })
    // Where what the store says couldn't be taken over, because of a write of ours, it is read again.
    const taken = backends.every((backend) => group.targets.get(backend.id)?.mark === backend.mark)
    group.mark = taken ? read.mark : undefined
    this.#transitions.look(group)
    return added
  }

  #stop(target: Target): void {
    this.#rounds.stop(target)
    this.#trust.forget(target.id)
    this.#probed.delete(target)
    this.#leftBehind.add(target.id)
    target.group.targets.delete(target.id)
  }

  /** Where nobody can probe, health says so. */
  async #disclaim(): Promise<void> {
    const { store, owner } = this.#with
    const health = { state: 'NOT_CHECKED', reason: 'NoProber', message: REASONS.NoProber } as const
    for (const loadBalancer of await readNotProbed(store, owner.cluster)) {
      const transitions = loadBalancer.backends.map(({ id, mark }) => ({
        id,
        known: mark,
        ...health,
      }))
      await recordHealth(store, owner, loadBalancer, transitions)
    }
  }

  async #writeStreaks(): Promise<void> {
    this.#writingStreaks ??= this.#writeThem().finally(() => {
      this.#writingStreaks = undefined
    })
    await this.#writingStreaks
  }

  async #writeThem(): Promise<void> {
    const { store, log } = this.#with
    if (this.#impossible > 1) log.warn({ probes: this.#impossible }, 'probes could not be made')
    this.#impossible = 0
    const probed = [...this.#probed]
    const leftBehind = [...this.#leftBehind]
    if (probed.length + leftBehind.length === 0) return
    this.#probed.clear()
    this.#leftBehind.clear()
    try {
      const streaks = probed.flatMap((target) => target.streak() ?? [])
      await recordStreaks(store, streaks, leftBehind)
    } catch (error) {
      // Written with the next ones, but for those that are not probed any more.
      log.warn({ err: error }, 'streaks could not be written')
      for (const target of probed) if (!target.ended.aborted) this.#probed.add(target)
      for (const id of leftBehind) this.#leftBehind.add(id)
    }
  }

  async #pause(milliseconds: number): Promise<void> {
    if (this.#closing.signal.aborted) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
