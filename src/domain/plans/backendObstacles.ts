import type { Reason } from '../../rules/reasons.ts'
import { REASONS } from '../../rules/reasons.ts'
import { KEPT_OUT } from '../folding/backends.ts'
import type { StoredLoadBalancer } from '../loadBalancers/stored.ts'
import type { Warning } from './plan.ts'
import type { Compared, Scene } from './scene.ts'

/** Enabled backends that could not serve, though nothing stood in their way before. */
export function backendObstacles(
  was: StoredLoadBalancer | undefined,
  is: StoredLoadBalancer,
  { before, after, about }: Pick<Compared, 'before' | 'after' | 'about'>,
): Warning[] {
  const known = was === undefined ? new Map<string, Reason>() : obstaclesOf(was, before)
  return [...obstaclesOf(is, after)]
    .filter(([address, reason]) => known.get(address) !== reason)
    .map(([address, reason]) => ({
      code: codeOf(reason),
      message: `${address}: ${REASONS[reason]}`,
      path: about.named.get(address) ?? [],
    }))
}

/** By address, why an enabled backend can serve in no cluster. */
function obstaclesOf(loadBalancer: StoredLoadBalancer, { clusters }: Scene): Map<string, Reason> {
  const obstacles = new Map<string, Reason>()
  for (const { id, address, adminState, knownIn, cordonedIn } of loadBalancer.backends) {
    if (adminState !== 'ENABLED') continue
    const takers = (knownIn ?? []).filter((cluster) => !cordonedIn?.includes(cluster))
    if (takers.length === 0) {
      obstacles.set(address, knownIn?.length ? 'ClusterCordoned' : 'AddressUnknown')
      continue
    }
    const placed = clusters.flatMap(({ placements }) => {
      const found = placements.get(loadBalancer.id)?.desired.backends[id]
      return found?.node === undefined ? [] : [found.placed]
    })
    const [first] = placed
    if (first && placed.every(({ status, reason }) => status !== 'TRUE' && KEPT_OUT.has(reason))) {
      obstacles.set(address, first.reason)
    }
  }
  return obstacles
}

/** NODE_CONFLICT for NodeConflict; IPv4 has a name of its own, the same as for addresses. */
const codeOf = (reason: Reason): string =>
  reason === 'AddressFamilyNotServed'
    ? 'IPV4_NOT_SERVED'
    : reason.replaceAll(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase()
