import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { isIPv6 } from 'node:net'
import type { Registry } from 'prom-client'

export type Diagnostics = {
  /** Without a path. */
  url: string
  port: number
  close(): Promise<void>
}

export type DiagnosticsOptions = {
  host: string
  /** 0: a free one. */
  port: number
  registry: Registry
  /** What keeps the process from doing its work now, in words; undefined where nothing does. */
  missing: () => Promise<string | undefined>
  /** The error for a port that can't be listened on. */
  unusable: (expected: string) => Error
}

/**
 * What those who run the process ask it, on a port of its own: `/metrics`, `/livez` (it runs at all: else
 * restart it) and `/readyz` (it can do its work now: else send it none, and wait).
 */
export async function serveDiagnostics(options: DiagnosticsOptions): Promise<Diagnostics> {
  const { host, port, registry, missing, unusable } = options
  const answer = async (path: string, response: ServerResponse): Promise<void> => {
    if (path === '/metrics') {
      const text = await registry.metrics()
      response.writeHead(200, { 'content-type': registry.contentType }).end(text)
    } else if (path === '/livez') {
      say(response, 200, 'ok')
    } else if (path === '/readyz') {
      const lacking = await missing()
      say(response, lacking === undefined ? 200 : 503, lacking ?? 'ok')
    } else {
      say(response, 404, 'There are /metrics, /livez and /readyz here.')
    }
  }
  const server = createServer((request, response) => {
    const [path = ''] = (request.url ?? '').split('?')
    answer(path, response).catch((error: unknown) => {
      say(response, 500, error instanceof Error ? error.message : String(error))
    })
  })
  try {
    const listening = once(server, 'listening')
    server.listen(port, host)
    await listening
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'EADDRINUSE') throw unusable('a port that nothing else listens on (0 = none)')
    if (code === 'EACCES') throw unusable('a port that this user may listen on (0 = none)')
    throw error
  }
  const address = server.address()
  const bound = typeof address === 'object' && address !== null ? address.port : port
  return {
    url: `http://${isIPv6(host) ? `[${host}]` : host}:${bound}`,
    port: bound,
    async close() {
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
    },
  }
}

function say(response: ServerResponse, status: number, line: string): void {
  response
    .writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' })
    .end(`${line}\n`)
}
