/** A worker's process in production: `npm run worker`. */
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
import { openStore } from '../db/client.ts'
import { DirectProber } from './probe/directProber.ts'
import type { Prober } from './probe/prober.ts'
import { startWorkers, type Workers } from './workers.ts'

/** Connections to PostgreSQL: a cluster's reconciling, reporting and probing share them. */
const CONNECTIONS = 20

/**
 * Serves clusters until closed. `prober`: where backends are asked from; this machine itself where
 * none is given, so it must stand where the VPCs' addresses are reached (docs/health.md).
 */
export async function runWorker(
  environment: Environment,
  options: { prober?: Prober } = {},
): Promise<Workers> {
  const connectionString = requireDatabaseUrl(environment)
  if (environment.kubeconfig.length === 0) {
    throw new ConfigurationError('KUBECONFIG', 'one or several kubeconfig files')
  }
  const log = pino({ name: 'worker', level: environment.logLevel })
  const kubeconfig = await Kubeconfig.open(environment.kubeconfig.join(':'), {
    onProblem: (error) => log.error({ err: error }, 'the kubeconfig could not be read'),
  })
  const store = openStore({
    connectionString,
    maxConnections: CONNECTIONS,
    onError: (error) => log.warn({ err: error }, 'an idle connection to the database broke'),
  })
  const fleet = new Fleet(kubeconfig, {
    onHandlerError: (error) => log.error({ err: error }, 'a follow handler failed'),
  })
  const prober = options.prober ?? new DirectProber()
  const eventDays = environment.eventRetentionDays
  const workers = startWorkers({ store, fleet, log, prober, eventDays })
  return {
    renew: () => workers.renew(),
    async close() {
      await workers.close()
      await fleet.close()
      kubeconfig.close()
      await store.close()
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
