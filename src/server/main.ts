/** The API's process in production: `npm run api`. */
import { pino } from 'pino'
import {
  ConfigurationError,
  type Environment,
  orExplain,
  readEnvironment,
  requireDatabaseUrl,
  requireIdentityProvider,
} from '../config/environment.ts'
import { whyForeign, whyUnusable } from '../db/answering.ts'
import { openStore } from '../db/client.ts'
import { readFigures } from '../domain/operators/figures.ts'
import { type Diagnostics, serveDiagnostics } from '../telemetry/diagnostics.ts'
import { showFigures } from '../telemetry/figures.ts'
import type { Identify } from './caller.ts'
import { identifyBy } from './identity/provider.ts'
import { ApiMetrics } from './metrics.ts'
import { type RunningServer, startServer, systemClock } from './server.ts'
import { watchUntended } from './untended.ts'

/** Connections to PostgreSQL: what one process can keep busy. */
const CONNECTIONS = 20
const METRICS_PORT = 9_090
const OURS = 'a database that this build migrates'

export type RunningApi = RunningServer & {
  /** Where metrics, liveness and readiness are; undefined where they are turned off. */
  diagnostics: string | undefined
}

/**
 * Runs the API until it is closed. `identify` is the embedder's; without one there must be an
 * identity provider, since nobody is served who isn't known.
 */
export async function runApi(
  environment: Environment,
  options: { identify?: Identify } = {},
): Promise<RunningApi> {
  const logger = pino({ level: environment.logLevel })
  const identify = options.identify ?? identifyBy(requireIdentityProvider(environment), logger)
  const onError = (error: unknown) => logger.error({ err: error }, 'the database failed')
  const store = openStore({
    connectionString: requireDatabaseUrl(environment),
    maxConnections: CONNECTIONS,
    onError,
  })
  const metrics = new ApiMetrics()
  metrics.ofProcess()
  showFigures(metrics.registry, () => readFigures(store))
  let ending = false
  const host = environment.host ?? '0.0.0.0'
  const { metricsPort = METRICS_PORT } = environment
  let diagnostics: Diagnostics | undefined
  try {
    const foreign = await whyForeign(store)
    if (foreign !== undefined) throw new ConfigurationError('DATABASE_URL', `${OURS}; ${foreign}`)
    if (metricsPort !== 0) {
      diagnostics = await serveDiagnostics({
        host,
        port: metricsPort,
        registry: metrics.registry,
        missing: async () => (ending ? 'it is being ended' : whyUnusable(store)),
        unusable: (expected) =>
          new ConfigurationError('METRICS_PORT', expected, String(metricsPort)),
      })
    }
    const server = await startServer({
      store,
      identify,
      host,
      metrics,
      port: environment.port,
      corsOrigins: environment.corsOrigins,
      trustedProxies: environment.trustedProxies,
      introspection: environment.introspection,
      persistedDocuments: environment.persistedDocuments,
      logger,
    })
    const untended = watchUntended({
      store,
      clock: systemClock,
      onError: (err) => logger.warn({ err }, 'clusters that nobody serves could not be looked for'),
    })
    logger.info({ url: server.url, diagnostics: diagnostics?.url }, 'the API listens')
    return {
      ...server,
      diagnostics: diagnostics?.url,
      async close() {
        ending = true
        await server.close()
        await untended.close()
        await diagnostics?.close()
        await store.close()
      },
    }
  } catch (error) {
    await diagnostics?.close()
    await store.close()
    throw error
  }
}

async function main(): Promise<void> {
  const server = await runApi(readEnvironment(process.env))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void server.close())
  }
}

if (import.meta.main) await orExplain(main)
