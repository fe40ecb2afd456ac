import DataLoader from 'dataloader'
import type { Store } from '../../db/client.ts'

type Read<T> = (store: Store, ids: string[]) => Promise<Map<string, T>>

/** Objects read at once. */
const CHUNK = 100
/** What was read is given to others for so long (ms): what of it has no version grows old. */
const KEPT = 2_000
/** So many objects are kept at most. */
const MOST = 1_000

/** Of an object, at least as new as `version`. */
type Kept<T> = { version: number; at: number; record: Promise<T | undefined> }

/**
 * Makes of `read` one that reads what some changes made of their objects: each object once for all
 * streams that are told of the same change. Wanted are ids with the version of the change; what is
 * answered is that version or a newer one.
 */
export function shared<T extends { version: number }>(
  read: Read<T>,
): (store: Store, wanted: ReadonlyMap<string, number>) => Promise<Map<string, T>> {
  const reads = new WeakMap<Store, Reads<T>>()
  return (store, wanted) => {
    const known = reads.get(store) ?? new Reads((ids) => read(store, ids))
    reads.set(store, known)
    return known.of(wanted)
  }
}

class Reads<T extends { version: number }> {
  /** The oldest first. */
  readonly #kept = new Map<string, Kept<T>>()
  readonly #newLoader: () => DataLoader<string, T | undefined>
  #loader: DataLoader<string, T | undefined> | undefined
  #forgetting: NodeJS.Timeout | undefined

  constructor(read: (ids: string[]) => Promise<Map<string, T>>) {
    const load = async (ids: readonly string[]) => {
      const found = await read([...ids])
      return ids.map((id) => found.get(id))
    }
    this.#newLoader = () => new DataLoader(load, { maxBatchSize: CHUNK, cache: false })
  }

  async of(wanted: ReadonlyMap<string, number>): Promise<Map<string, T>> {
    const found = new Map<string, T>()
    const one = async ([id, version]: [string, number]) => {
      const record = await this.#one(id, version)
      if (record !== undefined) found.set(id, record)
    }
    await Promise.all([...wanted].map(one))
    return found
  }

  async #one(id: string, version: number): Promise<T | undefined> {
    const now = performance.now()
    this.#forget(now)
    this.#forgetLater()
    const known = this.#kept.get(id)
    if (known !== undefined && known.version >= version) return known.record
    this.#loader ??= this.#newLoader()
    const kept = { version, at: now, record: this.#loader.load(id) }
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    try {
      const record = await kept.record
      kept.version = Math.max(version, record?.version ?? version)
      return record
    } catch (error) {
      // Whoever comes back reads again.
      if (this.#kept.get(id) === kept) this.#kept.delete(id)
      throw error
    }
  }

  #forget(now: number): void {
    for (const [id, { at }] of this.#kept) {
      if (now - at < KEPT && this.#kept.size <= MOST) return
      this.#kept.delete(id)
    }
  }

  /** Where nothing is read any more, nothing is kept either. */
  #forgetLater(): void {
    this.#forgetting ??= setTimeout(() => {
      this.#forgetting = undefined
      this.#forget(performance.now())
      if (this.#kept.size > 0) this.#forgetLater()
      // It holds its last batch.
      else this.#loader = undefined
    }, KEPT).unref()
  }
}
