import type { RegionRecord } from '../../domain/records.ts'
import type { Context } from '../context.ts'

/** A region that something refers to: regions never go. */
export async function regionById({ loaders }: Context, id: string): Promise<RegionRecord> {
  const region = (await loaders.regions()).find((one) => one.id === id)
  if (region === undefined) throw new Error(`there is no region ${id}`)
  return region
}
