import { CursorLost } from '../../domain/events/cursor.ts'
import { listEvents } from '../../domain/events/read.ts'
import type { EventRecord } from '../../domain/records.ts'
import type { ChosenEvents } from '../../schema/changeEvent.ts'
import type { Context } from '../../schema/context.ts'
import { among } from '../../schema/loadBalancerFilter.ts'
import type { WatchEvent, WatchEventType } from '../../schema/watchEvents.ts'
import { beginning } from './beginning.ts'
import { endable, QUIET, whenQuiet } from './iterate.ts'

/**
 * The project's log as it grows. Its past isn't sent at first (`Query.events` shows it); whoever
 * reads slowly is behind in the log, and nothing is kept for them.
 */
export function watchLog(
  context: Context,
  filter: ChosenEvents,
  after: string | null,
): AsyncGenerator<WatchEvent<EventRecord>> {
  return endable(async function* (signal) {
    let position = after ?? filter.since ?? (await headOf(context))
    while (!signal.aborted) {
      try {
        yield* follow(context, filter, position, signal)
        return
      } catch (error) {
        if (!(error instanceof CursorLost)) throw error
        position = await headOf(context)
        yield told(context, 'RESYNC', position, null)
      }
    }
  })
}

async function* follow(
  context: Context,
  filter: ChosenEvents,
  from: string,
  signal: AbortSignal,
): AsyncGenerator<WatchEvent<EventRecord>> {
  const { clock, log, store, project } = context
  const since = await beginning(store, () =>
    listEvents(store, { project, filter: { since: from }, page: { first: 1 } }),
  )
  const syncedBy = since.items[0]?.item.id
  const batches = log.follow(from, signal, { project })
  const quiet = whenQuiet(clock, QUIET, () => batches.nudge())
  try {
    if (syncedBy === undefined) yield told(context, 'SYNCED', from, null)
    for await (const { events, cursor } of batches) {
      if (events.length === 0) yield told(context, 'HEARTBEAT', cursor, null)
      const chosen = events.filter((event) => matches(event, project, filter))
      for (const event of chosen) yield told(context, 'ADDED', event.cursor, event)
      if (events.some(({ id }) => id === syncedBy)) yield told(context, 'SYNCED', cursor, null)
      if (chosen.length > 0) quiet.heard()
    }
  } finally {
    quiet.end()
    await batches.return?.()
  }
}

const headOf = ({ store, log }: Context) => beginning(store, () => log.head())

function matches(
  event: EventRecord,
  project: string | null,
  { objectId, reason }: ChosenEvents,
): boolean {
  return (
    (project === null || event.project === project) &&
    (objectId === undefined || event.objectId === objectId) &&
    among(reason, event.reason)
  )
}

function told(
  { clock }: Context,
  type: WatchEventType,
  cursor: string,
  event: EventRecord | null,
): WatchEvent<EventRecord> {
  return { type, cursor, at: clock.now().toISOString(), id: event?.id ?? null, object: event }
}
