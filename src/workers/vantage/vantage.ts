import { setTimeout as after } from 'node:timers/promises'
import type { Logger } from '../logger.ts'
import type { Outcome, Prober } from '../probe/prober.ts'
import { Slots } from '../probe/slots.ts'
import type { Result, Target, VantageApi } from './api.ts'

/** So many connections may be tried at once. */
const AT_ONCE = 128
/** A connection that takes longer (ms) fails. */
const TIMEOUT = 5_000
/** Where so many are tried and none comes through, it is the vantage point that is cut off. */
const TOO_MANY_TO_FAIL = 10

export type VantageOptions = {
  api: VantageApi
  /** Names this vantage point in what it reports. */
  name: string
  /** From the beginning of one round to that of the next, in ms, give or take a tenth. */
  interval: number
  connect: Prober['connect']
  log: Pick<Logger, 'info' | 'warn'>
  random?: () => number
}

/**
 * Tries every address of every load balancer from where it stands, round after round, and reports what
 * came of it, until closed. What fails in a round is logged; the next round begins anew.
 */
export const startVantage = (options: VantageOptions): { close(): Promise<void> } => {
  const { interval, log, random = Math.random } = options
  const closing = new AbortController()
  const { signal } = closing
  const rounds = async () => {
    while (!signal.aborted) {
      const began = performance.now()
      try {
        await round(options, signal)
      } catch (error) {
        if (signal.aborted) return
        log.warn({ err: error }, 'a round of probes from outside failed')
      }
      const rest = began + interval * (0.9 + 0.2 * random()) - performance.now()
      await after(Math.max(rest, 0), undefined, { signal }).catch(() => undefined)
    }
  }
  const running = rounds()
  return {
    async close() {
      closing.abort()
      await running
    },
  }
}

const round = async (options: VantageOptions, signal: AbortSignal): Promise<void> => {
  const { api, name, interval, log } = options
  const targets = await api.targets(signal)
  const slots = new Slots(AT_ONCE)
  // No burst: they begin one after the other within half of the interval.
  const step = interval / 2 / Math.max(targets.length, 1)
  const tried = await Promise.all(
    targets.map(async (target, index) => {
      await after(step * index, undefined, { signal })
      return attempt(target, options, slots, signal)
    }),
  )
  const results = tried.filter((result) => result !== undefined)
  if (results.length >= TOO_MANY_TO_FAIL && results.every(({ reachable }) => !reachable)) {
    log.warn({ tried: results.length }, 'nothing came through, so nothing is reported')
    return
  }
  const accepted = await api.report(name, results, signal)
  log.info({ tried: results.length, accepted }, 'a round of probes from outside was reported')
}

/** undefined: this machine lacked what a connection needs. */
const attempt = async (
  { address, port }: Target,
  { connect, log }: VantageOptions,
  slots: Slots,
  signal: AbortSignal,
): Promise<Result | undefined> => {
  if (!(await slots.take(signal))) return undefined
  try {
    const outcome: Outcome = await connect(address, port, TIMEOUT, signal)
    const at = new Date().toISOString()
    const message = outcome.ok ? null : outcome.message
    return { address, port, reachable: outcome.ok, message, at }
  } catch (error) {
    signal.throwIfAborted()
    log.warn({ err: error, address }, 'a connection could not be tried')
    return undefined
  } finally {
    slots.give()
  }
}
