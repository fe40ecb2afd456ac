import type { Store } from '../db/client.ts'
import { recordReachability } from '../domain/clusters.ts'
import type { Chores } from './chores.ts'

/** A cluster counts as unreachable when it hasn't answered for this long (ms): one reset is no news. */
const PATIENCE = 3_000

/** Whether one cluster answers, by its watch and by the calls made to it; what that comes to is recorded. */
export class Reachability {
  readonly #store: Store
  readonly #cluster: string
  readonly #chores: Chores
  readonly #back: () => void
  #watchFails = false
  #callsFail = false
  #failing: NodeJS.Timeout | undefined
  #unreachable: boolean | undefined

  /** `back`: it answers again. */
  constructor(parts: { store: Store; cluster: string; chores: Chores; back: () => void }) {
    this.#store = parts.store
    this.#cluster = parts.cluster
    this.#chores = parts.chores
    this.#back = parts.back
  }

  get callsFail(): boolean {
    return this.#callsFail
  }

  close(): void {
    clearTimeout(this.#failing)
  }

  /** It answers: an owner before may have left it said that it doesn't. */
  begun(): void {
    if (this.#unreachable === undefined) void this.#record(undefined)
  }

  watch(failure: Error | undefined): void {
    this.#watchFails = failure !== undefined
    this.#told(failure)
  }

  calls(failure: Error | undefined): void {
    this.#callsFail = failure !== undefined
    this.#told(failure)
  }

  #told(error: Error | undefined): void {
    if (error === undefined) {
      if (this.#watchFails || this.#callsFail) return
      clearTimeout(this.#failing)
      this.#failing = undefined
      if (this.#unreachable === false) return
      void this.#record(undefined)
      this.#back()
    } else if (this.#unreachable !== true) {
      // Counted from the first failure.
      this.#failing ??= setTimeout(() => void this.#record(error.message), PATIENCE)
    }
  }

  async #record(failure: string | undefined): Promise<void> {
    this.#unreachable = failure !== undefined
    await this.#chores.untilDone('record whether the cluster answers', async () => {
      if (this.#unreachable !== (failure !== undefined)) return
      await recordReachability(this.#store, this.#cluster, failure)
    })
  }
}
