import type { KubeObject } from '../rules/objects.ts'
import { retryDelay } from './backoff.ts'
import type { FollowHandler } from './cluster.ts'
import type { FollowOptions } from './follow.ts'
import { keyOf } from './wire.ts'

/** What is to be told of an object, and how often in a row the handler threw on it. */
type News<T> = { object: T | undefined; previous: T | undefined; failures: number }
/** What a handler has not taken; `pause` is before it is told again. */
type Owed<T> = News<T> & { pause: AbortController }

/**
 * Tells a handler what became of each object. What it throws on it is told again, that object alone and
 * ever later, until it takes it; meanwhile the others go on.
 */
export class Telling<T extends KubeObject> {
  readonly #handler: Pick<FollowHandler<T>, 'changed'>
  readonly #options: FollowOptions
  /** By key. */
  readonly #owed = new Map<string, Owed<T>>()
  #closed = false

  constructor(handler: Pick<FollowHandler<T>, 'changed'>, options: FollowOptions) {
    this.#handler = handler
    this.#options = options
  }

  changed(object: T | undefined, previous: T | undefined): void {
    const about = object ?? previous
    if (about === undefined) return
    const key = keyOf(about)
    const owed = this.#owed.get(key)
    owed?.pause.abort()
    this.#owed.delete(key)
    // Where there is something owed, the handler still has what was before that; of that it may have a part.
    const had =
      owed?.previous ?? (owed === undefined || object === undefined ? previous : undefined)
    this.#tell(key, { object, previous: had, failures: owed?.failures ?? 0 })
  }

  close(): void {
    this.#closed = true
    for (const { pause } of this.#owed.values()) pause.abort()
  }

  #tell(key: string, news: News<T>): void {
    if (this.#closed) return
    const { object, previous } = news
    try {
      const isAnother = object && previous && object.metadata.uid !== previous.metadata.uid
      if (isAnother) this.#handler.changed(undefined, previous)
      this.#handler.changed(object, isAnother ? undefined : previous)
    } catch (error) {
      const owed = { ...news, failures: news.failures + 1, pause: new AbortController() }
      this.#owed.set(key, owed)
      this.#options.onHandlerError(error, key)
      void this.#tellAgain(key, owed)
    }
  }

  async #tellAgain(key: string, owed: Owed<T>): Promise<void> {
    const { clock, random } = this.#options
    const { signal } = owed.pause
    await clock.sleep(retryDelay(owed.failures, random, undefined), signal)
    // Newer news of the object came, or the end.
    if (signal.aborted) return
    this.#owed.delete(key)
    this.#tell(key, owed)
  }
}
