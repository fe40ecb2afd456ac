import type { KubeObject } from '../rules/objects.ts'
import { CallPacer, retryDelay } from './backoff.ts'
import type { Clock } from './clock.ts'
import { ApiFailure, type Follow, type FollowHandler, Unreachable } from './cluster.ts'
import { Known } from './known.ts'
import { isExpired, listAll, type ReadPage } from './listing.ts'
import { Telling } from './telling.ts'
import type { WatchEvent } from './watch-events.ts'

/** What following needs of a server. */
export type FollowSource<T> = {
  page(token: string | undefined, signal: AbortSignal): ReturnType<ReadPage<T>>
  /** Resolves when the server has begun to answer. */
  watch(
    from: { resourceVersion: string; timeoutSeconds: number },
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent<T>>>
}

export type FollowOptions = {
  clock: Clock
  /** In [0, 1). */
  random: () => number
  /** A handler threw, on an object by this key or on something else; the follow goes on. */
  onHandlerError(error: unknown, key: string | undefined): void
}

/** Watches end by themselves after 4 to 5 minutes, not all in the same moment. */
const WATCH_SECONDS = { least: 240, spread: 60 }
/** A watch that hasn't ended this long after its time is a dead connection. Silence before is normal. */
const GRACE_MS = 10_000
/** Watches have lost events before; a relist finds what they lost. Give or take a tenth. */
const RELIST_MS = 600_000
/** A relist that was not accepted is looked at again sooner, then ever less often. */
const REFUSED_RELIST_MS = 30_000
/** A watch that held this long, or told anything, shows a server at work: the next failure is a first. */
const HELD_MS = 10_000
/** A watch that ends sooner, though orderly, is resumed with a back-off … */
const SHORT_MS = 1_000
/** … which grows up to that of the fourth failure, 2 s: a proxy that cuts watches short hides nothing. */
const SHORT_ENDS = 4

/** Lists, then watches, again and again until closed. */
export class ListWatch<T extends KubeObject> implements Follow<T> {
  readonly synced: Promise<void>
  readonly #source: FollowSource<T>
  readonly #handler: FollowHandler<T>
  readonly #options: FollowOptions
  readonly #known: Known<T>
  readonly #telling: Telling<T>
  readonly #pacer: CallPacer
  readonly #ended: Promise<void>
  readonly #synced = Promise.withResolvers<void>()
  /** Aborted to close and to begin anew; ends calls and pauses alike. */
  #interrupt = new AbortController()
  /** Aborted to end the pause after a failure, unless the server asked for it; undefined where there is none. */
  #pausing: AbortController | undefined
  #closed = false
  #mustList = true
  #relistAt = 0
  #refusals = 0
  #failures = 0
  #shortEnds = 0
  #failing = false
  /** No watch from this list has been seen to work yet. */
  #unproven = false

  constructor(source: FollowSource<T>, handler: FollowHandler<T>, options: FollowOptions) {
    this.#source = source
    this.#handler = handler
    this.#options = options
    this.#pacer = new CallPacer(options.clock)
    this.#telling = new Telling(handler, options)
    this.#known = new Known((object, previous) => this.#telling.changed(object, previous))
    this.synced = this.#synced.promise
    // Whoever waits gets the rejection; nobody has to wait.
    this.synced.catch(() => undefined)
    this.#ended = this.#run()
  }

  get objects(): ReadonlyMap<string, T> {
    return this.#known.objects
  }

  learn(object: T): void {
    if (!this.#closed) this.#known.learn(object)
  }

  /** Lists again at once, after the server behind the connection changed. */
  restart(): void {
    this.#mustList = true
    this.#failures = 0
    const interrupted = this.#interrupt
    this.#interrupt = new AbortController()
    interrupted.abort()
  }

  hurry(): void {
    this.#pausing?.abort()
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#telling.close()
    this.#interrupt.abort()
    this.#synced.reject(new Unreachable('closed before the first list was complete'))
    await this.#ended
  }

  async #run(): Promise<void> {
    while (!this.#closed) {
      const { signal } = this.#interrupt
      await this.#pacer.turn(signal)
      if (signal.aborted) continue
      try {
        if (this.#mustList || this.#options.clock.now() >= this.#relistAt) await this.#list(signal)
        else await this.#watch(signal)
      } catch (error) {
        if (!signal.aborted) await this.#fail(error, signal)
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    this.#known.beginList()
    const { items, resourceVersion } = await listAll(
      (token) => this.#source.page(token, signal),
      () => this.#pacer.turn(signal),
    )
    if (signal.aborted) return
    const vanished = this.#known.takeList(items, resourceVersion, (known, gone) =>
      this.#accepts(known, gone),
    )
    this.#mustList = false
    this.#unproven = true
    this.#refusals = vanished === undefined ? this.#refusals + 1 : 0
    const { clock, random } = this.#options
    this.#relistAt =
      clock.now() +
      (vanished === undefined
        ? Math.min(RELIST_MS, REFUSED_RELIST_MS * 2 ** (this.#refusals - 1))
        : RELIST_MS * (0.9 + 0.2 * random()))
    this.#works()
    this.#tell(() => this.#handler.listed?.(this.#known.objects.size, vanished ?? 0))
    this.#synced.resolve()
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options
    const startedAt = clock.now()
    const timeoutSeconds = Math.min(
      Math.round(WATCH_SECONDS.least + WATCH_SECONDS.spread * random()),
      Math.max(1, Math.ceil((this.#relistAt - startedAt) / 1000)),
    )
    const call = new AbortController()
    const over = new AbortController()
    const abort = () => call.abort()
    signal.addEventListener('abort', abort, { once: true })
    void clock.sleep(timeoutSeconds * 1000 + GRACE_MS, over.signal).then(abort)
    let expired = false
    try {
      const resourceVersion = this.#known.version ?? ''
      const events = await this.#source.watch({ resourceVersion, timeoutSeconds }, call.signal)
      this.#works()
      for await (const event of events) {
        if (signal.aborted) return
        this.#take(event)
      }
    } catch (error) {
      // Past its time: a dead connection was given up, and the watch resumes.
      const overdue = clock.now() - startedAt >= timeoutSeconds * 1000 + GRACE_MS
      expired = isExpired(error)
      if (!expired && !overdue) throw error
    } finally {
      over.abort()
      signal.removeEventListener('abort', abort)
      if (clock.now() - startedAt >= HELD_MS) this.#failures = 0
    }
    if (expired) await this.#relist(signal)
    else await this.#resume(clock.now() - startedAt, signal)
  }

  /** The version is too old. At once so for a fresh list: then not in a tight loop. */
  async #relist(signal: AbortSignal): Promise<void> {
    this.#mustList = true
    if (!this.#unproven) return
    this.#failures += 1
    await this.#pause(this.#failures, undefined, signal)
  }

  async #resume(lastedMs: number, signal: AbortSignal): Promise<void> {
    this.#unproven = false
    this.#shortEnds = lastedMs < SHORT_MS ? Math.min(SHORT_ENDS, this.#shortEnds + 1) : 0
    if (this.#shortEnds > 0) await this.#pause(this.#shortEnds, undefined, signal)
  }

  #take(event: WatchEvent<T>): void {
    if (event.type === 'ERROR') throw event.failure
    this.#unproven = false
    this.#failures = 0
    this.#shortEnds = 0
    if (event.type === 'BOOKMARK') this.#known.sawVersion(event.resourceVersion)
    else this.#known.takeEvent(event.type, event.object)
  }

  async #fail(error: unknown, signal: AbortSignal): Promise<void> {
    const failure = error instanceof Error ? error : new Error(String(error))
    this.#failing = true
    this.#tell(() => this.#handler.failing?.(failure))
    this.#failures += 1
    const asked = failure instanceof ApiFailure ? failure.retryAfterSeconds : undefined
    if (asked !== undefined) return this.#pause(this.#failures, asked, signal)
    this.#pausing = new AbortController()
    await this.#pause(this.#failures, asked, AbortSignal.any([signal, this.#pausing.signal]))
    this.#pausing = undefined
  }

  #pause(failures: number, seconds: number | undefined, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options
    return clock.sleep(retryDelay(failures, random, seconds), signal)
  }

  #works(): void {
    if (!this.#failing) return
    this.#failing = false
    this.#tell(() => this.#handler.failing?.(undefined))
  }

  /** A handler that throws here hasn't said that what it has may go. */
  #accepts(known: number, vanished: number): boolean {
    let accepted = false
    this.#tell(() => {
      accepted = this.#handler.acceptRelist?.(known, vanished) ?? true
    })
    return accepted
  }

  #tell(call: () => void): void {
    if (this.#closed) return
    try {
      call()
    } catch (error) {
      this.#options.onHandlerError(error, undefined)
    }
  }
}
