import { randomUUID } from 'node:crypto'
import type { Cluster } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import { onHint } from '../domain/hints.ts'
import { healPlacements } from '../domain/placements/derive.ts'
import { type Lease, releaseLeases, renewLeases } from '../domain/placements/leases.ts'
import { ClusterWorker } from './clusterWorker.ts'
import type { Logger } from './logger.ts'
import { DirectProber } from './probe/directProber.ts'
import type { Prober } from './probe/prober.ts'
import { Slots } from './probe/slots.ts'

/** Leases are renewed this often (ms); they last ten seconds. */
const RENEW = 3_000
/** What is due is looked for this often (ms), besides every hint. */
const POLL = 1_000
/** Placements are compared with what they should be this often (ms). */
const HEAL = 60_000
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
}): Workers {
  const { store, fleet, log, owner = `worker-${randomUUID()}` } = options
  const prober = options.prober ?? new DirectProber()
  const probes = new Slots(PROBES)
  const serving = new Map<string, ClusterWorker>()
  const closing = new AbortController()
  let instance: string | undefined
  let renewing: Promise<void> | undefined
  let renewedAt = Number.NEGATIVE_INFINITY

  const stop = async (id: string) => {
    const worker = serving.get(id)
    serving.delete(id)
    await worker?.close()
    if (worker) await fleet.release(worker.lease.name)
  }

  const serve = (lease: Lease, marked: string) => {
    serving.set(
      lease.cluster,
      new ClusterWorker({
        store,
        cluster: fleet.get(lease),
        lease,
        instance: marked,
        prober,
        probes,
        log: log.child({ cluster: lease.name }),
        leaseLost: () => void stop(lease.cluster),
      }),
    )
  }

  const renewOnce = async () => {
    try {
      instance ??= await readInstance(store)
      const leases = await renewLeases(store, owner)
      renewedAt = performance.now()
      if (closing.signal.aborted) return
      const mine = new Map(leases.map((lease) => [lease.cluster, lease]))
      for (const [id, worker] of serving) {
        const lease = mine.get(id)
        if (
          lease === undefined ||
          lease.epoch !== worker.lease.epoch ||
          lease.context !== worker.lease.context
        )
          await stop(id)
        else worker.renewed(lease)
      }
      for (const lease of leases) if (!serving.has(lease.cluster)) serve(lease, instance)
    } catch (error) {
      log.warn({ err: error }, 'leases could not be renewed')
      // Others may own the clusters by now: nothing is written any more.
      if (performance.now() - renewedAt > 9_000)
        for (const id of [...serving.keys()]) await stop(id)
    }
  }
  const renew = () => {
    renewing ??= renewOnce().finally(() => {
      renewing = undefined
    })
    return renewing
  }
  const lookEverywhere = () => {
    for (const worker of serving.values()) worker.look()
  }
  const heal = async () => {
    try {
      const healed = await healPlacements(store)
      if (healed > 0) log.warn({ healed }, 'placements were not what they should be')
    } catch (error) {
      log.warn({ err: error }, 'placements could not be compared')
    }
  }

  onHint(store, closing.signal, lookEverywhere)
  const timers = [
    setInterval(() => void renew(), RENEW),
    setInterval(lookEverywhere, POLL),
    setInterval(() => void heal(), HEAL),
  ]
  void renew()
  return {
    renew,
    async close() {
      closing.abort()
      for (const timer of timers) clearInterval(timer)
      await renewing
      await Promise.all([...serving.keys()].map(stop))
      await releaseLeases(store, owner)
    },
  }
}

async function readInstance(store: Store): Promise<string> {
  const { instance } = await store.prisma.store.findUniqueOrThrow({ where: { id: 1 } })
  return instance
}
