import type { Cluster, Follow } from '../../src/clusters/cluster.ts'
import { keyOf } from '../../src/clusters/wire.ts'
import { DATA_PLANE_NAMESPACE, type KubeObject, type Resource } from '../../src/rules/objects.ts'

/** Follows a kind of the data plane's. Objects without a spec, which the CRDs take, are as good as none. */
export function followSaid<T extends KubeObject & { spec: object }>(
  cluster: Cluster,
  resource: Resource,
  changed: (now: T | undefined, before: T | undefined) => void,
): Follow<T> {
  const objects = new Map<string, T>()
  const said = (object: T | undefined) => (object?.spec === undefined ? undefined : object)
  const follow = cluster.follow<T>(
    resource,
    { namespace: DATA_PLANE_NAMESPACE },
    {
      changed(object, previous) {
        const [now, before] = [said(object), said(previous)]
        if (now !== undefined) objects.set(keyOf(now), now)
        else if (before !== undefined) objects.delete(keyOf(before))
        if (now !== undefined || before !== undefined) changed(now, before)
      },
    },
  )
  return {
    objects,
    synced: follow.synced,
    learn: (object) => follow.learn(object),
    hurry: () => follow.hurry(),
    close: () => follow.close(),
  }
}
