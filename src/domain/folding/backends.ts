import { found } from '../../rules/findings.ts'
import { isReason, REASONS, type Reason } from '../../rules/reasons.ts'
import type { Finding } from '../../rules/report.ts'
import type { FoldBackend, FoldInput } from './input.ts'

/** These keep a backend out where its address is known; `resolved` says so. */
export const KEPT_OUT: ReadonlySet<Reason> = new Set([
  'NodeConflict',
  'AttachmentShared',
  'BackendsClaimed',
  'ClusterCordoned',
  'AddressFamilyNotServed',
])

/** How many addresses a message names before it only counts them. */
const NAMED = 3

/** Whether the region's clusters know the address in the VPC, and at least one can use it. */
export const resolution = (backend: FoldBackend, input: FoldInput): Finding => {
  const { address, knownIn } = backend
  if (knownIn.length === 0)
    return found('FALSE', 'AddressUnknown', `${address} is not known in the VPC in this region.`)
  const obstacles = knownIn.toSorted().map((cluster) => obstacleIn(cluster, backend, input))
  const [first] = obstacles
  return first && obstacles.every((obstacle) => obstacle !== undefined)
    ? found('FALSE', first, REASONS[first])
    : found('TRUE', 'Resolved', `${address} is known in the VPC.`)
}

const obstacleIn = (
  cluster: string,
  { id, cordonedIn }: FoldBackend,
  { placements }: FoldInput,
): Reason | undefined => {
  if (cordonedIn?.includes(cluster)) return 'ClusterCordoned'
  const placement = placements?.find((each) => each.cluster === cluster)
  const placed = placement?.placed ? placement.report?.backends[id]?.placed : undefined
  return placed?.status === 'FALSE' && KEPT_OUT.has(placed.reason) ? placed.reason : undefined
}

/** Whether some cluster sends it new connections, by the last that was heard. */
export const isServing = ({ id }: FoldBackend, { placements }: FoldInput): boolean =>
  placements?.some(({ report }) => report?.backends[id]?.serving === true) ?? false

const namesOf = (backends: FoldBackend[]): string =>
  backends.length <= NAMED
    ? backends.map(({ address }) => address).join(', ')
    : `${backends
        .slice(0, NAMED)
        .map(({ address }) => address)
        .join(', ')} and ${backends.length - NAMED} more`

const nothingEnabled = 'No backend is enabled, so there is nothing to send connections to.'

/** BackendsResolved: over the enabled ones. */
export const allResolved = (
  enabled: FoldBackend[],
  resolutions: ReadonlyMap<string, Finding>,
): Finding => {
  if (enabled.length === 0) return found('TRUE', 'NoBackends', nothingEnabled)
  const missing = enabled.filter(({ id }) => resolutions.get(id)?.status !== 'TRUE')
  const reason = missing[0] && resolutions.get(missing[0].id)?.reason
  if (reason === undefined)
    return found('TRUE', 'Resolved', 'Every enabled backend is known in the VPC.')
  const alike = missing.filter(({ id }) => resolutions.get(id)?.reason === reason)
  return found('FALSE', reason, `${namesOf(alike)}: ${REASONS[reason]}`)
}

/**
 * Whether too few are healthy to trust their checks, so that all serve. `usable` counts the
 * enabled, resolved backends, `notUnhealthy` those of them that may serve, `minimum` is in percent.
 */
export const failsOpen = (usable: number, notUnhealthy: number, minimum: number): boolean =>
  usable > 0 && (notUnhealthy === 0 || 100 * notUnhealthy < minimum * usable)

/** BackendsHealthy: over the enabled ones; those that nobody checks count as fine. */
export const allHealthy = (
  enabled: FoldBackend[],
  resolutions: ReadonlyMap<string, Finding>,
  minimum: number,
): Finding => {
  if (enabled.length === 0) return found('FALSE', 'NoBackends', nothingEnabled)
  const unhealthy = enabled.filter(({ health }) => health.state === 'UNHEALTHY')
  if (unhealthy.length > 0) {
    const usable = enabled.filter(({ id }) => resolutions.get(id)?.status === 'TRUE')
    const fine = usable.filter(({ health }) => health.state !== 'UNHEALTHY')
    const count = `${unhealthy.length} of ${enabled.length} enabled backends fail: ${namesOf(unhealthy)}.`
    if (failsOpen(usable.length, fine.length, minimum))
      return found('FALSE', 'FailOpen', `${count} ${REASONS.FailOpen}`)
    if (unhealthy.every(({ health }) => health.reason === 'Flapping')) {
      const words = `${unhealthy.length} of ${enabled.length} enabled backends: ${namesOf(unhealthy)}.`
      return found('FALSE', 'Flapping', `${words} ${REASONS.Flapping}`)
    }
    const all = unhealthy.length === enabled.length
    return found('FALSE', all ? 'AllUnhealthy' : 'SomeUnhealthy', count)
  }
  const unknown = enabled.filter(({ health }) => health.state === 'UNKNOWN')
  if (unknown.length > 0)
    return found(
      'UNKNOWN',
      reasonOf(unknown[0], 'NotProbedYet'),
      `The health of ${namesOf(unknown)} is not known yet.`,
    )
  const unchecked = enabled.filter(({ health }) => health.state === 'NOT_CHECKED')
  if (unchecked.length === 0) return found('TRUE', 'Healthy', 'Every enabled backend is healthy.')
  const reason = reasonOf(unchecked[0], 'NoHealthCheck')
  return found('TRUE', reason, REASONS[reason])
}

/** Why health is as it is, where the listed reasons hold what the record says. */
const reasonOf = (backend: FoldBackend | undefined, otherwise: Reason): Reason => {
  const reason = backend?.health.reason
  return reason !== undefined && isReason(reason) ? reason : otherwise
}
