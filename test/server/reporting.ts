import { recordTrouble } from '../../src/domain/clusters.ts'
import { recordEndpoints } from '../../src/domain/inventory.ts'
import { readLoadBalancers } from '../../src/domain/loadBalancers/read.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { renewLeases } from '../../src/domain/placements/leases.ts'
import type { Ownership } from '../../src/domain/placements/ownership.ts'
import { reportPlacement } from '../../src/domain/placements/report.ts'
import type { PlacementReport } from '../../src/rules/report.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { backendReport, report, vipReport } from '../domain/folding.ts'
import type { Service } from './service.ts'

/** One backend's address in each of the two clusters. */
export const ADDRESSES = ['fd00:1::1', 'fd00:1::21']

export const uuidOf = (id: string): string => decodeId(id)?.uuid ?? ''

/**
 * A second cluster beside the service's own, and the word of both: what their workers would report. To be
 * called when the service runs.
 */
export async function speakForClusters({ store }: Service) {
  await registerCluster(store, { name: 'east-2', region: 'us-east-1', context: 'east-2' })
  const clusters = await store.prisma.cluster.findMany({ orderBy: { name: 'asc' } })
  const second = clusters[1]?.id ?? ''
  const endpoint = {
    ...{ attachmentUid: 'uid-21', attachmentNamespace: 'alpha', attachmentName: 'machine-21' },
    ...{ attachmentRef: 'att21', vpcRef: 'vpc0', address: ADDRESSES[1] ?? '', node: 'node-21' },
    egressKind: 'veth' as const,
  }
  await recordEndpoints(store, { cluster: second, epoch: 0 }, ['uid-21'], [endpoint])
  const { leases } = await renewLeases(store, 'test')
  const ownerOf = (name: string): Ownership => {
    const lease = leases.find((each) => each.name === name)
    if (lease === undefined) throw new Error(`nobody has ${name}`)
    return { cluster: lease.cluster, epoch: lease.epoch }
  }
  /** A report that all which is asked there now is in effect, but for what is given. */
  const inEffect = async (
    id: string,
    name: string,
    change: Partial<PlacementReport> = {},
  ): Promise<PlacementReport> => {
    const ids = [uuidOf(id)]
    const record = (await readLoadBalancers(store, { project: null, ids })).get(uuidOf(id))
    const { asked } = await store.prisma.placement.findFirstOrThrow({
      where: { loadBalancerId: uuidOf(id), clusterId: ownerOf(name).cluster },
    })
    const { addresses = [], backends = [], generation = 0 } = record ?? {}
    return report({
      asked: Number(asked),
      generation,
      vips: Object.fromEntries(addresses.map(({ address }) => [address, vipReport()])),
      backends: Object.fromEntries(backends.map(({ id: backend }) => [backend, backendReport()])),
      ...change,
    })
  }
  const tell = (id: string, name: string, told: PlacementReport): Promise<boolean> =>
    reportPlacement(store, ownerOf(name), uuidOf(id), { report: told, applied: true, gone: [] })
  return {
    ownerOf,
    inEffect,
    tell,
    /** The cluster says that everything is in effect there. */
    settle: async (id: string, name: string) => tell(id, name, await inEffect(id, name)),
    lose: (name: string) =>
      recordTrouble(store, ownerOf(name), {
        reason: 'ClusterUnreachable',
        message: 'no answer',
        blind: true,
      }),
    findAgain: (name: string) => recordTrouble(store, ownerOf(name), undefined),
  }
}
