import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '../rules/objects.ts'
import { compareVersions, keyOf } from './wire.ts'

type Changed<T> = (object: T | undefined, previous: T | undefined) => void

/**
 * The objects a follow knows, put together from lists, watch events and what writes answered.
 *
 * Writes and the watch race. Events of one resource come in the order of their versions, so all up
 * to `version` has been seen: a written object at or below it that isn't known was deleted (or isn't
 * selected) and stays out; one above it is news, and the watch's own event for it is none any more.
 */
export class Known<T extends KubeObject> {
  readonly objects = new Map<string, T>()
  /** All changes up to this resourceVersion have been seen; undefined before the first list. */
  version: string | undefined
  /** Versions that came by `learn` since the running list began: it may be older than they are. */
  readonly #learned = new Map<string, string>()
  readonly #changed: Changed<T>

  constructor(changed: Changed<T>) {
    this.#changed = changed
  }

  beginList(): void {
    this.#learned.clear()
  }

  /** Takes over a whole list. Answers how many objects had vanished, or undefined if refused. */
  takeList(
    listed: readonly T[],
    version: string,
    accept: (known: number, vanished: number) => boolean,
  ): number | undefined {
    const present = new Set(listed.map(keyOf))
    const vanished = [...this.objects.keys()].filter(
      (key) => !present.has(key) && !this.#isNewer(key, version),
    )
    const accepted = vanished.length === 0 || accept(this.objects.size, vanished.length)
    this.version = version
    if (accepted) for (const key of vanished) this.#drop(key)
    for (const object of listed) {
      const key = keyOf(object)
      const known = this.objects.get(key)
      const newer = this.#isNewer(key, object.metadata.resourceVersion)
      if (!newer && !isSame(known, object)) this.#put(key, object)
    }
    this.#learned.clear()
    return accepted ? vanished.length : undefined
  }

  /** Takes over an event of the watch. */
  takeEvent(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T): void {
    const key = keyOf(object)
    const known = this.objects.get(key)
    this.sawVersion(object.metadata.resourceVersion)
    if (type === 'DELETED') {
      // Also told of an object that leaves the selection, and late of an earlier one by that name.
      if (known !== undefined && (versionOrder(object, known) ?? 0) >= 0) this.#drop(key)
      return
    }
    if (known === undefined || isOlder(known, object)) this.#put(key, object)
  }

  sawVersion(version: string | undefined): void {
    const order = compareVersions(version, this.version)
    if (version !== undefined && (order === undefined || order > 0)) this.version = version
  }

  /** Takes over what a write answered. */
  learn(object: T): void {
    const key = keyOf(object)
    const { resourceVersion } = object.metadata
    const known = this.objects.get(key)
    if (resourceVersion === undefined) return
    if (known !== undefined && !((versionOrder(object, known) ?? 0) > 0)) return
    if (this.version !== undefined && !((compareVersions(resourceVersion, this.version) ?? 0) > 0))
      return
    this.#learned.set(key, resourceVersion)
    this.#put(key, object)
  }

  #isNewer(key: string, version: string | undefined): boolean {
    return (compareVersions(this.#learned.get(key), version) ?? 0) > 0
  }

  #put(key: string, object: T): void {
    const previous = this.objects.get(key)
    if (previous !== undefined && previous.metadata.uid !== object.metadata.uid) {
      this.#drop(key)
      this.#put(key, object)
      return
    }
    this.objects.set(key, object)
    this.#changed(object, previous)
  }

  #drop(key: string): void {
    const previous = this.objects.get(key)
    this.objects.delete(key)
    this.#changed(undefined, previous)
  }
}

/** At one version a server tells less of an object while the definition of its kind lacks a field. */
function isSame(known: KubeObject | undefined, object: KubeObject): boolean {
  return (
    known !== undefined &&
    known.metadata.uid === object.metadata.uid &&
    known.metadata.resourceVersion === object.metadata.resourceVersion &&
    ['spec', 'status'].every((part) =>
      isDeepStrictEqual(Reflect.get(known, part), Reflect.get(object, part)),
    )
  )
}

/** Versions that aren't numbers say nothing: then what comes later counts as newer. */
function isOlder(one: KubeObject, other: KubeObject): boolean {
  const order = versionOrder(one, other)
  return order === undefined || order < 0
}

function versionOrder(one: KubeObject, other: KubeObject): number | undefined {
  return compareVersions(one.metadata.resourceVersion, other.metadata.resourceVersion)
}
