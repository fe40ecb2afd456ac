import type { LoadBalancerFilter as Chosen } from '../domain/loadBalancers/list.ts'
import type { Label, LoadBalancerRecord } from '../domain/records.ts'
import { FOR_OPERATORS } from './audience.ts'
import { builder } from './builder.ts'
import { uuidOf } from './ids.ts'
import { LabelFilter } from './label.ts'
import { LoadBalancerPhase } from './loadBalancerStatus.ts'
import { filterOf } from './valid.ts'

export const LoadBalancerFilter = builder.inputType('LoadBalancerFilter', {
  description: 'Chooses load balancers. All that is given must match; within a list, any.',
  fields: (t) => ({
    ids: t.idList({ description: 'Its id is one of these.' }),
    nameContains: t.string({ description: 'Its name contains this text.' }),
    region: t.stringList({ description: 'It is in one of these regions, by code.' }),
    vpc: t.idList({ description: 'Its backends live in one of these VPCs, by id.' }),
    phase: t.field({ type: [LoadBalancerPhase], description: 'Its phase is one of these.' }),
    address: t.field({
      type: 'IPAddress',
      description: 'One of its virtual addresses, or of its backends, is exactly this.',
    }),
    labels: t.field({
      type: [LabelFilter],
      description: 'Its labels match every one of these.',
    }),
    project: t.stringList({
      description: 'It belongs to one of these projects.',
      extensions: FOR_OPERATORS,
    }),
    cluster: t.field({
      type: 'ResourceName',
      description: 'It is placed in the cluster of this name.',
      extensions: FOR_OPERATORS,
    }),
  }),
})

type Given = typeof LoadBalancerFilter.$inferInput | null | undefined

/** The filter as the store reads it; ids that name nothing match nothing. */
export function loadBalancerFilter(filter: Given): Chosen {
  const { ids, vpc, labels, ...others } = filterOf(filter)
  return {
    ...others,
    ...(ids === undefined ? {} : { ids: uuidsOf('LoadBalancer', ids) }),
    ...(vpc === undefined ? {} : { vpc: uuidsOf('Vpc', vpc) }),
    ...(labels === undefined ? {} : { labels: labelFilters(labels) }),
  }
}

/** The UUIDs in those ids that are of the type. */
export function uuidsOf(type: 'LoadBalancer' | 'Vpc' | 'IPv4Reservation', ids: string[]) {
  return ids.flatMap((id) => uuidOf(type, id) ?? [])
}

/** Without values a filter asks for the key alone. */
export function labelFilters(
  labels: { key: string; values?: string[] | null | undefined }[],
): { key: string; values: string[] | null }[] {
  return labels.map(({ key, values }) => ({ key, values: values ?? null }))
}

/**
 * Whether a load balancer is one that the filter chooses: the same as the store's own condition. In which
 * clusters it is placed isn't told by the record: `placed` does, where the filter asks.
 */
export function matchesLoadBalancer(
  filter: Chosen,
  record: LoadBalancerRecord,
  placed: ReadonlySet<string> = new Set(),
): boolean {
  const { ids, nameContains, region, vpc, phase, address, labels, project, cluster } = filter
  return (
    among(ids, record.id) &&
    (nameContains == null || record.name.includes(nameContains)) &&
    among(project, record.project) &&
    (cluster == null || placed.has(record.id)) &&
    among(region, record.region.code) &&
    among(vpc, record.vpc.id) &&
    among(phase, record.status.phase) &&
    (address == null ||
      record.addresses.some((vip) => vip.address === address) ||
      record.backends.some((backend) => backend.address === address)) &&
    matchesLabels(labels, record.labels)
  )
}

export function among<T>(chosen: readonly T[] | null | undefined, value: T): boolean {
  return chosen == null || chosen.includes(value)
}

/** Whether labels match every one of the filters. */
export function matchesLabels(
  filters: readonly { key: string; values?: readonly string[] | null }[] | null | undefined,
  labels: readonly Label[],
): boolean {
  return (
    filters == null ||
    filters.every(({ key, values }) =>
      labels.some((label) => label.key === key && among(values, label.value)),
    )
  )
}
