import type { KubeObject, Resource } from '../rules/objects.ts'

/**
 * One Kubernetes cluster as the controller needs it: the narrow port behind which all talk with an
 * API server happens. `KubernetesCluster` implements it.
 */
export interface Cluster {
  readonly name: string
  /**
   * Server-side apply with our field manager and force. `object` holds only our fields, with
   * `metadata.name` (and namespace). Answers the object as the server now has it.
   */
  apply<T extends KubeObject>(resource: Resource, object: T, options?: CallOptions): Promise<T>
  /**
   * Deletes; an object that isn't there is success ('absent'). 'deleting': finalizers keep it a
   * while. With `uid` only that very object is deleted; another of the same name is 'absent'.
   * A kind that the server doesn't serve (now) is a failure, not 'absent'.
   */
  remove(
    resource: Resource,
    where: { name: string; namespace?: string; uid?: string },
    options?: CallOptions,
  ): Promise<'deleted' | 'deleting' | 'absent'>
  /** JSON merge patch of an object that exists; undefined where it doesn't. Never creates. */
  merge<T extends KubeObject>(
    resource: Resource,
    where: { name: string; namespace?: string },
    patch: object,
    options?: CallOptions,
  ): Promise<T | undefined>
  /** All objects, read in pages. */
  list<T extends KubeObject>(
    resource: Resource,
    selection?: Selection,
    options?: CallOptions,
  ): Promise<T[]>
  /** Lists, then watches, and keeps doing so until closed. */
  follow<T extends KubeObject>(
    resource: Resource,
    selection: Selection,
    handler: FollowHandler<T>,
  ): Follow<T>
  /** The published OpenAPI v3 document of one group and version; undefined where it isn't served. */
  openapi(group: string, version: string, options?: CallOptions): Promise<unknown | undefined>
  /** Ends every follow and closes all connections. */
  close(): Promise<void>
}

export type CallOptions = {
  /** Ends the call early, as `Unreachable`, on top of the deadline that every call has. */
  signal?: AbortSignal
}

export type Selection = { namespace?: string; labelSelector?: string }

/**
 * Called for one object at a time, in the order the server told. Should not throw: what it throws on is
 * reported, and that object is told again later, as it is then, so a handler may be told twice of the same.
 * Another object under a known name is told as gone, then as new.
 */
export type FollowHandler<T> = {
  /** `object` is undefined when it is gone; `previous` is what was known before. */
  changed(object: T | undefined, previous: T | undefined): void
  /**
   * A list was taken over whole: after the first one everything is known. `vanished` are the objects that the
   * list no longer holds (they are reported by `changed` before this is called).
   */
  listed?(objects: number, vanished: number): void
  /**
   * Asked before vanished objects of a relist are dropped: false keeps them (the inventory's brake)
   * and the next list comes after half a minute, then ever later. Default: true.
   */
  acceptRelist?(known: number, vanished: number): boolean
  /** The list or watch failed (it will be tried again); undefined: it works again. */
  failing?(error: Error | undefined): void
}

/** A running list/watch and the objects it knows now. */
export type Follow<T> = {
  /** Key: `namespace/name`, or the name alone for cluster-scoped kinds. */
  readonly objects: ReadonlyMap<string, T>
  /** Resolves when the first list is complete; rejects when the follow is closed before. */
  readonly synced: Promise<void>
  /**
   * Puts in what a write answered, where it is newer than all that was seen, and calls `changed`.
   * The watch's own event for it is no news then. Meant for objects that the selection holds.
   */
  learn(object: T): void
  /** Ends the pause after a failure (but not one the server asked for): the next try may well work. */
  hurry(): void
  close(): Promise<void>
}

/** The API server answered with a failure (a Kubernetes `Status`, or what could be read of it). */
export class ApiFailure extends Error {
  override name = 'ApiFailure'
  readonly code: number
  readonly reason: string | undefined
  readonly retryAfterSeconds: number | undefined
  /** The schema in the cluster lacks a field we sent, or a set has a duplicate: HTTP 500 without reason. */
  readonly schemaMismatch: boolean
  /** The namespace of what was written isn't there, or is on its way out. */
  readonly namespaceMissing: boolean

  constructor(answer: {
    code: number
    reason?: string | undefined
    message: string
    retryAfterSeconds?: number | undefined
    schemaMismatch?: boolean
    namespaceMissing?: boolean
  }) {
    super(answer.message)
    this.code = answer.code
    this.reason = answer.reason
    this.retryAfterSeconds = answer.retryAfterSeconds
    this.schemaMismatch = answer.schemaMismatch ?? false
    this.namespaceMissing = answer.namespaceMissing ?? false
  }
}

/** No answer: refused, reset, timed out, TLS failed, or the cluster was closed. */
export class Unreachable extends Error {
  override name = 'Unreachable'
}
