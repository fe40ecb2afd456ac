import { setTimeout as delay } from 'node:timers/promises'
import type { Store } from '../../db/client.ts'
import { concerns, type Interest, partAfter, type ReadBatch, readBatch } from './batch.ts'
import { CursorLost, isBefore, type Position } from './cursor.ts'

export type TailOptions = {
  onError?: (error: unknown) => void
  /** Told how old (s) events were when they were handed to those who had all that came before. */
  onDelivered?: (lagSeconds: number) => void
}

/** How long (ms) to leave the store alone that has failed so many times. */
export const pauseAfter = (failures: number): number =>
  Math.random() * Math.min(100 * 2 ** failures, 5_000)

/** One who has all that there was. `wake` is given what is new; nothing: they have to read for themselves. */
export type Waiting = {
  position: Position
  readonly interest: Interest
  wake(news?: ReadBatch): void
}

/**
 * The end of the log. One query at a time serves all who wait for news, wherever exactly they stand; whoever
 * is further behind reads for themselves, and delays nobody.
 */
export class Tail {
  readonly store: Store
  readonly onError: (error: unknown) => void
  readonly #onDelivered: (lagSeconds: number) => void
  readonly #waiting = new Set<Waiting>()
  /** Everything up to here was told to those who waited. */
  #head: Position | undefined
  #looking = false
  /** Something may have come since the last look began. */
  #again = false
  readonly #reads = new Map<string, Promise<ReadBatch>>()

  constructor(store: Store, { onError, onDelivered }: TailOptions) {
    this.store = store
    this.onError = onError ?? (() => undefined)
    this.#onDelivered = onDelivered ?? (() => undefined)
  }

  /** Looks whether there is news for those who wait. */
  look(): void {
    this.#again = true
    if (!this.#looking) void this.#look()
  }

  /** Answers whether one may wait: those who do have more already. */
  add(waiting: Waiting): boolean {
    const { position } = waiting
    if (position.epoch === this.#head?.epoch && isBefore(position, this.#head)) return false
    this.#waiting.add(waiting)
    if (this.#again) this.look()
    return true
  }

  delete(waiting: Waiting): void {
    this.#waiting.delete(waiting)
  }

  /** For one who is behind; those who stand at the same place share it. */
  read(from: Position): Promise<ReadBatch> {
    const key = `${from.epoch} ${from.xid} ${from.seq}`
    const known = this.#reads.get(key)
    if (known !== undefined) return known
    const read = readBatch(this.store, from).finally(() => this.#reads.delete(key))
    this.#reads.set(key, read)
    return read
  }

  async #look(): Promise<void> {
    this.#looking = true
    for (let failures = 0; this.#again; ) {
      const [first] = this.#waiting
      if (first === undefined) break
      this.#again = false
      const peers = [...this.#waiting].filter(
        ({ position }) => position.epoch === first.position.epoch,
      )
      const from = earliest(peers)
      try {
        const news = await readBatch(this.store, from)
        failures = 0
        this.#tell(from, news)
        this.#again ||= news.full || peers.length < this.#waiting.size
      } catch (error) {
        this.#again = true
        if (error instanceof CursorLost) {
          // They meet it themselves.
          for (const peer of peers) this.#wake(peer)
        } else {
          this.onError(error)
          failures += 1
          await delay(pauseAfter(failures), undefined, { ref: false })
        }
      }
    }
    this.#looking = false
  }

  #tell(from: Position, news: ReadBatch): void {
    this.#head = news.position
    let told = false
    // Nearly all stand at the same place.
    let part = news
    let at = from
    for (const waiting of [...this.#waiting]) {
      const { position } = waiting
      if (position.epoch !== from.epoch) continue
      if (position !== from && isBefore(position, from)) {
        // It came after the query was sent.
        this.#wake(waiting)
        continue
      }
      if (position !== at) {
        at = position
        part = partAfter(news, position)
      }
      if (concerns(part, waiting.interest)) {
        told = true
        this.#wake(waiting, part)
      } else if (isBefore(position, news.position)) {
        waiting.position = news.position
      }
    }
    if (told) this.#onDelivered(news.lag)
  }

  #wake(waiting: Waiting, news?: ReadBatch): void {
    this.#waiting.delete(waiting)
    waiting.wake(news)
  }
}

function earliest(waiting: readonly Waiting[]): Position {
  return waiting
    .map(({ position }) => position)
    .reduce((one, other) => (one !== other && isBefore(other, one) ? other : one))
}
