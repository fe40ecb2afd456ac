/**
 * A worker's probing, alone: of the cluster named, whose backends all answer on ports of this machine.
 * `prober.ts <database> <cluster id> <port> …`
 */
import pino from 'pino'
import { openStore } from '../src/db/client.ts'
import { renewLeases } from '../src/domain/placements/leases.ts'
import { DirectProber } from '../src/workers/probe/directProber.ts'
import { Probing } from '../src/workers/probe/probing.ts'
import { Slots } from '../src/workers/probe/slots.ts'

const [connectionString = '', cluster = '', ...ports] = process.argv.slice(2)
const store = openStore({ connectionString })
let turn = 0
const prober = new DirectProber({
  locate: async () => {
    turn += 1
    return { host: '127.0.0.1', port: Number(ports[turn % ports.length]) }
  },
})
const renew = async () => (await renewLeases(store, 'bench')).leases
const lease = (await renew()).find((one) => one.cluster === cluster)
if (lease === undefined) throw new Error('the cluster is served by another')
setInterval(() => void renew(), 3_000)
new Probing({
  store,
  owner: { cluster, epoch: lease.epoch },
  hasProber: true,
  prober,
  slots: new Slots(256),
  leaseLost: () => process.exit(1),
  log: pino({ level: 'error' }, pino.destination(2)),
})
console.log('probing')
process.on('SIGTERM', () => process.exit(0))
