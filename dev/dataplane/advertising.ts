import { ApiFailure } from '../../src/clusters/cluster.ts'
import {
  ADVERTISEMENT_RULE_LABEL,
  BGP_ADVERTISEMENTS,
  type BGPAdvertisement,
  DATA_PLANE_NAMESPACE,
  type NetworkRule,
} from '../../src/rules/objects.ts'
import type { Action } from './jobs.ts'
import { subjectsOf } from './ruleStatus.ts'
import { familiesOf } from './vips.ts'
import { routerOf, type World } from './world.ts'

type Change =
  | { kind: 'create'; node: string; name: string; prefixes: string[] }
  | { kind: 'patch'; node: string; name: string; prefixes: string[] }
  | { kind: 'withdraw'; name: string }

/**
 * Brings the advertisements of a rule to what its gateways should say: `nodes` its VIPs. With `prune`
 * whatever else carries its label goes; without, a family that has left the rule stays advertised.
 */
export function advertise(
  world: World,
  rule: NetworkRule,
  nodes: Iterable<string>,
  prune: boolean,
): Action | undefined {
  const name = rule.metadata.name
  const changes: Change[] = []
  const kept = new Set<string>()
  const families = familiesOf(rule)
  for (const node of nodes) {
    if (world.advertising.get(node)?.has(name)) continue
    for (const [suffix, vips, length] of [
      ['v4', families.IPV4, 32],
      ['v6', families.IPV6, 128],
    ] as const) {
      if (vips.length === 0) continue
      const prefixes = vips.map((vip) => `${vip}/${length}`)
      const advertisement = `${name}-${node}-${suffix}`
      kept.add(advertisement)
      const known = world.advertisement(advertisement)
      if (known === undefined) {
        changes.push({ kind: 'create', node, name: advertisement, prefixes })
      } else if (!says(known, name, prefixes)) {
        changes.push({ kind: 'patch', node, name: advertisement, prefixes })
      }
    }
  }
  for (const other of prune ? world.advertisementsOf.get(name) : []) {
    if (!kept.has(other)) changes.push({ kind: 'withdraw', name: other })
  }
  if (changes.length === 0) return undefined
  return {
    step: 'advertise',
    subjects: subjectsOf(rule),
    async run() {
      await Promise.all(changes.map((change) => write(world, name, change)))
      return changes.some(({ kind }) => kind === 'withdraw') ? 'unseen' : 'seen'
    },
  }
}

/** Takes one advertisement away. */
export function withdraw(world: World, name: string): Promise<void> {
  return world.writer.remove(BGP_ADVERTISEMENTS, { name, namespace: DATA_PLANE_NAMESPACE })
}

function says(advertisement: BGPAdvertisement, rule: string, prefixes: string[]): boolean {
  const { metadata, spec } = advertisement
  const now = new Set(spec.prefixes ?? [])
  return (
    metadata.labels?.[ADVERTISEMENT_RULE_LABEL] === rule &&
    now.size === prefixes.length &&
    prefixes.every((prefix) => now.has(prefix))
  )
}

/** Makes one change; the names in it are the data plane's own. */
async function write(world: World, rule: string, change: Change): Promise<void> {
  const where = { name: change.name, namespace: DATA_PLANE_NAMESPACE }
  if (change.kind === 'withdraw') return withdraw(world, change.name)
  const labels = { [ADVERTISEMENT_RULE_LABEL]: rule }
  const spec = {
    routerRef: { name: routerOf(change.node) },
    // EVPN for VIPs of either family: plain unicast routes are never originated.
    addressFamily: { afi: 'l2vpn', safi: 'evpn' },
    prefixes: change.prefixes,
  }
  try {
    const written =
      change.kind === 'create'
        ? await world.writer.create<BGPAdvertisement>(BGP_ADVERTISEMENTS, {
            metadata: { ...where, labels },
            spec,
          })
        : await world.writer.patch<BGPAdvertisement>(BGP_ADVERTISEMENTS, where, {
            metadata: { labels },
            spec,
          })
    world.followed.advertisements.learn(written)
  } catch (error) {
    // A rule whose name is too long for a label: it will never be advertised.
    if (!(error instanceof ApiFailure) || error.code !== 422) throw error
    const failures = world.advertising.get(change.node) ?? new Map<string, string>()
    world.advertising.set(change.node, failures.set(rule, error.message))
    world.touchGateway(change.node)
  }
}
