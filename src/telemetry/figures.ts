import { Gauge, type Registry } from 'prom-client'

/** What the store says of the installation as a whole: the same from each process that reads it. */
export type Figures = {
  clusters: {
    cluster: string
    /** A worker serves it. */
    owned: boolean
    reachable: boolean
    /** Placements to be worked now. */
    due: number
    /** Placements whose cluster isn't as was asked: due now, or put off after a failure. */
    behind: number
    /** How long the oldest of them has been. */
    oldestSeconds: number
    /** VIPs that it may carry. */
    holds: number
  }[]
  pools: {
    pool: string
    region: string
    family: string
    /** Blocks that can be handed out, taken or not. */
    size: number
    used: number
    /** Given back, and not to be handed out yet. */
    resting: number
  }[]
}

type Cluster = Figures['clusters'][number]
type Pool = Figures['pools'][number]

/** What was read counts as the present for this long (ms): scrapes of several collectors share it. */
const FRESH = 5_000

/** Shows figures at each scrape. Where they can't be read there are none, and a gauge that says so. */
export function showFigures(registry: Registry, read: () => Promise<Figures>): void {
  let last: { at: number; figures: Promise<Figures | undefined> } | undefined
  const figures = () => {
    const now = performance.now()
    if (last === undefined || now - last.at > FRESH) {
      last = { at: now, figures: read().catch(() => undefined) }
    }
    return last.figures
  }
  new Gauge({
    name: 'nlb_store_readable',
    help: 'Whether the figures of clusters and pools could be read.',
    registers: [registry],
    async collect() {
      this.set(Number((await figures()) !== undefined))
    },
  })
  const show = <One>(
    labelNames: (keyof One & string)[],
    rows: (figures: Figures) => One[],
    name: string,
    help: string,
    value: (one: One) => number | boolean,
  ) =>
    new Gauge({
      name,
      help,
      labelNames,
      registers: [registry],
      async collect() {
        const all = await figures()
        // What is gone by now is shown no more.
        this.reset()
        for (const one of all === undefined ? [] : rows(all)) {
          const labels = labelNames.map((label) => [label, String(one[label])])
          this.set(Object.fromEntries(labels), Number(value(one)))
        }
      },
    })
  const cluster = (name: string, help: string, value: (one: Cluster) => number | boolean) =>
    show<Cluster>(['cluster'], ({ clusters }) => clusters, name, help, value)
  cluster('nlb_placements_due', 'Placements to be worked now.', ({ due }) => due)
  cluster('nlb_placements_behind', 'Placements that are not as was asked.', (one) => one.behind)
  cluster(
    'nlb_placements_oldest_seconds',
    'Age of the oldest placement that is behind.',
    ({ oldestSeconds }) => oldestSeconds,
  )
  cluster('nlb_cluster_owned', 'Whether a worker serves the cluster.', ({ owned }) => owned)
  cluster('nlb_cluster_reachable', 'Whether the cluster answers.', ({ reachable }) => reachable)
  cluster('nlb_cluster_holds', 'Addresses that the cluster may carry.', ({ holds }) => holds)
  const pool = (name: string, help: string, value: (one: Pool) => number) =>
    show<Pool>(['region', 'pool', 'family'], ({ pools }) => pools, name, help, value)
  pool('nlb_pool_size', 'Blocks that the pool can hand out, taken or not.', ({ size }) => size)
  pool('nlb_pool_used', 'Blocks of the pool that are handed out.', ({ used }) => used)
  pool('nlb_pool_resting', 'Blocks that were given back and cool down.', ({ resting }) => resting)
}
