/** An API process that tells what memory is in use whenever it is asked; run with --expose-gc. */
import { pino } from 'pino'
import { openStore } from '../../src/db/client.ts'
import { EDITOR, permissionIds } from '../../src/server/caller.ts'
import { LIMITS } from '../../src/server/limits/limits.ts'
import { startServer } from '../../src/server/server.ts'

const { url } = await startServer({
  store: openStore({ connectionString: process.argv[2] ?? '' }),
  host: '127.0.0.1',
  port: 0,
  identify: () => ({
    subject: 'alice',
    email: null,
    actor: { kind: 'USER', name: 'alice' },
    projects: new Map([['alpha', permissionIds(EDITOR)]]),
  }),
  logger: pino({ level: 'error' }, pino.destination(2)),
  limits: { ...LIMITS, cost: 1e6, budget: { most: 1e9, perSecond: 1e9 } },
})
process.on('message', () => {
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  process.send?.({ used: heapUsed + external })
})
process.send?.({ url })
