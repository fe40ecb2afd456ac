import type { JsonObject } from './json.ts'
import { metadataOf, objectAt, textAt } from './json.ts'

export type Change = 'ADDED' | 'MODIFIED' | 'DELETED'

/** One committed state of one object. Its objects are never changed in place. */
export class Version {
  readonly key: string
  readonly namespace: string
  readonly name: string
  readonly revision: number
  /** As it was written. */
  readonly stored: JsonObject
  readonly #table: Table
  #seen: JsonObject
  #seenEpoch: number
  #json: string | undefined
  #storedJson: string | undefined

  constructor(table: Table, revision: number, stored: JsonObject) {
    const metadata = metadataOf(stored)
    this.namespace = textAt(metadata, 'namespace') ?? ''
    this.name = textAt(metadata, 'name') ?? ''
    this.key = keyOf(this.namespace, this.name)
    this.revision = revision
    this.stored = stored
    this.#table = table
    this.#seen = stored
    this.#seenEpoch = table.epoch
  }

  /** As it is read by the schema of now. */
  get object(): JsonObject {
    if (this.#seenEpoch !== this.#table.epoch) {
      this.#seen = this.#table.view(this.stored)
      this.#seenEpoch = this.#table.epoch
      this.#json = undefined
    }
    return this.#seen
  }

  /** `object` as JSON, made once. */
  get json(): string {
    const object = this.object
    this.#json ??= JSON.stringify(object)
    return this.#json
  }

  /** `stored` as JSON; the same text as `json` while the schema is the one it was written by. */
  get storedJson(): string {
    if (this.object === this.stored) return this.json
    this.#storedJson ??= JSON.stringify(this.stored)
    return this.#storedJson
  }

  get labels(): JsonObject {
    return objectAt(metadataOf(this.object), 'labels') ?? {}
  }
}

export type StoreEvent = {
  type: Change
  revision: number
  version: Version
  /** The state before; undefined for ADDED. */
  previous: Version | undefined
}

/** `namespace/name`; the name alone for cluster-scoped kinds. */
export const keyOf = (namespace: string, name: string): string =>
  namespace === '' ? name : `${namespace}/${name}`

/** The objects of one resource and the last changes to them. */
export class Table {
  readonly id: string
  readonly store: Store
  readonly current = new Map<string, Version>()
  readonly listeners = new Set<(event: StoreEvent) => void>()
  /** Called when every running watch has to end. */
  readonly enders = new Set<() => void>()
  epoch = 0
  view: (stored: JsonObject) => JsonObject = (stored) => stored
  /** Changes after this revision are known; older ones are compacted. */
  floor: number
  #events: StoreEvent[] = []
  #sorted: Version[] | undefined
  #snapshots = new Map<number, Version[]>()

  constructor(store: Store, id: string) {
    this.store = store
    this.id = id
    this.floor = store.revision
  }

  /** Writes a new state under the next revision; `object` belongs to the store from here on. */
  put(object: JsonObject): Version {
    const version = this.#version(object)
    const previous = this.current.get(version.key)
    this.current.set(version.key, version)
    this.#commit(previous === undefined ? 'ADDED' : 'MODIFIED', version, previous)
    return version
  }

  /** Removes an object; the event carries its last state under the revision of the removal. */
  remove(previous: Version): Version {
    const metadata = { ...metadataOf(previous.object) }
    const version = this.#version({ ...previous.object, metadata })
    this.current.delete(version.key)
    this.#commit('DELETED', version, previous)
    return version
  }

  /** Puts in what an earlier run had stored, without an event. */
  restore(object: JsonObject): void {
    const revision = Number(textAt(metadataOf(object), 'resourceVersion') ?? 0)
    const version = new Version(this, revision, object)
    this.current.set(version.key, version)
    this.#sorted = undefined
  }

  /** Another schema: objects are read anew by `view`, and running watches end. */
  reread(view: (stored: JsonObject) => JsonObject): void {
    this.view = view
    this.epoch += 1
    this.compact()
    for (const end of [...this.enders]) end()
  }

  /** Forgets how things were: watches and lists of older revisions answer 410 from now on. */
  compact(): void {
    this.floor = this.store.revision
    this.#snapshots.clear()
  }

  /** Known changes, oldest first, from after `revision` on. */
  eventsAfter(revision: number): StoreEvent[] {
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#events[middle]?.revision ?? 0) > revision) high = middle
      else low = middle + 1
    }
    return this.#events.slice(low)
  }

  /** All objects in order of their keys, as they were at `revision` (not below `floor`). */
  snapshot(revision: number): Version[] {
    const kept = this.#snapshots.get(revision)
    if (kept !== undefined) return kept
    const since = this.eventsAfter(revision)
    let versions = this.#sortedNow()
    if (since.length > 0) {
      const past = new Map(this.current)
      for (const event of since.reverse()) {
        if (event.previous === undefined) past.delete(event.version.key)
        else past.set(event.version.key, event.previous)
      }
      versions = [...past.values()].sort(byKey)
    }
    this.#snapshots.set(revision, versions)
    const oldest = this.#snapshots.keys().next().value
    if (this.#snapshots.size > KEPT_SNAPSHOTS && oldest !== undefined) {
      this.#snapshots.delete(oldest)
    }
    return versions
  }

  #sortedNow(): Version[] {
    this.#sorted ??= [...this.current.values()].sort(byKey)
    return this.#sorted
  }

  #version(object: JsonObject): Version {
    const revision = this.store.next()
    metadataOf(object)['resourceVersion'] = `${revision}`
    return new Version(this, revision, object)
  }

  #commit(type: Change, version: Version, previous: Version | undefined): void {
    this.#sorted = undefined
    const event = { type, revision: version.revision, version, previous }
    this.#events.push(event)
    if (this.#events.length > 1.25 * this.store.historyLimit) {
      this.#events.splice(0, this.#events.length - this.store.historyLimit)
      this.floor = Math.max(this.floor, (this.#events[0]?.revision ?? 1) - 1)
      for (const at of this.#snapshots.keys()) {
        if (at < this.floor) this.#snapshots.delete(at)
      }
    }
    for (const listener of this.listeners) listener(event)
    this.store.committed(this, event)
  }
}

/** Pages of this many lists at once are read from the snapshot of their first page. */
const KEPT_SNAPSHOTS = 8

const byKey = (a: Version, b: Version): number => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0)

/** All tables of one server under one revision counter. */
export class Store {
  revision: number
  /** At least this many of a table's last changes are kept. */
  readonly historyLimit: number
  readonly tables = new Map<string, Table>()
  readonly observers = new Set<(table: Table, event: StoreEvent) => void>()

  constructor(options: { revision: number; historyLimit: number }) {
    this.revision = options.revision
    this.historyLimit = options.historyLimit
  }

  next(): number {
    this.revision += 1
    return this.revision
  }

  table(id: string): Table {
    const known = this.tables.get(id)
    if (known !== undefined) return known
    const table = new Table(this, id)
    this.tables.set(id, table)
    return table
  }

  /** Removes a table and ends its watches. */
  drop(id: string): void {
    const table = this.tables.get(id)
    this.tables.delete(id)
    for (const end of [...(table?.enders ?? [])]) end()
  }

  committed(table: Table, event: StoreEvent): void {
    for (const observer of this.observers) observer(table, event)
  }
}
