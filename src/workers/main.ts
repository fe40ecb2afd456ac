/** A worker's process in production: `npm run worker`. */
import { delimiter } from 'node:path'
import { pino } from 'pino'
import { Fleet } from '../clusters/fleet.ts'
import { Kubeconfig } from '../clusters/kubeconfig.ts'
import {
  ConfigurationError,
  type Environment,
  orExplain,
  readEnvironment,
  requireDatabaseUrl,
} from '../config/environment.ts'
import { whyForeign } from '../db/answering.ts'
import { openStore } from '../db/client.ts'
import { readFigures } from '../domain/operators/figures.ts'
import { serveDiagnostics } from '../telemetry/diagnostics.ts'
import { showFigures } from '../telemetry/figures.ts'
import { WorkerMetrics } from './metrics.ts'
import { DirectProber } from './probe/directProber.ts'
import type { Prober } from './probe/prober.ts'
import { startWorkers, type Workers } from './workers.ts'

/** Connections to PostgreSQL: a cluster's reconciling, reporting and probing share them. */
const CONNECTIONS = 20
const METRICS_PORT = 9_091
const OURS = 'a database that this build migrates'

export type RunningWorkers = Workers & {
  /** Where metrics, liveness and readiness are; undefined where they are turned off. */
  diagnostics: string | undefined
}

/**
 * Serves clusters until closed. `prober`: where backends are asked from; this machine itself where
 * none is given, so it must stand where the VPCs' addresses are reached (docs/health.md).
 */
export async function runWorker(
  environment: Environment,
  options: { prober?: Prober } = {},
): Promise<RunningWorkers> {
  const connectionString = requireDatabaseUrl(environment)
  if (environment.kubeconfig.length === 0) {
    throw new ConfigurationError('KUBECONFIG', 'one or several kubeconfig files')
  }
  const log = pino({ name: 'worker', level: environment.logLevel })
  const kubeconfig = await Kubeconfig.open(environment.kubeconfig.join(delimiter), {
    onProblem: (error) => log.error({ err: error }, 'the kubeconfig could not be read'),
  }).catch((error: unknown) => {
    const found = error instanceof Error ? error.message : String(error)
    throw new ConfigurationError('KUBECONFIG', 'one or several kubeconfig files', found)
  })
  const store = openStore({
    connectionString,
    maxConnections: CONNECTIONS,
    onError: (error) => log.warn({ err: error }, 'an idle connection to the database broke'),
  })
  const foreign = await whyForeign(store)
  if (foreign !== undefined) {
    kubeconfig.close()
    await store.close()
    throw new ConfigurationError('DATABASE_URL', `${OURS}; ${foreign}`)
  }
  const metrics = new WorkerMetrics()
  metrics.ofProcess()
  showFigures(metrics.registry, () => readFigures(store))
  const { metricsPort = METRICS_PORT } = environment
  const fleet = new Fleet(kubeconfig, {
    onCall: (cluster, call) => metrics.called(cluster, call),
    onHandlerError: (error, about) => {
      metrics.mishandled(about)
      log.error(
        { err: error, ...about },
        'news of an object could not be handled; it is tried again',
      )
    },
  })
  const closeStores = async () => {
    await fleet.close()
    kubeconfig.close()
    await store.close()
  }
  const diagnostics =
    metricsPort === 0
      ? undefined
      : await serveDiagnostics({
          host: environment.host ?? '0.0.0.0',
          port: metricsPort,
          registry: metrics.registry,
          missing: async () => metrics.missing(),
          unusable: (expected) =>
            new ConfigurationError('METRICS_PORT', expected, String(metricsPort)),
        }).catch(async (error: unknown) => {
          await closeStores()
          throw error
        })
  const prober = options.prober ?? new DirectProber()
  const eventDays = environment.eventRetentionDays
  const workers = startWorkers({ store, fleet, log, prober, eventDays, observer: metrics })
  return {
    diagnostics: diagnostics?.url,
    renew: () => workers.renew(),
    async close() {
      await workers.close()
      await diagnostics?.close()
      await closeStores()
    },
  }
}

async function main(): Promise<void> {
  const workers = await runWorker(readEnvironment(process.env))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void workers.close())
  }
}

if (import.meta.main) await orExplain(main)
