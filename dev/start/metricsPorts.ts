import { once } from 'node:events'
import { createServer } from 'node:net'

/** Where the API's metrics are unless METRICS_PORT says otherwise. */
const USUAL = 9_090

/**
 * Ports for the metrics of the API and of the worker; 0: none. The given one is the API's, and used as it
 * is; where none is given, the usual one or else a free one: who only wants to look around needs none.
 */
export async function metricsPorts(
  given: number | undefined,
  host: string,
): Promise<{ api: number; worker: number }> {
  if (given === 0) return { api: 0, worker: 0 }
  const api = given ?? (await freePort(USUAL, host)) ?? (await freePort(0, host))
  return { api: api ?? 0, worker: (await freePort(0, host)) ?? 0 }
}

/** The port, or for 0 any one, where nobody listens now; undefined where somebody does. */
async function freePort(port: number, host: string): Promise<number | undefined> {
  const server = createServer()
  try {
    await once(server.listen(port, host), 'listening')
  } catch {
    return undefined
  }
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' ? address?.port : undefined
}
