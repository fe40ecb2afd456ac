import { once } from 'node:events'
import { createServer } from 'node:net'
import pg from 'pg'
import { inject } from 'vitest'
import { locateByFile } from '../../dev/fleet/addressMap.ts'
import { identifyLoopback } from '../../dev/start/identity.ts'
import { type Environment, readEnvironment } from '../../src/config/environment.ts'
import { type RunningApi, runApi } from '../../src/server/main.ts'
import { type RunningWorkers, runWorker } from '../../src/workers/main.ts'
import { DirectProber } from '../../src/workers/probe/directProber.ts'
import { type Api, apiAt } from '../support/api.ts'
import type { Installation } from '../support/installation.ts'

export type Processes = {
  api: RunningApi
  workers: RunningWorkers
  /** The API of project `demo`. */
  demo: Api
  close(): Promise<void>
}

/** What `npm run api` and `npm run worker` run, over the database and the clusters of an installation. */
export async function startProcesses(installation: Installation): Promise<Processes> {
  const environment = await environmentOf(installation)
  const identify = identifyLoopback(['demo', 'other'])
  const api = await runApi(environment, { identify })
  const prober = new DirectProber({ locate: locateByFile(installation.fleet.addressMap) })
  const metricsPort = await freePort()
  const workers = await runWorker({ ...environment, metricsPort }, { prober })
  return {
    api,
    workers,
    demo: apiAt(api.url, 'demo'),
    async close() {
      await api.close()
      await workers.close()
    },
  }
}

async function environmentOf({ store, fleet }: Installation): Promise<Environment> {
  const { connectionString = '' } = store.pool.options
  return readEnvironment({
    PORT: '0',
    HOST: '127.0.0.1',
    METRICS_PORT: String(await freePort()),
    DATABASE_URL: connectionString,
    KUBECONFIG: fleet.kubeconfig,
    LOG_LEVEL: 'silent',
  })
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no port')
  return address.port
}

/** Nobody gets into the database, and whoever is in it is thrown out, until what is answered is called. */
export async function databaseAway({ store }: Installation): Promise<() => Promise<void>> {
  const { rows } = await store.pool.query<{ name: string }>('SELECT current_database() AS name')
  const name = rows[0]?.name ?? ''
  const admin = new pg.Client({ connectionString: inject('postgres').url })
  await admin.connect()
  await admin.query(`ALTER DATABASE "${name}" ALLOW_CONNECTIONS false`)
  await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [
    name,
  ])
  return async () => {
    await admin.query(`ALTER DATABASE "${name}" ALLOW_CONNECTIONS true`)
    await admin.end()
  }
}
