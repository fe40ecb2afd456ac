import type { Cluster, Unreachable } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import type { Trouble } from '../domain/clusters.ts'
import type { Ownership } from '../domain/placements/ownership.ts'
import type { Outcome, Told } from '../domain/placements/report.ts'
import type { Capabilities } from '../rules/wanted.ts'
import type { ClusterView } from './clusterView.ts'
import type { Failures } from './failures.ts'
import type { Logger } from './logger.ts'
import type { Observer } from './observer.ts'
import type { Places } from './places.ts'
import type { Together } from './together.ts'

/** All that a cluster's reconciler works with. */
export type Surroundings = {
  store: Store
  cluster: Cluster
  view: ClusterView
  places: Places
  owner: Ownership
  capabilities: () => Capabilities
  /** A write didn't fit the cluster's schema, as far as it was known. */
  schemaChanged: () => Promise<void>
  /** A call had no answer. */
  unanswered: (error: Unreachable) => void
  /** What the cluster lacks for a load balancer's writes; undefined: nothing, as far as they tell. */
  refused: (loadBalancer: string, trouble: Trouble | undefined) => void
  /** Has a load balancer looked at again after a while (ms). */
  lookAgain: (loadBalancer: string, after: number) => void
  /** All that was noticed of a load balancer so far has been seen, and nothing is left to do. */
  caughtUp: (loadBalancer: string) => void
  /** Takes in reports; together with those of other load balancers and clusters. */
  reports: Together<Told, Outcome>
  /** How long (ms) what was removed may wait for the data plane before it counts as stuck. */
  teardownPatience: number
  leaseLost: () => void
  /** From then on nothing may be written. */
  signal: AbortSignal
  /** Until then (ms) calls of the owner before may still be under way, since it didn't end in order. */
  unsureUntil: number
  log: Logger
  /** Of the cluster. */
  name: string
  observer: Pick<Observer, 'reconciled'>
  /** Has what failed tried again. */
  failures: Failures
  now: () => Date
}
