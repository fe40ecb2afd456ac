/**
 * How long a worker takes, and how much memory, to take in a cluster's attachments: first into an
 * empty store, then (as at every later start) into one that knows them.
 * `node bench/intake.ts [attachments]`
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import { startPostgres } from '../dev/postgres.ts'
import { Fleet } from '../src/clusters/fleet.ts'
import { Kubeconfig } from '../src/clusters/kubeconfig.ts'
import { openStore } from '../src/db/client.ts'
import { migrate } from '../src/db/migrate.ts'
import { registerCluster } from '../src/domain/operators/clusters.ts'
import { createRegion } from '../src/domain/operators/regions.ts'
import { Refusal } from '../src/domain/refusals.ts'
import { startWorkers } from '../src/workers/workers.ts'

const count = Number(process.argv[2] ?? 10_000)
const directory = await mkdtemp(join(tmpdir(), 'intake-'))
const file = join(directory, 'kubeconfig')
const script = fileURLToPath(new URL('intakeServer.ts', import.meta.url))
const server = spawn(process.execPath, [script, file, String(count)], {
  stdio: ['ignore', 'pipe', 'inherit'],
})
await once(server.stdout, 'data')
const postgres = await startPostgres({ dataDir: join(directory, 'postgres') })
await migrate(postgres.url)
const store = openStore({ connectionString: postgres.url, maxConnections: 10 })
const region = 'us-east-1'
await createRegion(store, { code: region, displayName: 'US East', cityCode: 'IAD' })
const registered = await registerCluster(store, { name: 'us-east-1-a', region, context: 'big' })
if (registered instanceof Refusal) throw new Error(registered.message)
const kubeconfig = await Kubeconfig.open(file, { onProblem: console.error, pollMs: 0 })

const resident = () => {
  globalThis.gc?.()
  return Math.round(process.memoryUsage().rss / 1e6)
}
const heap = () => {
  globalThis.gc?.()
  return Math.round(process.memoryUsage().heapUsed / 1e6)
}

for (const start of ['first start', 'later start']) {
  const fleet = new Fleet(kubeconfig, { onHandlerError: console.error })
  const before = { resident: resident(), heap: heap() }
  const began = performance.now()
  const served = Promise.withResolvers<number>()
  const log = pino({
    level: 'info',
    hooks: {
      logMethod: (args) => {
        if (args.includes('the cluster is served')) served.resolve(performance.now() - began)
      },
    },
  })
  const workers = startWorkers({ store, fleet, log })
  const servedAfter = await served.promise
  while ((await store.prisma.endpoint.count()) < count) await new Promise((r) => setTimeout(r, 20))
  const takenIn = performance.now() - began
  console.log(
    `${start}: ${count} attachments; served after ${Math.round(servedAfter)} ms, all taken in after ` +
      `${Math.round(takenIn)} ms; heap +${heap() - before.heap} MB, resident +${resident() - before.resident} MB`,
  )
  await workers.close()
  await fleet.close()
}
await store.close()
kubeconfig.close()
await postgres.stop()
server.kill()
await rm(directory, { recursive: true })
