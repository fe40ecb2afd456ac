import type { Store } from '../../src/db/client.ts'
import { recordTrouble } from '../../src/domain/clusters.ts'
import { recordHealth } from '../../src/domain/health/record.ts'
import { recordEndpoints } from '../../src/domain/inventory.ts'
import { readLoadBalancers } from '../../src/domain/loadBalancers/read.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { renewLeases } from '../../src/domain/placements/leases.ts'
import type { Ownership } from '../../src/domain/placements/ownership.ts'
import { reportPlacements } from '../../src/domain/placements/report.ts'
import type { PlacementReport } from '../../src/rules/report.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { backendReport, report, vipReport } from '../domain/folding.ts'
import type { Service } from './service.ts'

/** One backend's address in each of the two clusters. */
export const ADDRESSES = ['fd00:1::1', 'fd00:1::21']

export const uuidOf = (id: string): string => decodeId(id)?.uuid ?? ''

/** What the owner's probes say of one backend, by its address. */
export async function probed(
  store: Store,
  owner: Ownership,
  id: string,
  { address, state }: { address: string; state: 'HEALTHY' | 'UNHEALTHY' },
): Promise<void> {
  const { rows } = await store.pool.query<{ backend: string; known: string; generation: number }>(
    `SELECT backend.id AS backend, health_mark(health_state, health_reason, health_since) AS known,
       rules_generation AS generation
     FROM backend JOIN load_balancer lb ON lb.id = load_balancer_id WHERE lb.id = $1 AND address = $2`,
    [id, address],
  )
  const [found] = rows
  // What is as it was is no transition.
  if (found === undefined || found.known.startsWith(state)) return
  const { backend, known, generation } = found
  const healthy = state === 'HEALTHY'
  const reason = healthy ? 'Healthy' : 'Unhealthy'
  const message = healthy ? 'It answers.' : `Connection refused by [${address}]:7100.`
  const change = { id: backend, known, state, reason, message } as const
  await recordHealth(store, owner, { id, rulesGeneration: generation }, [change])
}

/**
 * A second cluster beside the service's own, and the word of both: what their workers would report. To be
 * called when the service runs.
 */
export async function speakForClusters({ store }: Pick<Service, 'store'>) {
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
  const tell = async (id: string, name: string, told: PlacementReport): Promise<void> => {
    const about = { owner: ownerOf(name), loadBalancer: uuidOf(id) }
    await reportPlacements(store, [{ ...about, report: told, applied: true, gone: [] }])
  }
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
