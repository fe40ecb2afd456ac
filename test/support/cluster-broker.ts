import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { type RealApiServer, startRealApiServer } from '../../dev/kube-real/server.ts'
import { ownCrds } from './crds.ts'

/** What a test needs to talk to a shared server. */
export type SharedServer = Pick<
  RealApiServer,
  'url' | 'port' | 'ca' | 'token' | 'clientCertificate' | 'clientKey' | 'auditLog'
>

/**
 * Real API servers take seconds and 300 MB each: the files of a run, which are processes of their
 * own, share two, started when first asked for, and take turns at a third that a file starts itself.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = mkdtempSync(join(tmpdir(), 'clusters-'))
  const socket = join(folder, 'socket')
  const shared = new Map<string, Promise<RealApiServer>>()
  const turns = new Turns()
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(error instanceof Error ? error.message : String(error))
    })
  })
  const answer = async ({ url = '' }: IncomingMessage, response: ServerResponse) => {
    if (url === '/turn') return turns.take(response)
    const begun = shared.get(url) ?? ownCrds().then((crds) => startRealApiServer({ crds }))
    shared.set(url, begun)
    const { port, ca, token, clientCertificate, clientKey, auditLog, ...rest } = await begun
    const told: SharedServer = {
      ...{ url: rest.url, port, ca, token, clientCertificate, clientKey, auditLog },
    }
    response.end(JSON.stringify(told))
  }
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(socket, resolve)
  })
  project.provide('clusters', socket)
  return async () => {
    server.closeAllConnections()
    server.close()
    const started = await Promise.allSettled(shared.values())
    await Promise.all(
      started.map((one) => (one.status === 'fulfilled' ? one.value.close() : undefined)),
    )
    rmSync(folder, { recursive: true, force: true })
  }
}

/** One at a time: a turn begins with the answer's first byte and ends with its connection. */
class Turns {
  readonly #waiting: ServerResponse[] = []
  #current: ServerResponse | undefined

  take(response: ServerResponse): void {
    this.#waiting.push(response)
    response.once('close', () => {
      const place = this.#waiting.indexOf(response)
      if (place >= 0) this.#waiting.splice(place, 1)
      if (this.#current === response) this.#current = undefined
      this.#next()
    })
    this.#next()
  }

  #next(): void {
    if (this.#current !== undefined) return
    this.#current = this.#waiting.shift()
    this.#current?.writeHead(200).write(' ')
  }
}
