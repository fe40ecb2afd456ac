/** The API process of a benchmark: whoever calls may do everything in the projects of the bed. */
import pino from 'pino'
import { openStore } from '../src/db/client.ts'
import { openEventLog } from '../src/domain/events/log.ts'
import { EDITOR, permissionIds } from '../src/server/caller.ts'
import { LIMITS } from '../src/server/limits/limits.ts'
import { startServer } from '../src/server/server.ts'
import { CLIENTS } from './bed.ts'

const store = openStore({ connectionString: process.argv[2] ?? '', maxConnections: 20 })
const editor = permissionIds(EDITOR)
const caller = {
  subject: 'bench',
  email: null,
  actor: { kind: 'USER' as const, name: 'bench' },
  projects: new Map(Array.from({ length: CLIENTS }, (_, index) => [`bench-${index}`, editor])),
}
const server = await startServer({
  store,
  log: openEventLog(store),
  identify: () => caller,
  logger: pino({ level: 'error' }, pino.destination(2)),
  host: '127.0.0.1',
  port: 0,
  corsOrigins: [],
  // One tenant of a benchmark asks for more than a process has to give.
  limits: {
    ...LIMITS,
    cost: 1e9,
    budget: { most: 1e12, perSecond: 1e9 },
    socketsPerCaller: 10_000,
    streamsPerCaller: 10_000,
    waitingPerAddress: 10_000,
  },
})
console.log(server.url)
process.on('SIGTERM', () => process.exit(0))
