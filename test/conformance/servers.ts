import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe } from 'vitest'
import { type ApiServer, startApiServer } from '../../dev/kube/server.ts'
import { ownRealServer, REAL, realClusters, sharedRealServer } from '../support/clusters.ts'
import { ownCrds } from '../support/crds.ts'
import { Client, namespaceObject, rulesPath } from './client.ts'

/**
 * The same tests against the embedded API server and a real one: where the two differ, the embedded
 * one is wrong.
 */

/** How to reach a server, and as whom. */
export type Reach = Pick<
  ApiServer,
  'url' | 'port' | 'ca' | 'token' | 'clientCertificate' | 'clientKey'
>

/** A server that tests of this file have for themselves. */
export type OwnServer = Reach & {
  setCrd(yaml: string): Promise<void>
  /**
   * Stops it, and starts it on the same port with the same contents when `meanwhile` is over.
   * `cold`: it may not be ready to answer from memory yet.
   */
  restart(meanwhile?: () => Promise<void>, options?: { cold?: boolean }): Promise<void>
  /** From now on nothing before now can be listed or watched from; watches end. */
  forget(): Promise<void>
  close(): Promise<void>
}

/** A server as tests see it: from `beforeAll` on. */
export type Tested<Server extends Reach> = {
  kind: 'embedded' | 'real'
  readonly server: Server
  readonly client: Client
  /** A namespace that only these tests use. */
  namespace: string
  /** Where the namespace's rules are. */
  rules: string
}

const KINDS = ['embedded', 'real'] as const
const titles = { embedded: 'the embedded API server', real: REAL }

function onEach<Server extends Reach>(
  start: (kind: 'embedded' | 'real') => Promise<{ server: Server; close(): Promise<void> }>,
  tests: (tested: Tested<Server>) => void,
): void {
  for (const kind of KINDS) {
    describe.skipIf(kind === 'real' && !realClusters)(titles[kind], () => {
      let started: { server: Server; close(): Promise<void> } | undefined
      let client: Client | undefined
      const there = <T>(thing: T | undefined): T => {
        if (thing === undefined) throw new Error('the server is there from beforeAll on')
        return thing
      }
      const namespace = `c-${randomUUID().slice(0, 8)}`
      beforeAll(async () => {
        started = await start(kind)
        client = new Client(started.server)
        await client.call('POST', '/api/v1/namespaces', namespaceObject(namespace))
      })
      afterAll(async () => {
        await client?.close()
        await started?.close()
      })
      tests({
        kind,
        get server() {
          return there(started).server
        },
        get client() {
          return there(client)
        },
        namespace,
        rules: rulesPath(namespace),
      })
    })
  }
}

/** Tests that keep to their namespace; the real server is shared with other files. */
export const onEachServer = (tests: (tested: Tested<Reach>) => void): void =>
  onEach<Reach>(async (kind) => {
    if (kind === 'real') return { server: await sharedRealServer(), close: async () => undefined }
    const server = await startApiServer({ crds: await ownCrds() })
    return { server, close: () => server.close() }
  }, tests)

/** Tests that restart the server, or change what it serves. */
export const onEachOwnServer = (tests: (tested: Tested<OwnServer>) => void): void =>
  onEach<OwnServer>(async (kind) => {
    const server = kind === 'real' ? await ownReal() : await ownEmbedded()
    return { server, close: () => server.close() }
  }, tests)

async function ownReal(): Promise<OwnServer> {
  const server = await ownRealServer({ crds: await ownCrds() })
  // The API server answers from its own memory until it restarts.
  return { ...server, forget: () => server.restart(() => server.compact()) }
}

async function ownEmbedded(): Promise<OwnServer> {
  const folder = await mkdtemp(join(tmpdir(), 'kube-'))
  const options = { crds: await ownCrds(), dataFile: join(folder, 'data') }
  let server = await startApiServer(options)
  const { url, port, ca, token, clientCertificate, clientKey } = server
  return {
    ...{ url, port, ca, token, clientCertificate, clientKey },
    setCrd: async (yaml) => server.storage.setCrd(yaml),
    restart: async (meanwhile, { cold = false } = {}) => {
      await server.close()
      await meanwhile?.()
      server = await startApiServer({ ...options, port, initializingMs: cold ? 100 : 0 })
    },
    forget: async () => {
      server.storage.compact()
      server.storage.endWatches()
    },
    close: async () => {
      await server.close()
      await rm(folder, { recursive: true })
    },
  }
}
