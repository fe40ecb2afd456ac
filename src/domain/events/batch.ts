import type { Store } from '../../db/client.ts'
import type { EventRecord } from '../records.ts'
import { CursorLost, isBefore, type Position, writeCursor } from './cursor.ts'
import { EVENT_JSON, readLog, type StoredEvent, toEvent } from './read.ts'

/** An event in the log; `object` is the whole object as it was last, in the event of its end. */
export type LoggedEvent = EventRecord & { object: unknown }
export type LogBatch = {
  events: LoggedEvent[]
  /** Everything up to here is in this batch or an earlier one. */
  cursor: string
}
export type ReadBatch = LogBatch & {
  position: Position
  /** Where each event stands. */
  positions: Position[]
  /** There may be more. */
  full: boolean
  /** How old (s) the newest event was when it was read. */
  lag: number
}

/** Of which events a follower is told: of a project (null: all), of one object. It passes by the others. */
export type Interest = { project: string | null; objectId?: string | undefined }

/** At most this many events are read at a time. */
const MOST = 500

/**
 * What was committed after a position. An event is told once no older transaction is running any more
 * (xid below `pg_snapshot_xmin`), so none can appear before it later; nor can any below that xid at all.
 * Throws `CursorLost`: whether the log can be continued from there is asked with every read, as whoever reads
 * slowly may have stood there longer than what came after it was kept.
 */
export async function readBatch(store: Store, from: Position): Promise<ReadBatch> {
  // One row at least, so that the epoch and the head are told also where there is no news.
  const { rows } = await store.pool.query<{
    epoch: string
    lost: boolean
    head: string
    event: StoredEvent | null
    lag: number | null
  }>({
    name: 'read-log',
    text: `
SELECT store.log_epoch AS epoch,
  $1::xid8 > pg_snapshot_xmax(pg_current_snapshot())
    OR coalesce($1::xid8 <= store.removed_up_to, false) AS lost,
  pg_snapshot_xmin(pg_current_snapshot())::text AS head, news.event, news.lag
FROM store LEFT JOIN LATERAL (
  SELECT ${EVENT_JSON} AS event, event.xid, event.seq,
    extract(epoch FROM clock_timestamp() - event.at)::float8 AS lag FROM event
  WHERE (xid, seq) > ($1::xid8, $2::bigint) AND xid < pg_snapshot_xmin(pg_current_snapshot())
  ORDER BY xid, seq LIMIT ${MOST}) news ON true
ORDER BY news.xid, news.seq`,
    values: [from.xid, from.seq],
  })
  const { epoch } = from
  const [first] = rows
  if (first?.epoch !== epoch) throw new CursorLost('the log is another one')
  if (first.lost) throw new CursorLost('the cursor is older than what is kept, or beyond the head')
  const news = rows.flatMap(({ event }) => event ?? [])
  const events = news.map((event) => ({ ...toEvent(event, { epoch }), object: event.object }))
  const positions = news.map(({ xid, seq }) => ({ epoch, xid, seq: String(seq) }))
  const full = news.length === MOST
  const head = { epoch, xid: first.head, seq: '0' }
  const last = positions.at(-1) ?? from
  const position = !full && isBefore(last, head) ? head : last
  const lag = rows.at(-1)?.lag ?? 0
  return { events, cursor: writeCursor(position), position, positions, full, lag }
}

/** The part of a batch that comes after a position. */
export function partAfter(batch: ReadBatch, at: Position): ReadBatch {
  const first = batch.positions.findIndex((position) => isBefore(at, position))
  if (first === 0) return batch
  const from = first === -1 ? batch.events.length : first
  const [events, positions] = [batch.events.slice(from), batch.positions.slice(from)]
  return { ...batch, events, positions }
}

type Subjects = { projects: Set<string | null>; objects: Set<string> }
const subjects = new WeakMap<LoggedEvent[], Subjects>()

/** Whether any of the events is one that a follower is told of. The events are looked through once for all. */
export function concerns({ events }: LogBatch, { project, objectId }: Interest): boolean {
  if (events.length === 0) return false
  if (project === null && objectId === undefined) return true
  const known = subjects.get(events) ?? {
    projects: new Set(events.map((event) => event.project)),
    objects: new Set(events.map((event) => event.objectId)),
  }
  subjects.set(events, known)
  return (
    (project === null || known.projects.has(project)) &&
    (objectId === undefined || known.objects.has(objectId))
  )
}

/** The head of the log now: what is committed later comes after it. */
export async function headCursor(store: Store): Promise<string> {
  // Not the newest event: an older transaction may still be running and commit one before it.
  const { epoch, head } = await readLog(store)
  return writeCursor({ epoch, xid: String(head), seq: '0' })
}
