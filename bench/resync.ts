import { setTimeout as delay } from 'node:timers/promises'
import { type Benchmark, share } from './benchmark.ts'
import { type Clusters, writesIn } from './clusters.ts'

const LOAD_BALANCERS = 1_000
/** How long (ms) a resync may take to be over with. */
const SETTLED = 5_000

/**
 * A worker that starts looks over all 2,000 placements. It writes nothing where nothing has changed, and
 * what somebody asks for meanwhile doesn't wait.
 */
export const resync: Benchmark = async (ground, scale) => {
  const clusters = await ground.clusters()
  const first = await clusters.startWorker()
  const count = share(scale, LOAD_BALANCERS, 20)
  for (let number = 0; number < count; number += 1) await clusters.create(40_000 - number)
  await clusters.applied()
  await delay(SETTLED * Math.max(scale.part, 0.2))
  await first.end()

  const before = await allWrites(clusters)
  const second = await clusters.startWorker()
  await delay(SETTLED * Math.max(scale.part, 0.2))
  const written = (await allWrites(clusters)) - before
  await second.end()

  // Served, it has everything to look over; the change comes just then.
  const third = await clusters.startWorker()
  const begun = performance.now()
  const id = await clusters.create(40_001)
  await appliedEverywhere(clusters, id)
  const took = (performance.now() - begun) / 1_000
  await third.end()
  return [
    { name: `writes of a resync of ${count * 2} unchanged`, value: written, atMost: 0 },
    { name: 'a change while all is looked over', value: took, unit: ' s', atMost: 2 },
  ]
}

async function allWrites({ each }: Clusters): Promise<number> {
  const counts = await Promise.all(each.map(({ server }) => writesIn(server)))
  return counts.reduce((sum, one) => sum + one, 0)
}

async function appliedEverywhere({ store, each }: Clusters, id: string): Promise<void> {
  for (;;) {
    const done = await store.prisma.placement.count({
      where: { loadBalancerId: id, applied: { gt: 0 } },
    })
    if (done === each.length) return
    await delay(5)
  }
}
