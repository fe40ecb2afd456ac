import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { Agent, request as secureRequest } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stringify } from 'yaml'
import type { RunningFleet } from '../../dev/fleet/fleet.ts'

/** A request as the gatekeeper sees it, watch or not. */
export type Passing = { method: string; path: string; watch: boolean; body: string }
/** What it answers itself; 'reset' breaks the connection; a promise holds the request back. */
export type Ruling = { status: number; body: object } | 'reset' | Promise<void> | undefined

/** Stands before an API server: passes everything on but what it is told to answer itself. */
export type Gatekeeper = {
  url: string
  /** How to deal with each request from now on; undefined: pass all on. Running watches go on. */
  rule(decide: ((passing: Passing) => Ruling) | undefined): void
  /** Breaks every watch that is under way. */
  breakWatches(): void
  /** What came by since it was asked last. */
  log(): Passing[]
  close(): Promise<void>
}

/** A gatekeeper for each cluster, and a kubeconfig that leads to them. */
export async function guardFleet(fleet: RunningFleet): Promise<{
  kubeconfig: string
  gatekeepers: ReadonlyMap<string, Gatekeeper>
  close(): Promise<void>
}> {
  const directory = await mkdtemp(join(tmpdir(), 'gatekeepers-'))
  const gatekeepers = new Map<string, Gatekeeper>()
  for (const [name, { server }] of fleet.clusters)
    gatekeepers.set(name, await startGatekeeper(server))
  const all = [...fleet.clusters].map(([name, { server }]) => ({ name, token: server.token }))
  const kubeconfig = join(directory, 'kubeconfig')
  await writeFile(
    kubeconfig,
    stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: all.map(({ name }) => ({
        name,
        cluster: { server: gatekeepers.get(name)?.url, 'insecure-skip-tls-verify': true },
      })),
      users: all.map(({ name, token }) => ({ name, user: { token } })),
      contexts: all.map(({ name }) => ({ name, context: { cluster: name, user: name } })),
    }),
  )
  return {
    kubeconfig,
    gatekeepers,
    async close() {
      await Promise.all([...gatekeepers.values()].map((each) => each.close()))
      await rm(directory, { recursive: true })
    },
  }
}

async function startGatekeeper(behind: { url: string; ca: string }): Promise<Gatekeeper> {
  let decide: ((passing: Passing) => Ruling) | undefined
  let log: Passing[] = []
  const watches = new Set<ServerResponse>()
  // A handshake for each request was a third of what guarded clusters cost.
  const agent = new Agent({ keepAlive: true, ca: behind.ca })
  const server = createServer(async (incoming, response) => {
    const parts: Buffer[] = []
    for await (const part of incoming) parts.push(part)
    const body = Buffer.concat(parts)
    const path = incoming.url ?? '/'
    const watch = path.includes('watch=true')
    const passing = { method: incoming.method ?? 'GET', path, watch, body: body.toString() }
    log.push(passing)
    const ruling = decide?.(passing)
    if (ruling === 'reset') {
      response.destroy()
      return
    }
    if (ruling instanceof Promise) await ruling
    else if (ruling !== undefined) {
      response.writeHead(ruling.status, { 'content-type': 'application/json' })
      response.end(JSON.stringify(ruling.body))
      return
    }
    if (watch) watches.add(response)
    const onward = secureRequest(
      new URL(path, behind.url),
      {
        method: passing.method,
        headers: { ...incoming.headers, host: new URL(behind.url).host },
        agent,
      },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        response.flushHeaders()
        answer.pipe(response)
      },
    )
    onward.on('error', () => response.destroy())
    response.on('close', () => {
      watches.delete(response)
      onward.destroy()
    })
    onward.end(body)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    rule(next) {
      decide = next
    },
    breakWatches() {
      for (const response of watches) response.destroy()
    },
    log() {
      const all = log
      log = []
      return all
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
        agent.destroy()
      }),
  }
}
