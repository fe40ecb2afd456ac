import DataLoader from 'dataloader'
import type { Store } from '../db/client.ts'
import { readEvents } from '../domain/events/read.ts'
import type { Explanation } from '../domain/explain/explanation.ts'
import { readExplanations } from '../domain/explain/read.ts'
import { readServing, type Serving } from '../domain/flows/serving.ts'
import { readLoadBalancers } from '../domain/loadBalancers/read.ts'
import type {
  EventRecord,
  LoadBalancerRecord,
  RegionRecord,
  ReservationRecord,
} from '../domain/records.ts'
import { readRegions } from '../domain/regions.ts'
import { readReservations } from '../domain/reservations/read.ts'
import { readVpcs } from '../domain/vpcs.ts'
import type { VpcShape } from './shapes.ts'

type Reader<T> = (
  store: Store,
  options: { project: string | null; ids: string[] },
) => Promise<Map<string, T>>

/**
 * Reads each object at most once per request, all that are asked for at the same moment in one
 * statement. A stream begins anew for every event (`forget`), or it would show what was.
 */
export class Loaders {
  readonly #store: Store
  readonly #project: string | null
  #loadBalancers: DataLoader<string, LoadBalancerRecord | null> | undefined
  #reservations: DataLoader<string, ReservationRecord | null> | undefined
  #vpcs: DataLoader<string, VpcShape | null> | undefined
  #events: DataLoader<string, EventRecord | null> | undefined
  #serving: DataLoader<string, Serving[] | null> | undefined
  #explanations: DataLoader<string, Explanation | null> | undefined
  #regions: Promise<RegionRecord[]> | undefined

  constructor(store: Store, project: string | null) {
    this.#store = store
    this.#project = project
  }

  /** By UUID; null for what doesn't exist or is another project's. */
  get loadBalancers(): DataLoader<string, LoadBalancerRecord | null> {
    this.#loadBalancers ??= this.#loader(readLoadBalancers)
    return this.#loadBalancers
  }

  get reservations(): DataLoader<string, ReservationRecord | null> {
    this.#reservations ??= this.#loader(readReservations)
    return this.#reservations
  }

  get vpcs(): DataLoader<string, VpcShape | null> {
    this.#vpcs ??= this.#loader(async (store, { project, ids }) => {
      const found = await readVpcs(store, { project, ids })
      return new Map(
        [...found].flatMap(([id, vpc]) => {
          const owner = project ?? vpc.project
          return owner === null ? [] : [[id, { ...vpc, project: owner }] as const]
        }),
      )
    })
    return this.#vpcs
  }

  get events(): DataLoader<string, EventRecord | null> {
    this.#events ??= this.#loader(readEvents)
    return this.#events
  }

  /** The clusters that serve a load balancer; null: none. */
  get serving(): DataLoader<string, Serving[] | null> {
    this.#serving ??= this.#loader(readServing)
    return this.#serving
  }

  get explanations(): DataLoader<string, Explanation | null> {
    this.#explanations ??= this.#loader(readExplanations)
    return this.#explanations
  }

  regions(): Promise<RegionRecord[]> {
    this.#regions ??= readRegions(this.#store)
    return this.#regions
  }

  forget(): void {
    this.#loadBalancers = undefined
    this.#reservations = undefined
    this.#vpcs = undefined
    this.#events = undefined
    this.#serving = undefined
    this.#explanations = undefined
    this.#regions = undefined
  }

  #loader<T>(read: Reader<T>): DataLoader<string, T | null> {
    return new DataLoader(async (ids) => {
      const found = await read(this.#store, { project: this.#project, ids: [...ids] })
      return ids.map((id) => found.get(id) ?? null)
    })
  }
}

/** All of them in order, null where there is none; what failed to be read fails the whole. */
export async function loadAll<T>(
  loader: DataLoader<string, T | null>,
  ids: string[],
): Promise<(T | null)[]> {
  return Promise.all(ids.map((id) => loader.load(id)))
}
