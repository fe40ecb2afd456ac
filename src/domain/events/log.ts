import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../../db/client.ts'
import { onHint } from '../hints.ts'
import type { EventRecord } from '../records.ts'
import { CursorLost, type Position, readCursor, writeCursor } from './cursor.ts'
import { EVENT_JSON, readLog, type StoredEvent, toEvent } from './read.ts'

/** An event in the log; `object` is the whole object as it was last, in the event of its end. */
export type LoggedEvent = EventRecord & { object: unknown }
export type LogBatch = {
  events: LoggedEvent[]
  /** Everything up to here is in this batch or an earlier one. */
  cursor: string
}

export type EventLog = {
  /** The head of the log now. */
  head(): Promise<string>
  /**
   * What is committed after a cursor, without gaps, in batches as they come, until `signal` ends it.
   * Throws `CursorLost`. A follower that is slow reads larger batches; nothing piles up for it.
   */
  follow(after: string, signal: AbortSignal): AsyncIterable<LogBatch>
  /** Something was committed: look at once. */
  hint(): void
  close(): void
}

/** While someone follows, the log is looked at this often (ms) even if no hint comes. */
const POLL = 250
/** Followers read at most this many events at a time. */
const BATCH = 500

/**
 * The log of changes as one process follows it. Reading is gapless: an event is told once no older
 * transaction is running any more (xid below `pg_snapshot_xmin`), so none can appear before it later.
 * One query serves all followers that stand at the head; those behind read for themselves.
 */
export function openEventLog(
  store: Store,
  options: {
    onError?: (error: unknown) => void
    /** Told how old (s) events were when they were handed to those who had all that came before. */
    onDelivered?: (lagSeconds: number) => void
  } = {},
): EventLog {
  const closing = new AbortController()
  /** Those who read or hand on what they read: they look once more then. */
  const busy = new Set<() => void>()
  /** Those who wait for news, by where they stand: there may be thousands, all at the head. */
  const waiting = new Map<string, Waiting>()
  let tail: { at: Position; batch: ReadBatch } | undefined
  let reading: Promise<ReadBatch> | undefined
  let readingFrom: string | undefined
  let told: LogBatch['events'] | undefined
  const wakeAll = () => {
    // A query that is under way may not see what the hint is about.
    reading = undefined
    for (const hear of busy) hear()
    for (const group of waiting.values()) void wakeForNews(group)
  }
  onHint(store, closing.signal, wakeAll)
  const timer = setInterval(wakeAll, POLL)
  timer.unref()

  /** Followers at the same position share one query, also with those that come just after it. */
  const readShared = async (from: Position) => {
    const key = keyOf(from)
    if (tail !== undefined && keyOf(tail.at) === key) return tail.batch
    if (reading === undefined || readingFrom !== key) {
      readingFrom = key
      const read = readBatch(store, from)
      reading = read
      read
        .then((batch) => {
          if (batch.events.length > 0) {
            tail = { at: from, batch }
          }
        })
        .catch(() => undefined)
        .finally(() => {
          if (reading === read) reading = undefined
        })
    }
    return reading
  }

  /**
   * One query at a time for all who wait there, however many hints come meanwhile; without news nobody
   * is woken.
   */
  const wakeForNews = async (group: Waiting) => {
    group.again = true
    if (group.looking) return
    group.looking = true
    while (group.again && group.wakes.size > 0) {
      group.again = false
      const news = await readShared(group.at).then(
        ({ events }) => events.length > 0,
        // They meet it themselves.
        () => true,
      )
      if (news) for (const wake of [...group.wakes]) wake()
    }
    group.looking = false
  }

  /** Calls back once when there is news after a position, or when what it returns is called. */
  const waitAt = (at: Position, woken: () => void): (() => void) => {
    const key = keyOf(at)
    const group = waiting.get(key) ?? { at, wakes: new Set(), looking: false, again: false }
    waiting.set(key, group)
    const wake = () => {
      group.wakes.delete(wake)
      if (group.wakes.size === 0 && waiting.get(key) === group) waiting.delete(key)
      woken()
    }
    group.wakes.add(wake)
    return wake
  }

  async function* follow(after: string, signal: AbortSignal): AsyncIterable<LogBatch> {
    let position = await checked(store, after)
    const ended = AbortSignal.any([signal, closing.signal])
    let wake: (() => void) | undefined
    let pending = false
    // Who catches up reads what is old, whoever delivers it.
    let caughtUp = false
    const onWake = () => {
      pending = true
      wake?.()
    }
    busy.add(onWake)
    ended.addEventListener('abort', onWake, { once: true })
    try {
      for (let failures = 0; !ended.aborted; ) {
        pending = false
        try {
          const batch = await readShared(position)
          failures = 0
          if (ended.aborted) return
          if (batch.events.length > 0) {
            position = batch.position
            if (caughtUp && told !== batch.events) {
              told = batch.events
              options.onDelivered?.(batch.lag)
            }
            yield { events: batch.events, cursor: batch.cursor }
            continue
          }
          caughtUp = true
        } catch (error) {
          if (error instanceof CursorLost) throw error
          options.onError?.(error)
          failures += 1
          // The store is away: the follower stays where it is, and goes on when it is back.
          const wait = Math.random() * Math.min(100 * 2 ** failures, 5_000)
          await delay(wait, undefined, { ref: false })
          continue
        }
        if (!pending) {
          busy.delete(onWake)
          await new Promise<void>((resolve) => {
            wake = waitAt(position, resolve)
          })
          wake = undefined
          busy.add(onWake)
        }
      }
    } finally {
      busy.delete(onWake)
      ended.removeEventListener('abort', onWake)
    }
  }

  return {
    head: () => headCursor(store),
    follow,
    hint: wakeAll,
    close() {
      clearInterval(timer)
      closing.abort()
    },
  }
}

/** Followers at one position. `again`: something was committed since their last look began. */
type Waiting = { at: Position; wakes: Set<() => void>; looking: boolean; again: boolean }

const keyOf = ({ epoch, xid, seq }: Position): string => `${epoch} ${xid}.${seq}`

/** `lag`: how old (s) the newest event was when it was read. */
type ReadBatch = LogBatch & { position: Position; lag: number }

async function readBatch(store: Store, from: Position): Promise<ReadBatch> {
  // One row at least, so that the epoch is told also where there is no news.
  const { rows } = await store.pool.query<{
    epoch: string
    event: StoredEvent | null
    lag: number | null
  }>({
    name: 'read-log',
    text: `
SELECT store.log_epoch AS epoch, news.event, news.lag FROM store LEFT JOIN LATERAL (
  SELECT ${EVENT_JSON} AS event, event.xid, event.seq,
    extract(epoch FROM clock_timestamp() - event.at)::float8 AS lag FROM event
  WHERE (xid, seq) > ($1::xid8, $2::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
  ORDER BY xid, seq LIMIT ${BATCH}) news ON true
ORDER BY news.xid, news.seq`,
    values: [from.xid, from.seq],
  })
  if (rows[0]?.epoch !== from.epoch) throw new CursorLost('the log is another one by now')
  const news = rows.flatMap(({ event }) => event ?? [])
  const events = news.map((event) => ({
    ...toEvent(event, { epoch: from.epoch }),
    object: event.object,
  }))
  const last = news.at(-1)
  const position = last ? { epoch: from.epoch, xid: last.xid, seq: String(last.seq) } : from
  return { events, cursor: writeCursor(position), position, lag: rows.at(-1)?.lag ?? 0 }
}

/** The head of the log now: what is committed later comes after it. */
export async function headCursor(store: Store): Promise<string> {
  // Not the newest event: an older transaction may still be running and commit one before it.
  const { epoch, head } = await readLog(store)
  return writeCursor({ epoch, xid: String(head), seq: '0' })
}

/** The position of a cursor that can be continued from. */
async function checked(store: Store, cursor: string): Promise<Position> {
  const position = readCursor(cursor)
  if (position === undefined) throw new CursorLost('not a cursor of this log')
  const { rows } = await store.pool.query<{ beyond: boolean }>({
    name: 'check-cursor',
    text: 'SELECT $1::xid8 > pg_snapshot_xmax(pg_current_snapshot()) AS beyond',
    values: [position.xid],
  })
  const { epoch, removedUpTo } = await readLog(store)
  if (position.epoch !== epoch || rows[0]?.beyond || BigInt(position.xid) <= removedUpTo) {
    throw new CursorLost('the cursor is of another log, or older than what is kept')
  }
  return position
}
