import type { Store } from '../../db/client.ts'
import { isId } from '../ids.ts'
import { Conditions, type PageRequest, readPage } from '../paging.ts'
import type { EventRecord, Page } from '../records.ts'
import { CursorLost, readCursor, writeCursor } from './cursor.ts'

export type EventFilter = {
  /** A UUID. */
  objectId?: string | null
  reason?: string[] | null
  /** A log cursor: what was committed after it. */
  since?: string | null
}

/** An event as a JSON object; `cursor` is put together from its parts, see `toEvent`. */
export const EVENT_JSON = `json_build_object(
  'id', event.id, 'xid', event.xid::text, 'seq', event.seq, 'at', rfc3339(event.at), 'reason', event.reason,
  'message', event.message, 'actor', json_build_object('kind', event.actor_kind, 'name', event.actor_name),
  'project', event.project, 'objectKind', event.object_kind, 'objectId', event.object_id,
  'version', event.version, 'generation', event.generation, 'changes', event.changes, 'object', event.object)`

export type StoredEvent = Omit<EventRecord, 'cursor'> & {
  xid: string
  seq: number
  /** The whole object as it was last; null but in the event of its end. */
  object: unknown
}

/**
 * One page of the log, newest first. Throws `CursorLost` where `since` is of no use: of another log, or
 * older than what is kept.
 */
export async function listEvents(
  store: Store,
  selection: { project: string | null; filter?: EventFilter | null; page: PageRequest },
): Promise<Page<EventRecord>> {
  // Before the page is read: whoever isn't seen in it then commits behind this head.
  const log = await readLog(store)
  const conditions = new Conditions()
  const { project, filter } = selection
  if (project !== null) conditions.add('event.project = ?', project)
  if (filter?.objectId) {
    if (isId(filter.objectId)) conditions.add('event.object_id = ?::uuid', filter.objectId)
    else conditions.add('false')
  }
  if (filter?.reason) conditions.add('event.reason = ANY (?::text[])', filter.reason)
  const since = filter?.since == null ? undefined : readCursor(filter.since)
  if (filter?.since != null && since?.epoch !== log.epoch) throw new CursorLost('of another log')
  if (since) {
    if (BigInt(since.xid) <= log.removedUpTo) throw new CursorLost('older than what is kept')
    conditions.add('(event.xid, event.seq) > (?::xid8, ?::bigint)', since.xid, since.seq)
  }
  const page = await readPage<StoredEvent>(
    store.pool,
    {
      from: 'event',
      item: EVENT_JSON,
      id: 'event.id',
      order: { sql: 'event.seq', type: 'bigint', descending: true },
      conditions,
    },
    selection.page,
  )
  const items = page.items.map(({ cursor, item }) => ({ cursor, item: toEvent(item, log) }))
  return { ...page, items }
}

/** Events by id. */
export async function readEvents(
  store: Store,
  { project, ids }: { project: string | null; ids: string[] },
): Promise<Map<string, EventRecord>> {
  const log = await readLog(store)
  const { rows } = await store.pool.query<{ event: StoredEvent }>(
    `SELECT ${EVENT_JSON} AS event FROM event WHERE id = ANY ($1::uuid[]) AND ($2::text IS NULL OR project = $2)`,
    [ids, project],
  )
  return new Map(rows.map(({ event }) => [event.id, toEvent(event, log)]))
}

/** The log as it is now. Transactions from `head` on may still be running; none before is. */
export type LogNow = {
  /** Cursors of another one come from a log that was replaced by a restored backup. */
  epoch: string
  head: bigint
  /** Events of this transaction and older ones are no longer all there. */
  removedUpTo: bigint
}

export async function readLog(store: Store): Promise<LogNow> {
  const { rows } = await store.pool.query<{ epoch: string; head: string; removed: string }>({
    name: 'read-log-now',
    text: `
SELECT log_epoch AS epoch, pg_snapshot_xmin(pg_current_snapshot())::text AS head,
  coalesce(removed_up_to::text, '-1') AS removed FROM store`,
  })
  const [row] = rows
  if (row === undefined) throw new Error('the store has no row: was it migrated?')
  return { epoch: row.epoch, head: BigInt(row.head), removedUpTo: BigInt(row.removed) }
}

/**
 * The event as the graph shows it. Before one that stands behind the head others may still come, which
 * whoever goes on from it would miss: its cursor is the head, from where it comes once more.
 */
export function toEvent(
  stored: StoredEvent,
  { epoch, head }: Pick<LogNow, 'epoch'> & { head?: bigint },
): EventRecord {
  const { xid, seq, object, ...event } = stored
  const position =
    head !== undefined && BigInt(xid) >= head
      ? { xid: String(head), seq: '0' }
      : { xid, seq: String(seq) }
  return { ...event, cursor: writeCursor({ epoch, ...position }) }
}
