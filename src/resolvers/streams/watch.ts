/**
 * Watching objects. The log of changes tells which objects to look at; what is sent is read anew,
 * so whoever reads slowly gets a later state of each object and skips what lay in between. The
 * position in the log is taken before the snapshot is read: what happens meanwhile is in both, and
 * versions tell that it has been sent.
 */
import { CursorLost } from '../../domain/events/cursor.ts'
import type { LoggedEvent } from '../../domain/events/log.ts'
import { listEvents } from '../../domain/events/read.ts'
import type { EventRecord } from '../../domain/records.ts'
import type { Context } from '../../schema/context.ts'
import type { WatchEvent, WatchEventType } from '../../schema/watchEvents.ts'
import { endable, within } from './iterate.ts'

/** Silence after which a stream says that it is alive, in milliseconds. */
const QUIET = 10_000
/**
 * The cursor in a snapshot but for its end: whoever comes back with it has a part only, and is
 * sent everything anew.
 */
const INCOMPLETE = 'incomplete'

type Versioned = { id: string; version: number }

/** What is watched: the objects of one kind in the project that match. */
export type Watched<T extends Versioned> = {
  kind: EventRecord['objectKind']
  /** Only the object with this UUID: then the stream ends with it. */
  only?: string
  /** Whether `matches` can say no. */
  filtered: boolean
  matches(record: T): boolean
  /** The ids to begin with, page after page. */
  list(): AsyncIterable<string[]>
  /** Whole objects by id; those that are gone are left out. */
  read(ids: string[]): Promise<Map<string, T>>
  /** The same of the project's objects that were changed, with the version of that; streams share it. */
  reread(changed: ReadonlyMap<string, number>): Promise<Map<string, T>>
  /** The object as it was last, from the event of its end. */
  last(logged: unknown): Promise<T>
  /** By object, what was told of it: all who are told the same get the same event. */
  told: WeakMap<T, Map<string, WatchEvent<T>>>
}

type Changed = {
  /** The newest of the changes. */
  version: number
  /** Its first version is among the changes. */
  created: boolean
  /** The object in the event of its end. */
  last: unknown
}

/** The stream of one subscription. `after`: a cursor to go on from, without a snapshot. */
export function watch<T extends Versioned>(
  context: Context,
  watched: Watched<T>,
  after: string | null,
): AsyncGenerator<WatchEvent<T>> {
  return endable((signal) => new Watch(context, watched, signal).run(after))
}

class Watch<T extends Versioned> {
  readonly #context: Context
  readonly #watched: Watched<T>
  readonly #signal: AbortSignal
  /** The version of each object as it was sent last. */
  readonly #sent = new Map<string, number>()
  /** Told as gone though they were never sent: once is enough. */
  readonly #toldAway = new Set<string>()
  /** Everything up to here has been sent. */
  #position = ''
  /** Continued from a cursor: the client has objects that we never sent. */
  #resumed = false
  /** The event after which the client knows all that there was when it came back. */
  #syncedBy: string | undefined
  #ended = false

  constructor(context: Context, watched: Watched<T>, signal: AbortSignal) {
    this.#context = context
    this.#watched = watched
    this.#signal = signal
  }

  async *run(after: string | null): AsyncGenerator<WatchEvent<T>> {
    let first = this.#first(after)
    while (!this.#signal.aborted) {
      try {
        yield* first
        if (!this.#ended) yield* this.#follow()
        return
      } catch (error) {
        if (!(error instanceof CursorLost)) throw error
        first = this.#beginAnew()
      }
    }
  }

  #first(after: string | null): AsyncGenerator<WatchEvent<T>> {
    if (after === null) return this.#begin()
    return after === INCOMPLETE ? this.#beginAnew() : this.#resume(after)
  }

  async *#begin(): AsyncGenerator<WatchEvent<T>> {
    this.#position = await this.#context.log.head()
    let waiting: T | undefined
    for await (const ids of this.#watched.list()) {
      for (const record of (await this.#watched.read(ids)).values()) {
        if (!this.#watched.matches(record)) continue
        if (waiting !== undefined) yield this.#event('ADDED', waiting.id, waiting, INCOMPLETE)
        this.#sent.set(record.id, record.version)
        waiting = record
      }
      if (this.#signal.aborted) return
    }
    if (waiting !== undefined) yield this.#event('ADDED', waiting.id, waiting)
    yield this.#event('SYNCED', null, null)
    // Ids are never used again, so what isn't there won't come.
    if (this.#watched.only !== undefined && this.#sent.size === 0) this.#ended = true
  }

  async *#beginAnew(): AsyncGenerator<WatchEvent<T>> {
    this.#sent.clear()
    this.#toldAway.clear()
    this.#resumed = false
    this.#position = await this.#context.log.head()
    yield this.#event('RESYNC', null, null, INCOMPLETE)
    yield* this.#begin()
  }

  async *#resume(after: string): AsyncGenerator<WatchEvent<T>> {
    const { store, project } = this.#context
    const { only } = this.#watched
    this.#position = after
    this.#resumed = true
    const newest = await listEvents(store, {
      project,
      filter: { since: after, ...(only === undefined ? {} : { objectId: only }) },
      page: { first: 1 },
    })
    this.#syncedBy = newest.items[0]?.item.id
    if (this.#syncedBy !== undefined) return
    if (only !== undefined && !(await this.#watched.read([only])).has(only)) {
      this.#ended = true
      yield this.#event('DELETED', only, null)
    } else {
      yield this.#event('SYNCED', null, null)
    }
  }

  async *#follow(): AsyncGenerator<WatchEvent<T>> {
    const { clock, log } = this.#context
    const leaving = new AbortController()
    const ended = AbortSignal.any([this.#signal, leaving.signal])
    const batches = log.follow(this.#position, ended)[Symbol.asyncIterator]()
    try {
      let quietSince = clock.now().getTime()
      let pending = batches.next()
      while (!this.#ended) {
        const silent = clock.now().getTime() - quietSince
        const next = await within(pending, QUIET - silent, clock)
        if (this.#signal.aborted) return
        if (next === undefined) {
          yield this.#event('HEARTBEAT', null, null)
          quietSince = clock.now().getTime()
          continue
        }
        if (next.done === true) return
        const events = await this.#told(next.value.events)
        // Whoever comes back in the middle of a batch is sent all of it again.
        for (const event of events.slice(0, -1)) yield event
        this.#position = next.value.cursor
        const last = events.at(-1)
        if (last !== undefined) yield this.#event(last.type, last.id, last.object)
        const synced = next.value.events.some(({ id }) => id === this.#syncedBy)
        if (synced && !this.#ended) yield this.#event('SYNCED', null, null)
        if (synced || last !== undefined) quietSince = clock.now().getTime()
        pending = batches.next()
      }
    } finally {
      // It may be waiting for the next batch, which only the signal ends.
      leaving.abort()
      await batches.return?.()
    }
  }

  /** What a batch of changes means to this client. */
  async #told(events: readonly LoggedEvent[]): Promise<WatchEvent<T>[]> {
    const { kind, only } = this.#watched
    const changed = new Map<string, Changed>()
    const { project: ours } = this.#context
    for (const { objectKind, objectId, project, version, object } of events) {
      if (objectKind !== kind || (ours !== null && project !== ours)) continue
      if (only !== undefined && objectId !== only) continue
      if (version <= (this.#sent.get(objectId) ?? 0)) continue
      const before = changed.get(objectId)
      const created = version === 1 || (before?.created ?? false)
      // Its end may stand before an earlier change: the log isn't in the order of versions.
      const newest = Math.max(version, before?.version ?? 0)
      changed.set(objectId, { version: newest, created, last: object ?? before?.last ?? null })
    }
    const versions = new Map([...changed].map(([id, { version }]) => [id, version]))
    const found = await this.#watched.reread(versions)
    const told: WatchEvent<T>[] = []
    for (const [id, change] of changed) {
      const event = await this.#compare(id, found.get(id), change)
      if (event !== undefined) told.push(event)
    }
    return told
  }

  async #compare(
    id: string,
    now: T | undefined,
    { created, last }: Changed,
  ): Promise<WatchEvent<T> | undefined> {
    const before = this.#sent.get(id)
    if (now !== undefined && this.#watched.matches(now)) {
      if (now.version <= (before ?? 0)) return undefined
      this.#sent.set(id, now.version)
      this.#toldAway.delete(id)
      const had = before !== undefined || (this.#resumed && !created && !this.#watched.filtered)
      return this.#event(had ? 'MODIFIED' : 'ADDED', id, now)
    }
    // Gone, but the event of its end is yet to come.
    if (now === undefined && last == null) return undefined
    if (before === undefined && !this.#mayHave(id)) return undefined
    this.#sent.delete(id)
    this.#toldAway.add(id)
    if (now !== undefined) return this.#event('LEFT', id, now)
    this.#ended = this.#watched.only !== undefined
    return this.#event('DELETED', id, await this.#watched.last(last))
  }

  /**
   * Whether the client may have got it before it came back. So it may what was created since its
   * position: while any transaction is open, a snapshot shows more than the log is read up to.
   */
  #mayHave(id: string): boolean {
    return this.#resumed && !this.#toldAway.has(id)
  }

  #event(
    type: WatchEventType,
    id: string | null,
    object: T | null,
    cursor = this.#position,
  ): WatchEvent<T> {
    const fresh = { type, cursor, at: this.#context.clock.now().toISOString(), id, object }
    if (object === null) return fresh
    const told = this.#watched.told.get(object) ?? new Map<string, WatchEvent<T>>()
    this.#watched.told.set(object, told)
    const key = `${type} ${cursor}`
    const event = told.get(key) ?? fresh
    told.set(key, event)
    return event
  }
}
