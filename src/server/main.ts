/** The API's process in production: `npm run api`. */
import { pino } from 'pino'
import {
  type Environment,
  orExplain,
  readEnvironment,
  requireDatabaseUrl,
  requireIdentityProvider,
} from '../config/environment.ts'
import { openStore } from '../db/client.ts'
import type { Identify } from './caller.ts'
import { identifyBy } from './identity/provider.ts'
import { type RunningServer, startServer } from './server.ts'

/** Connections to PostgreSQL: what one process can keep busy. */
const CONNECTIONS = 20

/**
 * Runs the API until it is closed. `identify` is the embedder's; without one there must be an
 * identity provider, since nobody is served who isn't known.
 */
export async function runApi(
  environment: Environment,
  options: { identify?: Identify } = {},
): Promise<RunningServer> {
  const logger = pino({ level: environment.logLevel })
  const identify = options.identify ?? identifyBy(requireIdentityProvider(environment), logger)
  const onError = (error: unknown) => logger.error({ err: error }, 'the database failed')
  const store = openStore({
    connectionString: requireDatabaseUrl(environment),
    maxConnections: CONNECTIONS,
    onError,
  })
  try {
    const server = await startServer({
      store,
      identify,
      host: environment.host ?? '0.0.0.0',
      port: environment.port,
      corsOrigins: environment.corsOrigins,
      trustedProxies: environment.trustedProxies,
      introspection: environment.introspection,
      persistedDocuments: environment.persistedDocuments,
      logger,
    })
    logger.info({ url: server.url }, 'the API listens')
    return {
      ...server,
      async close() {
        await server.close()
        await store.close()
      },
    }
  } catch (error) {
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
