import type { ClusterRecord } from '../../domain/operators/clusterRecord.ts'
import { readClusters } from '../../domain/operators/clusters.ts'
import { type PoolRecord, readPools } from '../../domain/operators/poolRecord.ts'
import { type Context, requirePermission } from '../../schema/context.ts'

/** The object that an id names among those that only operators see; null where there is none. */
export async function readOperatorsNode(
  context: Context,
  type: 'Cluster' | 'AddressPool',
  uuid: string,
): Promise<ClusterRecord | PoolRecord | null> {
  if (type === 'Cluster') {
    requirePermission(context, 'clusters.get')
    return (await readClusters(context.store, [uuid])).get(uuid) ?? null
  }
  requirePermission(context, 'addresspools.get')
  return (await readPools(context.store, [uuid])).get(uuid) ?? null
}
