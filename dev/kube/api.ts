import type { Definition } from './definition.ts'
import { CRDS, definitionOf, NAMESPACES, readBy } from './definition.ts'
import type { JsonObject } from './json.ts'
import { metadataOf, objectAt, textAt } from './json.ts'
import type { Store, Table } from './storage.ts'
import { timeText } from './write.ts'

/** The state behind the HTTP face: what is served, and what is stored. */
export class Api {
  readonly store: Store
  readonly now: () => Date
  /** By id, `plural.group`. */
  readonly definitions = new Map<string, Definition>()
  readonly #byPath = new Map<string, Definition>()

  constructor(store: Store, now: () => Date) {
    this.store = store
    this.now = now
    this.#add(NAMESPACES)
    this.#add(CRDS)
  }

  /** What is served under /apis/<group>/<version>/<plural>, or /api/v1/<plural> for group ''. */
  serves(group: string, version: string, plural: string): Definition | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`)
  }

  table(definition: Definition): Table {
    return this.store.table(definition.id)
  }

  /** Stores a CRD that was found valid and serves what it describes from now on. */
  putCrd(crd: JsonObject): JsonObject {
    const version = this.table(CRDS).put(established(crd, this.now()))
    this.serveCrd(version.object)
    return version.object
  }

  /** Serves a CRD that is stored already. */
  serveCrd(crd: JsonObject): void {
    const definition = definitionOf(crd)
    const before = this.definitions.get(definition.id)
    if (before !== undefined && sameSpec(before, definition)) return
    if (before !== undefined) this.#remove(before)
    this.#add(definition)
    if (before !== undefined) this.table(definition).reread(readBy(definition))
  }

  /** Serves a kind no more; its objects are deleted first. */
  dropCrd(id: string): void {
    const definition = this.definitions.get(id)
    if (definition === undefined) return
    const table = this.table(definition)
    for (const version of [...table.current.values()]) table.remove(version)
    this.#remove(definition)
    this.store.drop(id)
  }

  #add(definition: Definition): void {
    this.definitions.set(definition.id, definition)
    const { group, version, plural } = definition
    this.#byPath.set(`${group}/${version}/${plural}`, definition)
    this.table(definition).view = readBy(definition)
  }

  #remove(definition: Definition): void {
    this.definitions.delete(definition.id)
    const { group, version, plural } = definition
    this.#byPath.delete(`${group}/${version}/${plural}`)
  }
}

const sameSpec = (a: Definition, b: Definition): boolean =>
  JSON.stringify([a.published, a.version, a.kind, a.shortNames, a.hasStatus]) ===
  JSON.stringify([b.published, b.version, b.kind, b.shortNames, b.hasStatus])

/** A CRD with the status that says it is in service. */
function established(crd: JsonObject, now: Date): JsonObject {
  const spec = objectAt(crd, 'spec') ?? {}
  const was = objectAt(crd, 'status')
  const condition = (type: string, reason: string, message: string): JsonObject => ({
    type,
    status: 'True',
    reason,
    message,
    lastTransitionTime: textAt(metadataOf(crd), 'creationTimestamp') ?? timeText(now),
  })
  return {
    ...crd,
    status: {
      ...was,
      acceptedNames: spec['names'] ?? {},
      storedVersions: [definitionOf(crd).version],
      conditions: [
        condition('NamesAccepted', 'NoConflicts', 'no conflicts found'),
        condition('Established', 'InitialNamesAccepted', 'the initial names have been accepted'),
      ],
    },
  }
}
