import type { KubeObject } from '../rules/objects.ts'
import { retryDelay } from './backoff.ts'
import type { FollowHandler } from './cluster.ts'
import type { FollowOptions } from './follow.ts'
import { keyOf } from './wire.ts'

/** What a handler has not taken of an object. */
type Owed<T> = { object: T | undefined; previous: T | undefined; failures: number }

/**
 * Tells a handler what became of each object. What it throws on it is told again, that object alone and
 * ever later, until it takes it; meanwhile the others go on.
 */
export class Telling<T extends KubeObject> {
  readonly #handler: Pick<FollowHandler<T>, 'changed'>
  readonly #options: FollowOptions
  /** By key. */
  readonly #owed = new Map<string, Owed<T>>()
  readonly #closing = new AbortController()

  constructor(handler: Pick<FollowHandler<T>, 'changed'>, options: FollowOptions) {
    this.#handler = handler
    this.#options = options
  }

  changed(object: T | undefined, previous: T | undefined): void {
    const about = object ?? previous
    if (about === undefined) return
    const key = keyOf(about)
    const owed = this.#owed.get(key)
    this.#owed.delete(key)
    // Where there is something owed, the handler still has what was before that; of that it may have a part.
    const had =
      owed?.previous ?? (owed === undefined || object === undefined ? previous : undefined)
    this.#tell(key, { object, previous: had, failures: owed?.failures ?? 0 })
  }

  close(): void {
    this.#closing.abort()
  }

  #tell(key: string, owed: Owed<T>): void {
    if (this.#closing.signal.aborted) return
    const { object, previous } = owed
    try {
      const isAnother = object && previous && object.metadata.uid !== previous.metadata.uid
      if (isAnother) this.#handler.changed(undefined, previous)
      this.#handler.changed(object, isAnother ? undefined : previous)
    } catch (error) {
      const again = { ...owed, failures: owed.failures + 1 }
      this.#owed.set(key, again)
      this.#options.onHandlerError(error, key)
      void this.#tellAgain(key, again)
    }
  }

  async #tellAgain(key: string, owed: Owed<T>): Promise<void> {
    const { clock, random } = this.#options
    await clock.sleep(retryDelay(owed.failures, random, undefined), this.#closing.signal)
    // News of the object may have come before.
    if (this.#owed.get(key) !== owed) return
    this.#owed.delete(key)
    this.#tell(key, owed)
  }
}
