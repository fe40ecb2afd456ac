import { createHash } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { Api } from './api.ts'
import { crdProblems } from './crd-check.ts'
import { DataFile, type Kept, readKept } from './datafile.ts'
import { CRDS, NAMESPACES } from './definition.ts'
import type { Asked } from './http.ts'
import { HttpFace } from './http.ts'
import type { JsonObject } from './json.ts'
import { isObject, metadataOf, textAt } from './json.ts'
import { FIRST_NAMESPACES, namespaceBegun } from './namespaces.ts'
import { Refusal } from './refusal.ts'
import { Store, type StoreEvent } from './storage.ts'
import { type Credentials, newCredentials } from './tls.ts'
import { newObject, updatedObject } from './write.ts'

export type ApiServerOptions = {
  /** CustomResourceDefinitions as YAML, one or more documents a text. */
  crds: string[]
  /** 0 or absent: any free one. */
  port?: number
  host?: '127.0.0.1'
  /** Contents survive a restart in this file; certificates beside it, in `<dataFile>.tls`. */
  dataFile?: string
  /** Bearer tokens that may call besides the admin's own. */
  tokens?: string[]
  /** At least this many last changes of each resource can be watched from (10,000). */
  historyLimit?: number
  /** How often watches get bookmarks while anything moves (3,000 ms). */
  bookmarkMs?: number
  /** How long a list waits for a version from the future before it answers 504 (3,000 ms). */
  freshWaitMs?: number
  /**
   * So long after the start, as in real servers, watches and whole lists answer 429, published
   * schemas 404, and health 500 (0 ms). A real one took 1 s.
   */
  initializingMs?: number
  /**
   * Asked before each request on objects is carried out: a promise makes the server slow, one of
   * 'reset' breaks the connection without an answer.
   */
  before?: (request: Asked) => Promise<'reset' | undefined> | undefined
  now?: () => Date
  /** Told when contents can't be written; without it that ends the process. */
  failed?: (error: Error) => void
}

/** One committed change, as tests read it. */
export type Committed = { type: StoreEvent['type']; revision: number; object: JsonObject }

export type ApiServer = {
  url: string
  port: number
  /** PEM. */
  ca: string
  /** The admin, by token or by client certificate (PEM). */
  token: string
  clientCertificate: string
  clientKey: string
  storage: {
    /** The last committed revision. */
    revision(): number
    /** Forgets how things were: older watches and lists answer 410. */
    compact(): void
    /** Replaces (or adds) a CRD while running; throws where it is refused. */
    setCrd(yaml: string): void
    /** The committed changes of `plural.group` still in memory, in order. */
    history(id: string): Committed[]
    /** Called with every change from now on; answers a function that ends it. */
    observe(id: string, seen: (change: Committed) => void): () => void
    /** Ends all running watches cleanly. */
    endWatches(): void
    /** Waits until contents are on disk. */
    flush(): Promise<void>
  }
  close(): Promise<void>
}

/** After a crash revisions of lost writes must not come again: more than any half second writes. */
const REVISION_JUMP = 10_000

/** Starts an API server; a taken port rejects with code EADDRINUSE. */
export async function startApiServer(options: ApiServerOptions): Promise<ApiServer> {
  const host = options.host ?? '127.0.0.1'
  const path = options.dataFile
  const kept = path === undefined ? undefined : await readKept(path)
  const store = new Store({
    revision: kept === undefined ? 1 : kept.revision + REVISION_JUMP,
    historyLimit: options.historyLimit ?? 10_000,
  })
  const api = new Api(store, options.now ?? (() => new Date()))
  const given = restore(api, kept, options.crds)
  const data =
    path === undefined
      ? undefined
      : new DataFile({
          path,
          store,
          given,
          failed:
            options.failed ??
            ((error) => {
              throw error
            }),
        })
  const credentials =
    path === undefined ? await newCredentials(host) : await keptCredentials(path, host)
  const startedAt = performance.now()
  const face = new HttpFace(api, {
    tokens: new Set([credentials.token, ...(options.tokens ?? [])]),
    freshWaitMs: options.freshWaitMs ?? 3_000,
    before: options.before,
    initializing: () => performance.now() - startedAt < (options.initializingMs ?? 0),
  })
  const server = createServer(
    {
      key: credentials.serverKey,
      cert: credentials.serverCertificate,
      ca: credentials.ca,
      requestCert: true,
      rejectUnauthorized: false,
      keepAliveTimeout: 60_000,
    },
    face.handle,
  )
  const port = await listening(server, options.port ?? 0, host)
  data?.changed()
  const bookmarks = setInterval(() => {
    for (const watch of face.watches) watch.bookmark()
  }, options.bookmarkMs ?? 3_000)

  return {
    url: `https://${host}:${port}`,
    port,
    ca: credentials.ca,
    token: credentials.token,
    clientCertificate: credentials.clientCertificate,
    clientKey: credentials.clientKey,
    storage: {
      revision: () => store.revision,
      compact: () => {
        for (const table of store.tables.values()) table.compact()
      },
      setCrd: (yaml) => {
        for (const crd of crdsIn([yaml])) giveCrd(api, crd)
      },
      history: (id) => store.table(id).eventsAfter(0).map(committed),
      observe: (id, seen) => {
        const listener = (event: StoreEvent) => seen(committed(event))
        const table = store.table(id)
        table.listeners.add(listener)
        return () => table.listeners.delete(listener)
      },
      endWatches: () => {
        for (const watch of [...face.watches]) watch.end()
      },
      flush: async () => data?.flush(),
    },
    close: async () => {
      clearInterval(bookmarks)
      for (const watch of [...face.watches]) watch.end()
      const closed = new Promise((resolve) => server.close(resolve))
      server.closeAllConnections()
      await closed
      await data?.flush()
    },
  }
}

const committed = (event: StoreEvent): Committed => ({
  type: event.type,
  revision: event.revision,
  object: event.version.object,
})

function listening(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      const address = server.address()
      resolve(isAddress(address) ? address.port : port)
    })
  })
}

const isAddress = (address: AddressInfo | string | null): address is AddressInfo =>
  typeof address === 'object' && address !== null

/** The certificates and token of an earlier run, so that kubeconfigs stay true. */
async function keptCredentials(dataFile: string, host: string): Promise<Credentials> {
  const path = `${dataFile}.tls`
  try {
    return credentialsFrom(JSON.parse(await readFile(path, 'utf8')), path)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error
  }
  const credentials = await newCredentials(host)
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, JSON.stringify(credentials), { mode: 0o600 })
  return credentials
}

function credentialsFrom(kept: unknown, path: string): Credentials {
  const text = (key: keyof Credentials): string => {
    const value = isObject(kept) ? textAt(kept, key) : undefined
    if (value === undefined) throw new Error(`${path} lacks ${key}; delete the file to begin anew`)
    return value
  }
  return {
    ca: text('ca'),
    serverCertificate: text('serverCertificate'),
    serverKey: text('serverKey'),
    clientCertificate: text('clientCertificate'),
    clientKey: text('clientKey'),
    token: text('token'),
  }
}

/** By text: the servers of one process are given the same ones, and reading YAML is slow. */
const parsed = new Map<string, JsonObject[]>()

function crdsIn(texts: string[]): JsonObject[] {
  return texts.flatMap((text) => {
    const known = parsed.get(text) ?? parse(text)
    parsed.set(text, known)
    return structuredClone(known)
  })
}

const parse = (text: string): JsonObject[] =>
  parseAllDocuments(text)
    .map((document): unknown => document.toJS())
    .filter(isObject)

const nameOf = (object: JsonObject): string => textAt(metadataOf(object), 'name') ?? ''

/**
 * Puts in what an earlier run kept, and the CRDs given now. A kept CRD (perhaps replaced while
 * running) stays unless the text it was given as has changed since. Answers the texts' hashes.
 */
function restore(api: Api, kept: Kept | undefined, texts: string[]): Record<string, string> {
  const objects = kept?.objects ?? []
  const crds = objects.filter((one) => one.table === CRDS.id)
  for (const { object } of crds) {
    api.table(CRDS).restore(object)
    api.serveCrd(object)
  }
  for (const { table, object } of objects) {
    if (table !== CRDS.id) api.store.table(table).restore(object)
  }
  // What was stored by an older schema is read by the one of now.
  for (const table of api.store.tables.values()) table.reread(table.view)
  const given: Record<string, string> = {}
  for (const crd of crdsIn(texts)) {
    const hash = createHash('sha256').update(JSON.stringify(crd)).digest('hex')
    given[nameOf(crd)] = hash
    if (kept?.given[nameOf(crd)] !== hash) giveCrd(api, crd)
  }
  const namespaces = api.table(NAMESPACES)
  for (const name of FIRST_NAMESPACES) {
    if (namespaces.current.has(name)) continue
    const object = newObject(NAMESPACES, { metadata: { name } }, writer(api))
    if (object instanceof Refusal) throw new Error(object.message)
    namespaces.put(namespaceBegun(object.object))
  }
  return given
}

const writer = (api: Api) => ({
  manager: 'embedded-kube',
  subresource: '' as const,
  now: api.now(),
})

function giveCrd(api: Api, crd: JsonObject): void {
  const problems = crdProblems(crd)
  if (problems.length > 0) {
    const told = problems.map((one) => `${one.field}: ${one.message}`).join('; ')
    throw new Error(`CustomResourceDefinition ${nameOf(crd)} is refused: ${told}`)
  }
  const live = api.table(CRDS).current.get(nameOf(crd))
  const written =
    live === undefined
      ? newObject(CRDS, crd, writer(api))
      : updatedObject(CRDS, live.object, crd, writer(api))
  if (written instanceof Refusal) throw new Error(written.message)
  if (written.changed) api.putCrd(written.object)
}
