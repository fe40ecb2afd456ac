import { type Cluster, Unreachable } from '../clusters/cluster.ts'

/**
 * The same cluster, written to only while that is allowed. A process that was paused goes on where it
 * stood, with answers first and timers later: asked before each write, it starts no other one then.
 */
export function fenced(cluster: Cluster, mayWrite: () => boolean): Cluster {
  const demand = async () => {
    if (!mayWrite()) throw new Unreachable('the lease of the cluster is over')
  }
  return {
    name: cluster.name,
    apply: (...call) => demand().then(() => cluster.apply(...call)),
    remove: (...call) => demand().then(() => cluster.remove(...call)),
    merge: (...call) => demand().then(() => cluster.merge(...call)),
    list: (...call) => cluster.list(...call),
    follow: (...call) => cluster.follow(...call),
    openapi: (...call) => cluster.openapi(...call),
    close: () => cluster.close(),
  }
}
