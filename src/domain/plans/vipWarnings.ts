import type { Warning } from './plan.ts'
import type { Compared, SceneCluster } from './scene.ts'

/** Addresses that change hands or are new, and would not be served at once. */
export function vipWarnings({ before, after, about }: Compared): Warning[] {
  return [...after.addresses].flatMap(([address, { holder, reservation }]) => {
    const was = before.addresses.get(address)
    // What stays, or is let go of, needs no warning.
    if (was !== undefined && (was.holder === holder || holder === null)) return []
    if (holder !== null && !about.loadBalancers.includes(holder)) return []
    const path = reservation === null ? [] : (about.named.get(reservation) ?? [])
    const placed = after.clusters.filter(({ placements }) => holder && placements.has(holder))
    const clusters = placed.length > 0 ? placed : after.clusters
    return [
      ...(reservation === null ? [] : notServed(address, clusters, path)),
      ...heldElsewhere(address, holder, clusters, path),
    ]
  })
}

function notServed(address: string, clusters: SceneCluster[], path: string[]): Warning[] {
  const serving = clusters.filter(({ capabilities }) => capabilities.servesIPv4)
  if (serving.length === clusters.length) return []
  const message =
    serving.length === 0
      ? `IPv4 is not served in this region yet: ${address} is held, but carries no traffic.`
      : `IPv4 is served only in a part of this region yet: ${address} carries traffic only there.`
  return [{ code: 'IPV4_NOT_SERVED', message, path }]
}

function heldElsewhere(
  address: string,
  holder: string | null,
  clusters: SceneCluster[],
  path: string[],
): Warning[] {
  const waits = clusters.some(({ placements }) =>
    placements
      .get(holder ?? '')
      ?.wanted.vips.some((vip) => vip.address === address && vip.heldBy !== null),
  )
  if (!waits) return []
  return [
    {
      code: 'ADDRESS_HELD_ELSEWHERE',
      message: `${address} is served here only when the load balancer that had it before has let go of it everywhere.`,
      path,
    },
  ]
}
