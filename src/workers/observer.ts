import type { Outcome, ProbeFailure, Prober } from './probe/prober.ts'

/** How a probe ended; `impossible`: it says nothing about the backend. */
export type ProbeOutcome = 'ok' | ProbeFailure | 'impossible'

/** Told of what workers do, as it happens. Cheap, and must not throw. */
export type Observer = {
  /** Leases were renewed: so many clusters are served from here now. */
  renewed(held: number): void
  renewalFailed(): void
  /** A placement was looked at, in a cluster of this name; `failed`: it is tried again later. */
  reconciled(cluster: string, outcome: 'written' | 'unchanged' | 'failed', seconds: number): void
  probed(outcome: ProbeOutcome): void
}

/** Where nobody wants to know. */
export const UNOBSERVED: Observer = {
  renewed: () => undefined,
  renewalFailed: () => undefined,
  reconciled: () => undefined,
  probed: () => undefined,
}

/** The same prober, with an observer told of each probe that ended before it was cut. */
export function observed(prober: Prober, observer: Observer): Prober {
  const told = async (probe: Promise<Outcome>, signal: AbortSignal): Promise<Outcome> => {
    try {
      const outcome = await probe
      observer.probed(outcome.ok ? 'ok' : outcome.reason)
      return outcome
    } catch (error) {
      if (!signal.aborted) observer.probed('impossible')
      throw error
    }
  }
  return {
    connect: (address, port, timeout, signal) =>
      told(prober.connect(address, port, timeout, signal), signal),
    http: (address, port, question, timeout, signal) =>
      told(prober.http(address, port, question, timeout, signal), signal),
  }
}
