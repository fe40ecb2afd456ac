/**
 * The demo's worker, a process of its own: `worker.ts <address map>`. It ends when its parent asks by
 * closing the channel between them (as also happens when the parent is killed), or at SIGTERM.
 * Ctrl-C is the parent's to handle.
 */
import { readEnvironment } from '../src/config/environment.ts'
import { runWorker } from '../src/workers/main.ts'
import { DirectProber } from '../src/workers/probe/directProber.ts'
import { locateByFile } from './fleet/addressMap.ts'

const [addressMap] = process.argv.slice(2)
if (addressMap === undefined) throw new Error('usage: worker.ts <address map>')
// The endpoints' addresses are of a network that this machine isn't part of.
const prober = new DirectProber({ locate: locateByFile(addressMap) })
const workers = await runWorker(readEnvironment(process.env), { prober })

let stopping = false
function end(): void {
  if (stopping) return
  stopping = true
  workers.close().then(
    () => process.exit(0),
    (error: unknown) => {
      console.error(error)
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
