/**
 * Watching objects. The log of changes tells which objects to look at; what is sent is read anew,
 * so whoever reads slowly gets a later state of each object and skips what lay in between. The
 * position in the log is taken before the snapshot is read: what happens meanwhile is in both, and
 * versions tell that it has been sent.
 */
import type { LogBatch } from '../../domain/events/batch.ts'
import { CursorLost } from '../../domain/events/cursor.ts'
import type { Following } from '../../domain/events/follower.ts'
import { listEvents } from '../../domain/events/read.ts'
import type { EventRecord } from '../../domain/records.ts'
import type { Context } from '../../schema/context.ts'
import type { WatchEvent, WatchEventType } from '../../schema/watchEvents.ts'
import { beginning } from './beginning.ts'
import type { Changed, Changes, Shared } from './changes.ts'
import { endable, QUIET, whenQuiet } from './iterate.ts'
import type { Resumable, Standing } from './resumable.ts'

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
  /** The same of objects that were changed, with the version of that, whatever their project. */
  reread(changed: ReadonlyMap<string, number>): Promise<Map<string, T>>
  /** Finds out what else `matches` has to know of objects. */
  place?(ids: string[]): Promise<void>
  /** The object as it was last, from the event of its end. */
  last(logged: unknown): Promise<T>
  /** What all streams of such objects share. */
  shared: Shared<T>
}

/** The stream of one subscription. `after`: a cursor to go on from, without a snapshot. */
export function watch<T extends Versioned>(
  context: Context,
  watched: Watched<T>,
  after: string | null,
): Resumable<WatchEvent<T>> {
  return begun(context, watched, { after })
}

/** Holds nothing of a stream that it goes on from: one may go on from another for as long as somebody watches. */
function begun<T extends Versioned>(
  context: Context,
  watched: Watched<T>,
  begin: { after: string | null } | Standing,
): Resumable<WatchEvent<T>> {
  let one: Watch<T> | undefined
  const stream = endable((signal) => {
    one = new Watch(context, watched, signal)
    return 'after' in begin ? one.run(begin.after) : one.runFrom(begin)
  })
  return Object.assign(stream, {
    standing: () => one?.standing,
    from: (standing: Standing, other: Context) => begun(other, watched, standing),
  })
}

class Watch<T extends Versioned> {
  readonly #context: Context
  readonly #watched: Watched<T>
  readonly #signal: AbortSignal
  readonly #changes: (events: LogBatch['events']) => Changes<T>
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
  /** What was told so far isn't yet all that there is to tell. */
  #untold = true
  #ended = false

  constructor(context: Context, watched: Watched<T>, signal: AbortSignal) {
    this.#context = context
    this.#watched = watched
    this.#signal = signal
    const { shared, kind, only, reread } = watched
    this.#changes = shared.changes({ kind, project: context.project, only }, reread)
  }

  get standing(): Standing | undefined {
    const version = this.#sent.get(this.#watched.only ?? '')
    const all = !this.#untold && this.#syncedBy === undefined && !this.#ended
    if (version === undefined || !all) return undefined
    return { version, position: this.#position }
  }

  run(after: string | null): AsyncGenerator<WatchEvent<T>> {
    return this.#run(this.#first(after))
  }

  runFrom({ version, position }: Standing): AsyncGenerator<WatchEvent<T>> {
    if (this.#watched.only !== undefined) this.#sent.set(this.#watched.only, version)
    this.#position = position
    this.#untold = false
    return this.#run()
  }

  async *#run(begin?: AsyncGenerator<WatchEvent<T>>): AsyncGenerator<WatchEvent<T>> {
    let first = begin
    while (!this.#signal.aborted) {
      try {
        if (first !== undefined) yield* first
        if (this.#ended) return
        const batches = this.#follow()
        const quiet = whenQuiet(this.#context.clock, QUIET, () => batches.nudge())
        try {
          for await (const batch of batches) {
            const events = await this.#told(batch)
            if (events.length > 0) quiet.heard()
            // In no generator of its own: that would cost every event some turns more.
            for (const [index, event] of events.entries()) {
              this.#untold = index < events.length - 1
              yield event
            }
            if (this.#ended) return
          }
        } finally {
          quiet.end()
          await batches.return?.()
        }
        return
      } catch (error) {
        if (!(error instanceof CursorLost)) throw error
        first = this.#beginAnew()
      }
    }
  }

  #follow(): Following {
    const { log, project } = this.#context
    const { only: objectId } = this.#watched
    return log.follow(this.#position, this.#signal, { project, objectId })
  }

  #first(after: string | null): AsyncGenerator<WatchEvent<T>> {
    if (after === null) return this.#begin()
    return after === INCOMPLETE ? this.#beginAnew() : this.#resume(after)
  }

  async *#begin(): AsyncGenerator<WatchEvent<T>> {
    this.#position = await this.#head()
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
    this.#untold = false
    yield this.#event('SYNCED', null, null)
    // Ids are never used again, so what isn't there won't come.
    if (this.#watched.only !== undefined && this.#sent.size === 0) this.#ended = true
  }

  async *#beginAnew(): AsyncGenerator<WatchEvent<T>> {
    this.#sent.clear()
    this.#toldAway.clear()
    this.#resumed = false
    this.#untold = true
    this.#position = await this.#head()
    yield this.#event('RESYNC', null, null, INCOMPLETE)
    yield* this.#begin()
  }

  #head(): Promise<string> {
    const { store, log } = this.#context
    return beginning(store, () => log.head())
  }

  async *#resume(after: string): AsyncGenerator<WatchEvent<T>> {
    const { store, project } = this.#context
    const { only } = this.#watched
    this.#position = after
    this.#resumed = true
    const filter = { since: after, ...(only === undefined ? {} : { objectId: only }) }
    const newest = await beginning(store, () =>
      listEvents(store, { project, filter, page: { first: 1 } }),
    )
    this.#syncedBy = newest.items[0]?.item.id
    if (this.#syncedBy !== undefined) return
    if (only !== undefined && !(await this.#watched.read([only])).has(only)) {
      this.#ended = true
      yield this.#event('DELETED', only, null)
    } else {
      yield this.#event('SYNCED', null, null)
    }
  }

  /** What a batch of changes means to this client; that there is none, that the stream is alive. */
  async #told({ events, cursor }: LogBatch): Promise<WatchEvent<T>[]> {
    const before = this.#position
    this.#position = cursor
    if (events.length === 0) return [this.#event('HEARTBEAT', null, null)]
    const { changed, found } = this.#changes(events)
    const news = [...changed].filter(([id, { version }]) => version > (this.#sent.get(id) ?? 0))
    const told: Told<T>[] = []
    if (news.length > 0) {
      await this.#watched.place?.(news.map(([id]) => id))
      const now = await found()
      for (const [id, change] of news) {
        const one = this.#compare(id, now.get(id), change)
        if (one?.type === 'DELETED') one.object = await this.#watched.last(change.last)
        if (one !== undefined) told.push(one)
      }
    }
    // Whoever comes back in the middle of a batch is sent all of it again.
    const all = told.map(({ type, id, object }, index) =>
      this.#event(type, id, object, index < told.length - 1 ? before : cursor),
    )
    const synced = this.#syncedBy !== undefined && events.some(({ id }) => id === this.#syncedBy)
    if (synced) {
      this.#syncedBy = undefined
      if (!this.#ended) all.push(this.#event('SYNCED', null, null))
    }
    return all
  }

  #compare(id: string, now: T | undefined, { created, last }: Changed): Told<T> | undefined {
    const before = this.#sent.get(id)
    if (now !== undefined && this.#watched.matches(now)) {
      if (now.version <= (before ?? 0)) return undefined
      this.#sent.set(id, now.version)
      this.#toldAway.delete(id)
      const had = before !== undefined || (this.#resumed && !created && !this.#watched.filtered)
      return { type: had ? 'MODIFIED' : 'ADDED', id, object: now }
    }
    // Gone, but the event of its end is yet to come.
    if (now === undefined && last == null) return undefined
    if (before === undefined && !this.#mayHave(id)) return undefined
    this.#sent.delete(id)
    this.#toldAway.add(id)
    if (now !== undefined) return { type: 'LEFT', id, object: now }
    this.#ended = this.#watched.only !== undefined
    return { type: 'DELETED', id, object: null }
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
    const fresh = () => ({ type, cursor, at: this.#context.clock.now().toISOString(), id, object })
    return object === null
      ? fresh()
      : this.#watched.shared.event(object, `${type} ${cursor}`, fresh)
  }
}

type Told<T> = { type: WatchEventType; id: string; object: T | null }
