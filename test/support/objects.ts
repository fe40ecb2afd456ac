import type { RunningCluster } from '../../dev/fleet/fleet.ts'
import {
  DATA_PLANE_NAMESPACE,
  type KubeObject,
  NETWORK_RULES,
  type NetworkRule,
  type Resource,
} from '../../src/rules/objects.ts'
import { PATIENCE } from './patience.ts'

/** Whatever API server it has. */
type Reached = Pick<RunningCluster, 'cluster'>

/** All rules in a cluster now. */
export const rulesIn = (running: Reached): Promise<NetworkRule[]> =>
  running.cluster.list<NetworkRule>(NETWORK_RULES, { namespace: DATA_PLANE_NAMESPACE })

/** Follows a cluster's objects until what they are satisfies, and answers them. */
export async function objectsUntil<T extends KubeObject>(
  running: Reached,
  resource: Resource,
  satisfied: (objects: T[]) => boolean,
  selection: { namespace?: string } = { namespace: DATA_PLANE_NAMESPACE },
): Promise<T[]> {
  const { promise, resolve, reject } = Promise.withResolvers<T[]>()
  let known = false
  const look = () => {
    if (!known) return
    const objects = [...follow.objects.values()]
    if (satisfied(objects)) resolve(objects)
  }
  const follow = running.cluster.follow<T>(resource, selection, { changed: () => look() })
  const timer = setTimeout(
    () => reject(new Error(`still ${JSON.stringify([...follow.objects.values()], null, 1)}`)),
    PATIENCE,
  )
  try {
    await follow.synced
    known = true
    look()
    return await promise
  } finally {
    clearTimeout(timer)
    await follow.close()
  }
}

/** Follows a cluster's rules until they satisfy, and answers them. */
export const rulesUntil = (
  running: Reached,
  satisfied: (rules: NetworkRule[]) => boolean,
): Promise<NetworkRule[]> => objectsUntil<NetworkRule>(running, NETWORK_RULES, satisfied)
