import { REASONS } from '../../rules/reasons.ts'
import type { HealthCheckSettings, HealthState } from '../records.ts'
import { type Flaps, isHeld, STEADY, turnedUnhealthy } from './flapping.ts'

/** Why a probed backend's health is as it is. */
export type HealthReason =
  | 'Healthy'
  | 'Unhealthy'
  | 'Flapping'
  | 'NotProbedYet'
  | 'ProberDistrusted'

/** What is known of a backend from its probes so far. */
export type History = {
  state: Exclude<HealthState, 'NOT_CHECKED'>
  reason: HealthReason
  /** In a tenant's words. */
  message: string
  /** In a row, up to the last probe; one of the two is 0. */
  successes: number
  failures: number
  flaps: Flaps
  /** Counts changes of what is probed: the admin state, the port, the way of asking. */
  change: number
}

export type ProbeResult = ({ ok: true } | { ok: false; message: string }) & {
  /** `History.change` when the probe began. */
  change: number
  /** When it ended, in milliseconds since 1970. */
  at: number
}

/** A backend that nobody has probed yet. It serves. */
export const unprobed = (change: number): History => ({
  state: 'UNKNOWN',
  reason: 'NotProbedYet',
  message: REASONS.NotProbedYet,
  successes: 0,
  failures: 0,
  flaps: STEADY,
  change,
})

/**
 * What a probe's result makes of a backend: `rise` successes in a row make it healthy, `fall` failures
 * in a row unhealthy, from UNKNOWN too; a single other result begins the count anew. Other settings
 * count from the next result on and reset nothing. A probe that began before the last change says
 * nothing. Where the prober isn't believed a backend isn't made unhealthy: it is UNKNOWN, and serves.
 * One that comes and goes too often is held out: unhealthy for a while, whatever its probes say.
 */
export function judge(
  settings: Pick<HealthCheckSettings, 'rise' | 'fall'>,
  before: History,
  result: ProbeResult,
  believed: boolean,
): History {
  if (result.change !== before.change) return before
  const held = isHeld(before.flaps, result.at)
  if (result.ok) {
    const successes = before.successes + 1
    const counted = { ...before, successes, failures: 0 }
    if (before.state === 'HEALTHY' || successes < settings.rise || held) return counted
    return { ...counted, state: 'HEALTHY', reason: 'Healthy', message: REASONS.Healthy }
  }
  const failures = before.failures + 1
  const counted = { ...before, successes: 0, failures }
  if (failures < settings.fall) return counted
  if (before.state === 'UNHEALTHY') {
    // Its time is over and it fails still: it is no more than that.
    return before.reason === 'Flapping' && !held ? failing(counted, result.message) : counted
  }
  if (!believed) {
    const message = REASONS.ProberDistrusted
    return { ...counted, state: 'UNKNOWN', reason: 'ProberDistrusted', message }
  }
  if (before.state !== 'HEALTHY') return failing(counted, result.message)
  const flaps = turnedUnhealthy(before.flaps, result.at)
  return flaps.heldUntil === null
    ? failing({ ...counted, flaps }, result.message)
    : heldOut({ ...counted, flaps }, result.message, flaps.heldUntil)
}

const failing = (history: History, message: string): History => ({
  ...history,
  state: 'UNHEALTHY',
  reason: 'Unhealthy',
  message,
})

const heldOut = (history: History, message: string, until: number): History => ({
  ...history,
  state: 'UNHEALTHY',
  reason: 'Flapping',
  message: `${message} It came and went too often, so it is held out until ${new Date(until).toISOString()}.`,
})
