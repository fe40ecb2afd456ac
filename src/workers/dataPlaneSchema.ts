import { type RuleCapabilities, readCapabilities } from '../clusters/capabilities.ts'
import { ApiFailure, type Cluster, Unreachable } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import { recordCapabilities } from '../domain/clusters.ts'
import type { Ownership } from '../domain/placements/ownership.ts'
import { DATA_PLANE_NAMESPACE, NETWORK_GATEWAYS } from '../rules/objects.ts'
import type { Chores } from './chores.ts'

/**
 * That there is no NetworkRule is believed when a reading this much later (ms) agrees: for about a second
 * after an API server's start it doesn't serve what it has (measured on 1.36.3).
 */
const AGREEING = 4_000

type Parts = {
  store: Store
  cluster: Cluster
  owner: Ownership
  chores: Chores
  /** The cluster answered, whatever it said; an error: it didn't. */
  asked(error: Unreachable | undefined): void
  /** There is a data plane where none was known: what failed for want of it may work now. */
  appeared(): void
}

/** What is known of a cluster's NetworkRule by the schema that it publishes; read whenever asked to. */
export class DataPlaneSchema {
  readonly #with: Parts
  #seen: RuleCapabilities = { dialect: undefined, sessionAffinity: false }
  /** It was read, and is believed. */
  #known = false
  /** Since when (ms) there seems to be no NetworkRule. */
  #missingSince: number | undefined
  #readingAgain = false
  #reading: Promise<void> | undefined

  constructor(parts: Parts) {
    this.#with = parts
  }

  /** Before it was read there is no dialect. */
  get seen(): RuleCapabilities {
    return this.#seen
  }

  get missing(): boolean {
    return this.#seen.dialect === undefined
  }

  /** One reading serves all who ask for it meanwhile. */
  read(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  /** Asks the cluster for nothing but an answer, and tells whether one came. */
  async ask(): Promise<void> {
    const { cluster, asked } = this.#with
    try {
      await demandAnswer(cluster)
      asked(undefined)
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error
      asked(error)
    }
  }

  /** Rejects until it is known whether there is a data plane. */
  async demand(): Promise<void> {
    await this.read()
    if (!this.#known) throw new Unreachable('the cluster serves no NetworkRule, or not yet')
  }

  async #read(): Promise<void> {
    const { store, cluster, owner, asked, appeared } = this.#with
    const reading = Promise.all([readCapabilities(cluster), demandAnswer(cluster)])
    const [seen] = await reading.catch((error: unknown) => {
      if (error instanceof Unreachable) asked(error)
      // It refuses, but it answers.
      if (error instanceof ApiFailure) asked(undefined)
      throw error
    })
    asked(undefined)
    if (seen.dialect === undefined) this.#readAgain()
    const isBack = seen.dialect !== undefined && (this.missing || this.#missingSince !== undefined)
    if (!this.#believes(seen.dialect)) return
    const { dialect, sessionAffinity } = this.#seen
    const same = seen.dialect === dialect && seen.sessionAffinity === sessionAffinity
    if (!this.#known || !same) await recordCapabilities(store, owner, seen)
    this.#known = true
    this.#seen = seen
    if (isBack) appeared()
  }

  /** A data plane that was there isn't gone because of one look. */
  #believes(dialect: RuleCapabilities['dialect']): boolean {
    if (dialect !== undefined || (this.#known && this.missing)) {
      this.#missingSince = undefined
      return true
    }
    const now = performance.now()
    this.#missingSince ??= now
    return now - this.#missingSince >= AGREEING
  }

  #readAgain(): void {
    if (this.#readingAgain) return
    this.#readingAgain = true
    this.#with.chores.later(AGREEING, () => {
      this.#readingAgain = false
      return this.read()
    })
  }
}

/**
 * A schema is told from memory, also where nothing that is kept can be read or written any more (an etcd
 * that hangs, 1.36.3): so what there are few of is listed beside it. Rejects with `Unreachable`.
 */
async function demandAnswer(cluster: Cluster): Promise<void> {
  try {
    await cluster.list(NETWORK_GATEWAYS, { namespace: DATA_PLANE_NAMESPACE })
  } catch (error) {
    // It refuses, but it answers.
    if (!(error instanceof ApiFailure)) throw error
  }
}
