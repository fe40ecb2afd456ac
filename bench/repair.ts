import { setTimeout as delay } from 'node:timers/promises'
import {
  DATA_PLANE_NAMESPACE,
  LOAD_BALANCER_LABEL,
  NETWORK_RULES,
  type NetworkRule,
} from '../src/rules/objects.ts'
import { type Benchmark, type Finding, percentile, share } from './benchmark.ts'
import type { RealCluster } from './clusters.ts'
import { prepareFloor, rule } from './converge.ts'

const TIMES = 60
/** What more than one apply it may take (ms). */
const MORE = 50

/**
 * On an idle system: from the call that makes a load balancer to its rules in two clusters, and from a
 * rule's deletion to its return, by the side of one apply.
 */
export const repair: Benchmark = async (ground, scale) => {
  const clusters = await ground.clusters()
  await prepareFloor(clusters)
  const worker = await clusters.startWorker()
  const watches = await Promise.all(clusters.each.map(watchRules))
  const took = { apply: [] as number[], change: [] as number[], back: [] as number[] }
  const timed = async (into: number[], work: () => Promise<unknown>) => {
    await delay(100 + Math.random() * 100)
    const begun = performance.now()
    await work()
    into.push(performance.now() - begun)
  }
  const [one] = clusters.each
  for (let index = 0; index < share(scale, TIMES, 4); index += 1) {
    await timed(took.apply, async () => one?.cluster.apply(NETWORK_RULES, rule(index, 10)))
    let id = ''
    await timed(took.change, async () => {
      id = await clusters.create(20_000 + index)
      await Promise.all(watches.map(({ appeared }) => appeared(id)))
    })
    const [watch] = watches
    const name = watch?.nameOf(id) ?? ''
    await clusters.applied()
    await timed(took.back, async () => {
      const again = watch?.appeared(id, name)
      await one?.writer.remove(NETWORK_RULES, { name, namespace: DATA_PLANE_NAMESPACE })
      await again
    })
  }
  await worker.end()
  await Promise.all(watches.map(({ close }) => close()))
  const at = (times: number[], part: number) => percentile(times.slice(1), part)
  for (const [name, times] of Object.entries(took)) {
    console.log(
      `  ${name.padEnd(7)} median ${at(times, 0.5).toFixed(1)} ms, 95th percentile ${at(times, 0.95).toFixed(1)} ms`,
    )
  }
  const more = (name: string, times: number[]): Finding => ({
    name,
    value: at(times, 0.95) - at(took.apply, 0.95),
    unit: ' ms',
    atMost: MORE,
  })
  return [
    more('change → two rules, beyond one apply, p95', took.change),
    more('a deleted rule is back, beyond one apply, p95', took.back),
  ]
}

/** Tells when a load balancer's rule appears, as the cluster's own watch has it. */
async function watchRules({ cluster }: RealCluster) {
  const waiting = new Map<string, () => void>()
  const names = new Map<string, string>()
  const follow = cluster.follow<NetworkRule>(
    NETWORK_RULES,
    { namespace: DATA_PLANE_NAMESPACE },
    {
      changed(now, before) {
        const id = now?.metadata.labels?.[LOAD_BALANCER_LABEL]
        if (id === undefined || before !== undefined) return
        names.set(id, now?.metadata.name ?? '')
        waiting.get(id)?.()
        waiting.delete(id)
      },
    },
  )
  await follow.synced
  return {
    nameOf: (id: string) => names.get(id),
    /** Resolves when it is there, or (where it was already) there anew. */
    appeared: (id: string, known?: string) =>
      new Promise<void>((resolve) => {
        if (known === undefined && names.has(id)) resolve()
        else waiting.set(id, resolve)
      }),
    close: () => follow.close(),
  }
}
