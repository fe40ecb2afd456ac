import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'

/** What was asked for; `none`: what never became an operation. */
export type Kind = 'query' | 'mutation' | 'subscription' | 'none'
/** `refused`: a mutation was answered by a refusal. The errors are the caller's, or ours. */
export type RequestOutcome = 'ok' | 'refused' | 'client_error' | 'server_error'

/** Seconds: from what reading one takes to what nobody should wait for. */
const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5]
/** Seconds: the log is looked at every 250 ms where hints are lost. */
const LAGS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

/**
 * What an API process counts; docs/operate.md says what each is for. Labels have few values and never
 * anything of tenants.
 */
export class ApiMetrics {
  readonly registry = new Registry()
  readonly #requests: Counter<'kind' | 'outcome'>
  readonly #seconds: Histogram<'kind'>
  readonly #refusals: Counter<'code'>
  readonly #lag: Histogram

  constructor() {
    const registers = [this.registry]
    this.#requests = new Counter({
      name: 'nlb_requests_total',
      help: 'Operations by kind and outcome.',
      labelNames: ['kind', 'outcome'],
      registers,
    })
    this.#seconds = new Histogram({
      name: 'nlb_request_seconds',
      help: 'How long queries and mutations took, in seconds.',
      labelNames: ['kind'],
      buckets: BUCKETS,
      registers,
    })
    this.#refusals = new Counter({
      name: 'nlb_refusals_total',
      help: 'Refusals of mutations and errors of requests, by code.',
      labelNames: ['code'],
      registers,
    })
    this.#lag = new Histogram({
      name: 'nlb_event_lag_seconds',
      help: 'From an event to its delivery to the streams of this process, in seconds.',
      buckets: LAGS,
      registers,
    })
  }

  /** What the process itself takes of the machine: once per process. */
  ofProcess(): void {
    collectDefaultMetrics({ register: this.registry })
  }

  /** How many streams and sockets are open is asked at each scrape. */
  watch(open: { streams: () => number; sockets: () => number }): void {
    const gauge = (name: string, help: string, value: () => number) =>
      new Gauge({
        name,
        help,
        registers: [this.registry],
        collect() {
          this.set(value())
        },
      })
    gauge('nlb_open_streams', 'Subscriptions that are open.', open.streams)
    gauge('nlb_open_sockets', 'Websockets that are open.', open.sockets)
  }

  requested(kind: Kind, outcome: RequestOutcome, seconds: number): void {
    this.#requests.inc({ kind, outcome })
    if (kind === 'query' || kind === 'mutation') this.#seconds.observe({ kind }, seconds)
  }

  refused(code: string): void {
    this.#refusals.inc({ code })
  }

  /** Events were read of the log, this old. */
  delivered(lagSeconds: number): void {
    this.#lag.observe(lagSeconds)
  }
}
