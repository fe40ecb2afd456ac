import { type Impact, impactOf } from '../../maglev/impact.ts'
import { TABLE_SIZE, type Table } from '../../maglev/table.ts'
import type { FlowImpact } from './plan.ts'
import type { Scene } from './scene.ts'

/** The tables of one load balancer in one cluster; null: nothing is served there. */
type TablePair = { before: Table | null; after: Table | null }

/** The tables of a load balancer before and after, in each cluster that has or had one. */
export function tablesOf(before: Scene, after: Scene, loadBalancer: string): TablePair[] {
  const inClusters = ({ clusters }: Scene) =>
    new Map(clusters.map((one) => [one.name, one.placements.get(loadBalancer)?.table ?? null]))
  const was = inClusters(before)
  const is = inClusters(after)
  return [...new Set([...was.keys(), ...is.keys()])]
    .map((name) => ({ before: was.get(name) ?? null, after: is.get(name) ?? null }))
    .filter((pair) => pair.before !== null || pair.after !== null)
}

/**
 * What happens to the tables of some load balancers: one answer for each distinct change of a table,
 * the one in most clusters first. A table that stays, or that comes where none was, moves no flow.
 */
export function flowImpacts(before: Scene, after: Scene, loadBalancers: string[]): FlowImpact[] {
  const distinct = new Map<string, { clusters: number; impact: Impact }>()
  for (const loadBalancer of loadBalancers) {
    for (const pair of tablesOf(before, after, loadBalancer)) {
      const impact = impactOf(pair.before, pair.after)
      if (impact.moved === 0) continue
      const name = [loadBalancer, keysOf(pair.before), keysOf(pair.after)].join('|')
      const known = distinct.get(name)
      if (known === undefined) distinct.set(name, { clusters: 1, impact })
      else known.clusters += 1
    }
  }
  return [...distinct.values()]
    .map(({ clusters, impact }) => ({ clusters, tableSize: TABLE_SIZE, ...impact }))
    .sort((a, b) => b.clusters - a.clusters)
}

const keysOf = (table: Table | null): string => table?.keys.join() ?? ''
