import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Mishandled } from '../clusters/kubernetes.ts'
import type { ApiCall } from '../clusters/transport.ts'
import { LEASE_SECONDS } from '../domain/placements/leases.ts'
import type { Observer, ProbeOutcome } from './observer.ts'

/** Seconds: a write takes milliseconds, a call is given up after 8 s. */
const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10]

/**
 * What a worker process counts; docs/operate.md says what each is for. Labels have few values: names
 * of clusters at the most, and never anything of tenants.
 */
export class WorkerMetrics implements Observer {
  readonly registry = new Registry()
  readonly #calls: Histogram<'cluster' | 'method' | 'outcome'>
  readonly #reconciles: Histogram<'cluster' | 'outcome'>
  readonly #mishandled: Counter<'cluster' | 'kind'>
  readonly #renewals: Counter<'outcome'>
  readonly #leases: Gauge
  readonly #probes: Counter<'outcome'>
  #renewedAt: number | undefined

  constructor() {
    const registers = [this.registry]
    this.#calls = new Histogram({
      name: 'nlb_cluster_call_seconds',
      help: "Calls to clusters' API servers, in seconds; of a watch, until it begins.",
      labelNames: ['cluster', 'method', 'outcome'],
      buckets: BUCKETS,
      registers,
    })
    this.#reconciles = new Histogram({
      name: 'nlb_reconcile_seconds',
      help: 'Placements that were looked at, in seconds.',
      labelNames: ['cluster', 'outcome'],
      buckets: BUCKETS,
      registers,
    })
    this.#mishandled = new Counter({
      name: 'nlb_mishandled_total',
      help: "News of clusters' objects that could not be handled, each time it was tried.",
      labelNames: ['cluster', 'kind'],
      registers,
    })
    this.#renewals = new Counter({
      name: 'nlb_lease_renewals_total',
      help: 'Renewals of leases by outcome.',
      labelNames: ['outcome'],
      registers,
    })
    this.#leases = new Gauge({
      name: 'nlb_leases_held',
      help: 'Clusters that this process serves.',
      registers,
    })
    this.#probes = new Counter({
      name: 'nlb_probes_total',
      help: 'Probes of backends by outcome.',
      labelNames: ['outcome'],
      registers,
    })
  }

  /** What the process itself takes of the machine: once per process. */
  ofProcess(): void {
    collectDefaultMetrics({ register: this.registry })
  }

  called(cluster: string, { method, status, seconds }: ApiCall): void {
    const outcome = status === undefined ? 'unreachable' : `${Math.floor(status / 100)}xx`
    this.#calls.observe({ cluster, method, outcome }, seconds)
  }

  mishandled({ cluster, kind }: Mishandled): void {
    this.#mishandled.inc({ cluster, kind })
  }

  renewed(held: number): void {
    this.#renewedAt = performance.now()
    this.#renewals.inc({ outcome: 'ok' })
    this.#leases.set(held)
  }

  renewalFailed(): void {
    this.#renewals.inc({ outcome: 'failed' })
  }

  reconciled(cluster: string, outcome: 'written' | 'unchanged' | 'failed', seconds: number): void {
    this.#reconciles.observe({ cluster, outcome }, seconds)
  }

  probed(outcome: ProbeOutcome): void {
    this.#probes.inc({ outcome })
  }

  /** Why the process can't do its work now; undefined where it can: leases of before may be over by then. */
  missing(now = performance.now()): string | undefined {
    if (this.#renewedAt === undefined) return 'no lease has been asked for yet'
    const seconds = (now - this.#renewedAt) / 1000
    if (seconds < LEASE_SECONDS) return undefined
    return `leases have not been renewed for ${Math.round(seconds)} s`
  }
}
