import type { Store } from '../../src/db/client.ts'
import { recordEndpoints } from '../../src/domain/inventory.ts'

/** Has a cluster know machines of the VPC `vpc1`: `hosts` of fd00::/64, each on a node of its own. */
export async function recordMachines(
  store: Store,
  cluster: { id: string; name: string },
  project: string,
  hosts: readonly number[],
): Promise<void> {
  const endpoints = hosts.map((host) => ({
    attachmentUid: `${cluster.name}-${host}`,
    attachmentNamespace: project,
    attachmentName: `machine-${host}`,
    attachmentRef: `att${host}`,
    vpcRef: 'vpc1',
    address: `fd00::${host}`,
    node: `${cluster.name}-node-${host}`,
    egressKind: 'veth' as const,
  }))
  const uids = endpoints.map(({ attachmentUid }) => attachmentUid)
  await recordEndpoints(store, { cluster: cluster.id, epoch: 0 }, uids, endpoints)
}
