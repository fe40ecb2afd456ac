import type { ServerResponse } from 'node:http'
import type { Definition } from './definition.ts'
import { apiVersionOf } from './definition.ts'
import { optionsRefused, timeoutOf } from './list.ts'
import { cause, expired, noVersion, type Refusal } from './refusal.ts'
import type { Selector } from './selectors.ts'
import type { Change, StoreEvent, Table, Version } from './storage.ts'

export type WatchRequest = {
  /** Undefined: begin with everything there is. */
  from: number | undefined
  bookmarks: boolean
  /** Streaming list: everything there is, then a marked bookmark. */
  initialEvents: boolean
  timeoutMs: number
}

/** A watcher that reads this many bytes too late is cut off; it can resume. */
const BACKLOG_LIMIT = 16 * 1024 * 1024

/** Real servers choose 30 to 60 minutes where the client doesn't say. */
const DEFAULT_TIMEOUT_MS = 30 * 60 * 1000

/** Reads a watch's parameters. */
export function watchRequest(query: URLSearchParams): WatchRequest | Refusal {
  const refused = (why: string) => cause.forbidden('resourceVersionMatch', why)
  const version = query.get('resourceVersion') ?? ''
  const match = query.get('resourceVersionMatch') ?? ''
  const initial = query.get('sendInitialEvents')
  const seconds = timeoutOf(query)
  if (typeof seconds !== 'number') return seconds
  if ((query.get('continue') ?? '') !== '') {
    return optionsRefused(refused('is forbidden when continue is provided'))
  }
  if (initial !== null && match !== 'NotOlderThan') {
    return optionsRefused(refused('sendInitialEvents requires it to be NotOlderThan'))
  }
  if (initial === null && match !== '') {
    const why = refused('is forbidden for watch unless sendInitialEvents is set')
    const unknown = cause.unsupported('resourceVersionMatch', match, ['NotOlderThan'])
    return optionsRefused(why, ...(match === 'NotOlderThan' ? [] : [unknown]))
  }
  const from = version === '' ? 0 : Number(version)
  if (!Number.isSafeInteger(from) || from < 0) return noVersion(version)
  const initialEvents = isTrue(initial)
  return {
    from: initialEvents || from === 0 ? undefined : from,
    bookmarks: isTrue(query.get('allowWatchBookmarks')),
    initialEvents,
    timeoutMs: seconds > 0 ? seconds * 1000 : DEFAULT_TIMEOUT_MS,
  }
}

/** A parameter that is there is true, unless it says that it isn't. */
export const isTrue = (text: string | null): boolean =>
  text !== null && text.toLowerCase() !== 'false' && text !== '0'

/** One running watch: writes events to a response until it ends. */
export class Watch {
  readonly #table: Table
  readonly #definition: Definition
  readonly #selector: Selector
  readonly #request: WatchRequest
  readonly #response: ServerResponse
  readonly #ended: () => void
  #timeout: NodeJS.Timeout | undefined
  #told = 0
  #corked = false
  #open = true

  constructor(parts: {
    table: Table
    definition: Definition
    selector: Selector
    request: WatchRequest
    response: ServerResponse
    ended: () => void
  }) {
    this.#table = parts.table
    this.#definition = parts.definition
    this.#selector = parts.selector
    this.#request = parts.request
    this.#response = parts.response
    this.#ended = parts.ended
  }

  start(): void {
    const { from } = this.#request
    this.#response.writeHead(200, { 'content-type': 'application/json' })
    this.#response.flushHeaders()
    this.#response.on('close', this.end)
    if (from !== undefined && from < this.#table.floor) {
      const gone = expired(`too old resource version: ${from} (${this.#table.floor})`)
      this.#write(`{"type":"ERROR","object":${JSON.stringify(gone.status)}}\n`)
      this.end()
      return
    }
    this.#table.listeners.add(this.#event)
    this.#table.enders.add(this.end)
    this.#timeout = setTimeout(this.end, this.#request.timeoutMs)
    if (from === undefined) this.#begin()
    else for (const event of this.#table.eventsAfter(from)) this.#event(event)
    this.#told = Math.max(this.#told, from ?? this.#table.store.revision)
  }

  /** A bookmark at the present revision, where one is wanted and it would say something new. */
  bookmark(): void {
    const revision = this.#table.store.revision
    if (!this.#open || !this.#request.bookmarks || revision <= this.#told) return
    this.#bookmark(revision)
  }

  /** Ends the answer cleanly. */
  readonly end = (): void => {
    if (!this.#open) return
    this.#open = false
    clearTimeout(this.#timeout)
    this.#table.listeners.delete(this.#event)
    this.#table.enders.delete(this.end)
    this.#flush()
    this.#response.end()
    this.#ended()
  }

  #begin(): void {
    const revision = this.#table.store.revision
    for (const version of this.#table.snapshot(revision)) {
      if (this.#selector.matches(version)) this.#tell('ADDED', version.json)
    }
    if (this.#request.initialEvents && this.#request.bookmarks) this.#bookmark(revision, true)
  }

  #bookmark(revision: number, initialEnd = false): void {
    const object = {
      kind: this.#definition.kind,
      apiVersion: apiVersionOf(this.#definition),
      metadata: {
        resourceVersion: `${revision}`,
        creationTimestamp: null,
        ...(initialEnd ? { annotations: { 'k8s.io/initial-events-end': 'true' } } : {}),
      },
    }
    this.#told = revision
    this.#tell('BOOKMARK', JSON.stringify(object))
  }

  /** With a selector, what starts to match is ADDED and what ceases to is DELETED. */
  readonly #event = (event: StoreEvent): void => {
    if (event.revision <= (this.#request.from ?? 0)) return
    const { version, previous } = event
    const matched = previous !== undefined && this.#selector.matches(previous)
    const matches = event.type !== 'DELETED' && this.#selector.matches(version)
    if (!matched && !matches) return
    this.#told = event.revision
    if (matched && matches) this.#tell('MODIFIED', version.json)
    else if (matches) this.#tell('ADDED', version.json)
    else this.#tell('DELETED', previous === undefined ? version.json : lastSeen(event, previous))
  }

  #tell(type: Change | 'BOOKMARK', json: string): void {
    this.#write(`{"type":"${type}","object":${json}}\n`)
  }

  /** Events of one turn leave in one piece. */
  #write(line: string): void {
    if (!this.#corked) {
      this.#corked = true
      this.#response.cork()
      setImmediate(() => {
        this.#flush()
        if (this.#response.writableLength > BACKLOG_LIMIT) this.end()
      })
    }
    this.#response.write(line)
  }

  /** Has to come before the answer's end: Node sends corked chunks after the terminating one. */
  #flush(): void {
    if (!this.#corked) return
    this.#corked = false
    this.#response.uncork()
  }
}

/** The state a watcher last saw, under the revision at which it lost sight of it. */
function lastSeen(event: StoreEvent, previous: Version): string {
  if (event.type === 'DELETED') return event.version.json
  const metadata = { ...objectMetadata(previous), resourceVersion: `${event.revision}` }
  return JSON.stringify({ ...previous.object, metadata })
}

const objectMetadata = (version: Version) => {
  const metadata = version.object['metadata']
  return typeof metadata === 'object' && metadata !== null && !Array.isArray(metadata)
    ? metadata
    : {}
}
