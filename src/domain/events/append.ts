import { isDeepStrictEqual } from 'node:util'
import type { Querier } from '../querier.ts'
import type { Actor, EventRecord } from '../records.ts'
import type { EventReason } from './reasons.ts'

export type FieldChange = EventRecord['changes'][number]

/** What the system does by itself. */
export const SYSTEM: Actor = { kind: 'SYSTEM', name: 'load-balancer-controller' }

/** Writes one committed change into the log, in the transaction that makes it. */
export async function appendEvent(
  client: Querier,
  event: {
    project: string
    objectKind: EventRecord['objectKind']
    objectId: string
    version: number
    generation: number
    reason: EventReason
    message: string
    actor: Actor
    changes?: FieldChange[]
    /** The whole object as it was last, in the event of its end. */
    object?: object
  },
): Promise<void> {
  await client.query({
    name: 'append-event',
    text: 'SELECT append_event($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)',
    values: [
      event.project,
      event.objectKind,
      event.objectId,
      event.version,
      event.generation,
      event.reason,
      event.message,
      event.actor.kind,
      event.actor.name,
      JSON.stringify(event.changes ?? []),
      event.object === undefined ? null : JSON.stringify(event.object),
    ],
  })
}

/** Not by their texts, since jsonb keeps no order of keys; cloned, since literals of a document have no prototype. */
const isSame = (was: unknown, is: unknown): boolean =>
  was === is ||
  (typeof was === 'object' &&
    typeof is === 'object' &&
    isDeepStrictEqual(structuredClone(was), structuredClone(is)))

/** The difference of two flat sets of fields, as the history shows it. */
export function fieldChanges(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): FieldChange[] {
  const text = (value: unknown): string | null => {
    if (value === null) return null
    return typeof value === 'string' ? value : JSON.stringify(value)
  }
  return Object.keys({ ...before, ...after }).flatMap((field) => {
    const [was, is] = [before[field] ?? null, after[field] ?? null]
    if (isSame(was, is)) return []
    return [{ path: field.split('.'), before: text(was), after: text(is) }]
  })
}
