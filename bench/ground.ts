import { type Bed, startBed } from './bed.ts'
import { type Clusters, startClusters } from './clusters.ts'

/** What benchmarks stand on, each part started when it is first asked for. */
export class Ground {
  #bed: Promise<Bed> | undefined
  #clusters: Promise<Clusters> | undefined

  /** A store with tenants, and the API. */
  bed(): Promise<Bed> {
    this.#bed ??= startBed()
    return this.#bed
  }

  /** Two real API servers, and a store that knows them. */
  clusters(): Promise<Clusters> {
    this.#clusters ??= startClusters()
    return this.#clusters
  }

  async close(): Promise<void> {
    await (await this.#clusters)?.close()
    await (await this.#bed)?.close()
  }
}
