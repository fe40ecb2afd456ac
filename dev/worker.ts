/**
 * The demo's worker, a process of its own: `worker.ts <address map>`. It ends when its parent asks by
 * closing the channel between them (as also happens when the parent is killed), or at SIGTERM.
 * Ctrl-C is the parent's to handle.
 */
import pino from 'pino'
import { Fleet } from '../src/clusters/fleet.ts'
import { Kubeconfig } from '../src/clusters/kubeconfig.ts'
import { readEnvironment, requireDatabaseUrl } from '../src/config/environment.ts'
import { openStore } from '../src/db/client.ts'
import { DirectProber } from '../src/workers/probe/directProber.ts'
import { startWorkers } from '../src/workers/workers.ts'
import { locateByFile } from './fleet/addressMap.ts'

const environment = readEnvironment(process.env)
const log = pino({ name: 'worker', level: environment.logLevel })

const store = openStore({
  connectionString: requireDatabaseUrl(environment),
  onError: (error) => log.warn({ err: error }, 'an idle connection to the database broke'),
})
const kubeconfig = await Kubeconfig.open(environment.kubeconfig.join(':'), {
  onProblem: (error) => log.error({ err: error }, 'the kubeconfig could not be read'),
})
const fleet = new Fleet(kubeconfig, {
  onHandlerError: (error) => log.error({ err: error }, 'a follow handler failed'),
})
const [addressMap] = process.argv.slice(2)
if (addressMap === undefined) throw new Error('usage: worker.ts <address map>')
// The endpoints' addresses are of a network that this machine isn't part of.
const prober = new DirectProber({ locate: locateByFile(addressMap) })
const workers = startWorkers({ store, fleet, log, prober })

let stopping = false
async function stop(): Promise<void> {
  await workers.close()
  await fleet.close()
  kubeconfig.close()
  await store.close()
}
function end(): void {
  if (stopping) return
  stopping = true
  stop().then(
    () => process.exit(0),
    (error: unknown) => {
      log.error({ err: error }, 'could not end in order')
      process.exit(1)
    },
  )
}
process.on('disconnect', end)
process.on('SIGTERM', end)
process.on('SIGINT', () => {
  if (!process.connected) end()
})
// The parent may have gone before anybody listened.
if (process.send !== undefined && !process.connected) end()
await workers.renew()
if (process.connected) process.send?.('ready')
