import { found } from '../../rules/findings.ts'
import { REASONS } from '../../rules/reasons.ts'
import type { Finding } from '../../rules/report.ts'

/** What a vantage point outside found of one address, on the load balancer's port. */
export type VantageProbe = {
  vantage: string
  address: string
  reachable: boolean
  message: string | null
  /** RFC 3339, by the vantage point's clock. */
  at: string
}

/** So long (ms) a result counts: three rounds of a vantage point that takes its time (20 s). */
export const PROBE_COUNTS = 60_000

/** Those that are about now. */
export const fresh = (probes: VantageProbe[], now: string): VantageProbe[] =>
  probes.filter(({ at }) => Date.parse(now) - Date.parse(at) < PROBE_COUNTS)

/**
 * Whether clients outside reach an address. What was tried is better evidence than what follows from
 * clusters (`derived`); but where nothing comes through, and it is known why, that is said.
 */
export const reachability = (derived: Finding, probes: VantageProbe[]): Finding => {
  const through = probes.filter(({ reachable }) => reachable).length
  if (probes.length === 0) return derived
  if (through === probes.length) return found('TRUE', 'Probed', REASONS.Probed)
  if (through > 0) return found('UNKNOWN', 'VantagesDisagree', REASONS.VantagesDisagree)
  return derived.status === 'FALSE' ? derived : found('FALSE', 'ProbeFailed', REASONS.ProbeFailed)
}
