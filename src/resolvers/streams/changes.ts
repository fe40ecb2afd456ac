/** What all streams that watch objects of one kind have in common: it is made once, however many there are. */
import type { LogBatch } from '../../domain/events/batch.ts'
import type { EventRecord } from '../../domain/records.ts'
import type { WatchEvent } from '../../schema/watchEvents.ts'

type Events = LogBatch['events']

/** What a batch of events says of one object. */
export type Changed = {
  /** The newest of the changes. */
  version: number
  /** Its first version is among the changes. */
  created: boolean
  /** The object in the event of its end. */
  last: unknown
}

export type Changes<T> = {
  changed: ReadonlyMap<string, Changed>
  /** The objects that were changed, as they are now: read when it is first asked for. */
  found(): Promise<Map<string, T>>
}

/** Which events are about what is watched. */
type Chosen = {
  kind: EventRecord['objectKind']
  /** null: of all. */
  project: string | null
  only: string | undefined
}

type Reread<T> = (changed: ReadonlyMap<string, number>) => Promise<Map<string, T>>

export class Shared<T extends object> {
  readonly #changes = new WeakMap<Events, Map<string, Changes<T>>>()
  readonly #events = new WeakMap<T, Map<string, WatchEvent<T>>>()

  /** What batches mean to those who watch the same: each is looked through once for all of them. */
  changes(chosen: Chosen, reread: Reread<T>): (events: Events) => Changes<T> {
    const key = `${chosen.project ?? ''} ${chosen.only ?? ''}`
    return (events) => {
      const known = this.#changes.get(events) ?? new Map<string, Changes<T>>()
      this.#changes.set(events, known)
      const changes = known.get(key) ?? changesIn(events, chosen, reread)
      known.set(key, changes)
      return changes
    }
  }

  /** The event that tells something of an object: all who are told the same get the same one. */
  event(object: T, what: string, make: () => WatchEvent<T>): WatchEvent<T> {
    const told = this.#events.get(object) ?? new Map<string, WatchEvent<T>>()
    this.#events.set(object, told)
    const event = told.get(what) ?? make()
    told.set(what, event)
    return event
  }
}

function changesIn<T>(
  events: Events,
  { kind, project: ours, only }: Chosen,
  reread: Reread<T>,
): Changes<T> {
  const changed = new Map<string, Changed>()
  for (const { objectKind, objectId, project, version, object } of events) {
    if (objectKind !== kind || (ours !== null && project !== ours)) continue
    if (only !== undefined && objectId !== only) continue
    const before = changed.get(objectId)
    changed.set(objectId, {
      // Its end may stand before an earlier change: the log isn't in the order of versions.
      version: Math.max(version, before?.version ?? 0),
      created: version === 1 || (before?.created ?? false),
      last: object ?? before?.last ?? null,
    })
  }
  let found: Promise<Map<string, T>> | undefined
  return {
    changed,
    found: () => {
      found ??= reread(new Map([...changed].map(([id, { version }]) => [id, version])))
      return found
    },
  }
}
