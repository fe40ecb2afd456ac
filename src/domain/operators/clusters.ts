import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import { hint } from '../hints.ts'
import { newId } from '../ids.ts'
import { NameTaken, type Refusal } from '../refusals.ts'
import { noRegion } from './regions.ts'

/** Makes a cluster of a region known; workers take it up within a second. */
export async function registerCluster(
  store: Store,
  input: {
    name: string
    region: string
    /** The kubeconfig context that reaches it. */
    context: string
    servesIPv4?: boolean
    resolvesRemoteBackends?: boolean
    hasProber?: boolean
  },
): Promise<{ cluster: { id: string } } | Refusal> {
  const { region: code, ...fields } = input
  const region = await store.prisma.region.findUnique({ where: { code }, select: { id: true } })
  if (region === null) return noRegion(code)
  try {
    const id = newId()
    await store.prisma.cluster.create({ data: { id, regionId: region.id, ...fields } })
    hint(store)
    return { cluster: { id } }
  } catch (error) {
    if (violatedConstraint(error) !== 'cluster_name_key') throw error
    return new NameTaken({
      message: `There is a cluster "${input.name}" already.`,
      path: ['name'],
      takenName: input.name,
    })
  }
}
