import { STEADY } from '../../domain/health/flapping.ts'
import { type HealthReason, type History, judge, unprobed } from '../../domain/health/judge.ts'
import type { ProbedBackend, ProbedLoadBalancer } from '../../domain/health/probed.ts'
import type { Transition } from '../../domain/health/record.ts'
import type { HealthCheckSettings } from '../../domain/records.ts'
import { REASONS } from '../../rules/reasons.ts'
import type { Outcome } from './prober.ts'
import type { Trust } from './trust.ts'
import type { Turning } from './wheel.ts'

/** A load balancer of which backends are probed. */
export type Group = {
  readonly id: string
  rulesGeneration: number
  port: number
  check: HealthCheckSettings
  readonly targets: Map<string, Target>
  /** Of all that was taken over from the store; undefined: something wasn't. */
  mark: string | undefined
  /** An instant of `performance.now`: what would be written before is written together then. */
  restsUntil: number
  /** It rests for all clusters; otherwise only to write less often. */
  restsForAll: boolean
}

/** One that nothing is probed of yet. */
export const groupOf = ({ id, rulesGeneration, port, healthCheck }: ProbedLoadBalancer): Group => ({
  id,
  rulesGeneration,
  port,
  check: healthCheck,
  targets: new Map(),
  mark: undefined,
  restsUntil: Number.NEGATIVE_INFINITY,
  restsForAll: false,
})

const JUDGED: ReadonlySet<string> = new Set<HealthReason>([
  'Healthy',
  'Unhealthy',
  'Flapping',
  'NotProbedYet',
  'ProberDistrusted',
])
const isJudged = (reason: string): reason is HealthReason => JUDGED.has(reason)

type Stored = Pick<ProbedBackend, 'state' | 'reason' | 'flaps'>

/** A backend that is probed: what the store says of its health, and what the probes since say. */
export class Target implements Turning {
  /** When it is probed next. */
  tick: number | undefined
  readonly id: string
  readonly address: string
  readonly group: Group
  readonly #ending = new AbortController()
  #stored: Stored & Pick<ProbedBackend, 'mark'>
  #history: History
  /** Successes in a row since then. */
  #further = 0
  #writtenAt = Number.NEGATIVE_INFINITY
  #failingSince: number | undefined
  #lastProbedAt: number | undefined
  #lastFailure: string | null = null
  #lastBeganAt: number | undefined
  readonly #now: () => number

  constructor(group: Group, backend: ProbedBackend, now: () => number) {
    this.id = backend.id
    this.address = backend.address
    this.group = group
    this.#now = now
    this.#stored = backend
    this.#history = begun(backend, 0)
  }

  /** Aborted when it isn't probed any more. */
  get ended(): AbortSignal {
    return this.#ending.signal
  }

  get port(): number {
    return this.group.check.probe.port ?? this.group.port
  }

  /** What the store says of it, as it tells one state from another. */
  get mark(): string {
    return this.#stored.mark
  }

  /** Names what is probed now: a probe that began under another number isn't judged. */
  get change(): number {
    return this.#history.change
  }

  end(): void {
    this.#ending.abort()
  }

  /**
   * Another port or way of asking: probes under way say nothing, and what the store knows stays. What
   * was about to be written was judged from the former way.
   */
  askedOtherwise(): void {
    const change = this.#history.change + 1
    if (this.transition()) this.#begin(change)
    else this.#history = { ...this.#history, change }
  }

  /** What the store says, read from the instant `readAt` on. What others wrote begins anew. */
  refresh(backend: ProbedBackend, readAt: number): void {
    if (backend.mark === this.#stored.mark || this.#writtenAt >= readAt) return
    this.#stored = backend
    this.#begin(this.#history.change + 1)
    this.#failingSince = undefined
  }

  /** From what the store says. */
  #begin(change: number): void {
    this.#history = begun(this.#stored, change)
    this.#further = 0
  }

  /** Judges a probe that began at `beganAt` (ms) under the number `change`. */
  judge(outcome: Outcome, probe: { change: number; beganAt: number }, trust: Trust): void {
    if (probe.change !== this.change) return
    const at = this.#now()
    this.#lastProbedAt = at
    const { check } = this.group
    // One failure alone is weighed against what succeeded since the probe before it.
    const before = check.fall === 1 ? (this.#lastBeganAt ?? probe.beganAt) : probe.beganAt
    this.#failingSince = outcome.ok ? undefined : (this.#failingSince ?? before)
    this.#lastBeganAt = probe.beganAt
    this.#lastFailure = outcome.ok ? null : sentence(outcome.message)
    // What most probes come to. A history made for each of them is what collecting garbage took longest for.
    if (outcome.ok && this.#history.state === 'HEALTHY' && this.#history.failures === 0) {
      this.#further += 1
      return
    }
    const believed = trust.believes(this.#failingSince ?? before)
    const about = { change: probe.change, at }
    const result =
      this.#lastFailure === null
        ? { ok: true as const, ...about }
        : { ok: false as const, message: this.#lastFailure, ...about }
    this.#history = judge(check, this.#history, result, believed)
    this.#further = 0
  }

  /** What has to be written; undefined: the store has it already. */
  transition(): Transition | undefined {
    const { state, reason, message, flaps } = this.#history
    const stored = this.#stored
    const held = flaps.heldUntil === (stored.flaps ?? STEADY).heldUntil
    if (state === stored.state && reason === stored.reason && held) return undefined
    return { id: this.id, known: stored.mark, state, reason, message, flaps }
  }

  /** A transition was written, and the store's mark is this now. */
  written({ state, reason, flaps }: Transition, mark: string, at: number): void {
    this.#stored = { state, reason, flaps: flaps ?? null, mark }
    this.#writtenAt = at
  }

  /** undefined: not probed yet since it began. */
  streak() {
    if (this.#lastProbedAt === undefined) return undefined
    const { successes, failures } = this.#history
    return {
      id: this.id,
      at: this.#lastProbedAt,
      successes: successes + this.#further,
      failures,
      lastFailure: this.#lastFailure,
    }
  }
}

/** Streaks aren't taken over from an earlier owner: a worker believes what it saw by itself. */
function begun({ state, reason, flaps }: Stored, change: number): History {
  const fresh = unprobed(change)
  if (state === 'NOT_CHECKED' || !isJudged(reason)) return fresh
  return { ...fresh, state, reason, message: REASONS[reason], flaps: flaps ?? fresh.flaps }
}

const sentence = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`
