import { randomUUID } from 'node:crypto'
import type { Cluster } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import { onHint } from '../domain/hints.ts'
import { advanceDraining, healPlacements } from '../domain/placements/derive.ts'
import { deriveAsked } from '../domain/placements/later.ts'
import { type Outcome, reportPlacements, type Told } from '../domain/placements/report.ts'
import { forgetReachability } from '../domain/reachability/refold.ts'
import { removeOld } from '../domain/retention.ts'
import { ClusterWorker } from './clusterWorker.ts'
import { Due } from './due.ts'
import { fenced } from './fence.ts'
import { LeaseHolder } from './leaseHolder.ts'
import type { Limits } from './limits.ts'
import type { Logger } from './logger.ts'
import { type Observer, observed, UNOBSERVED } from './observer.ts'
import { DirectProber } from './probe/directProber.ts'
import type { Prober } from './probe/prober.ts'
import { Slots } from './probe/slots.ts'
import { Together } from './together.ts'

/** Leases are renewed this often (ms); they last ten seconds. */
const RENEW = 3_000
/** What is due is looked for this often (ms), besides every hint. */
const POLL = 1_000
const EVENT_DAYS = 90
/** What is kept for a while only is removed when a worker starts, and this often (ms). */
const REMOVE = 3_600_000
/** What vantage points outside found long ago is forgotten this often (ms). */
const FORGET = 10_000
/** Placements are compared with what they should be this often (ms). */
const HEAL = 60_000
/**
 * Reports of what is worked at the same time go together, at most so many, and wait for one another at most
 * so long (ms).
 */
const REPORTS = { apart: 200, most: 64 }
/** So many probes may be under way at once, each with a socket. */
const PROBES = 256

/** Where clusters are had from: `Fleet`. */
type Clusters = {
  get(where: { name: string; context: string }): Cluster
  release(name: string): Promise<void>
}

export type Workers = {
  /** Looks for clusters that nobody serves, now. */
  renew(): Promise<void>
  /** Resolves when everything has ended; leases are free for others at once. */
  close(): Promise<void>
}

/** Serves every cluster that nobody else does, until closed. */
export function startWorkers(options: {
  store: Store
  fleet: Clusters
  log: Logger & { child(fields: object): Logger }
  /** Names this process in the leases. */
  owner?: string
  /** Asks backends whether they are there; the standard one connects from here. */
  prober?: Prober
  limits?: Partial<Limits>
  observer?: Observer
  /** How long events are kept (90). */
  eventDays?: number
  /** Milliseconds since 1970, by which backends that come and go are held out. */
  now?: () => number
}): Workers {
  const { store, fleet, log, owner = `worker-${randomUUID()}` } = options
  const observer = options.observer ?? UNOBSERVED
  const prober = observed(options.prober ?? new DirectProber(), observer)
  const probes = new Slots(PROBES)
  const reports: Together<Told, Outcome> = new Together((told) => reportPlacements(store, told), {
    ...REPORTS,
    expected: () => [...leases.serving()].reduce((sum, { underWay }) => sum + underWay, 0),
  })
  const leases = new LeaseHolder<ClusterWorker>({
    store,
    owner,
    log,
    begin: (lease, instance, signal, mayWrite) =>
      new ClusterWorker({
        store,
        cluster: fenced(fleet.get(lease), mayWrite),
        lease,
        instance,
        prober,
        probes,
        reports,
        signal,
        log: log.child({ cluster: lease.name, clusterId: lease.cluster }),
        observer,
        limits: options.limits ?? {},
        now: options.now ?? Date.now,
        leaseLost: () => void leases.stop(lease.cluster),
      }),
    ended: ({ lease }) => fleet.release(lease.name),
    observer,
  })
  const closing = new AbortController()
  const due = new Due({ store, log, serving: () => leases.serving() })
  const heal = chore(log, 'placements could not be compared', async () => {
    const healed = await healPlacements(store, { signal: closing.signal })
    if (healed > 0) log.warn({ healed }, 'placements were not what they should be')
  })
  const drain = chore(log, 'what may leave drained clusters could not be read', async () => {
    const left = await advanceDraining(store, closing.signal)
    if (left > 0) log.info({ left }, 'load balancers leave clusters that are drained')
  })
  const derive = chore(log, 'what clusters have become could not be derived', async () => {
    const derived = await deriveAsked(store, closing.signal)
    if (derived > 0) log.info({ derived }, 'load balancers were derived anew')
  })
  const remove = chore(log, 'old rows could not be removed', async () => {
    const eventDays = options.eventDays ?? EVENT_DAYS
    const removed = await removeOld(store, { eventDays, signal: closing.signal })
    if (removed > 0) log.info({ removed }, 'what was kept long enough was removed')
  })
  const forget = chore(log, 'what vantage points found long ago could not be forgotten', () =>
    forgetReachability(store, closing.signal),
  )

  const chores = [heal, drain, derive, remove, forget]

  onHint(store, closing.signal, () => due.look())
  const timers = [
    setInterval(() => void leases.renew(), RENEW),
    setInterval(() => due.look(), POLL),
    setInterval(drain.begin, POLL),
    setInterval(derive.begin, POLL),
    setInterval(heal.begin, HEAL),
    setInterval(remove.begin, REMOVE),
    setInterval(forget.begin, FORGET),
  ]
  void leases.renew()
  remove.begin()
  return {
    renew: () => leases.renew(),
    async close() {
      closing.abort()
      for (const timer of timers) clearInterval(timer)
      await Promise.all([...chores.map(({ ended }) => ended()), due.close()])
      await leases.close()
    },
  }
}

/** Where there is much to do it takes longer than until it is begun again: then it just goes on. */
function chore(log: Logger, failed: string, work: () => Promise<unknown>) {
  let running: Promise<unknown> | undefined
  return {
    begin() {
      running ??= work()
        .catch((error: unknown) => log.warn({ err: error }, failed))
        .finally(() => {
          running = undefined
        })
    },
    /** What is under way has come to its end; failures are in the log. */
    ended: async () => running,
  }
}
