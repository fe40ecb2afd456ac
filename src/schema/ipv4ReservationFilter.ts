import type { ReservationRecord } from '../domain/records.ts'
import type { ReservationFilter as Chosen } from '../domain/reservations/read.ts'
import { FOR_OPERATORS } from './audience.ts'
import { builder } from './builder.ts'
import { IPv4ReservationState } from './ipv4Reservation.ts'
import { LabelFilter } from './label.ts'
import { among, labelFilters, matchesLabels, uuidsOf } from './loadBalancerFilter.ts'
import { filterOf } from './valid.ts'

export const IPv4ReservationFilter = builder.inputType('IPv4ReservationFilter', {
  description: 'Chooses IPv4 reservations. All that is given must match; within a list, any.',
  fields: (t) => ({
    ids: t.idList({ description: 'Its id is one of these.' }),
    nameContains: t.string({ description: 'Its name contains this text.' }),
    region: t.stringList({ description: 'It belongs to one of these regions, by code.' }),
    address: t.field({ type: 'IPv4Address', description: 'Its address is exactly this.' }),
    state: t.field({ type: [IPv4ReservationState], description: 'Its state is one of these.' }),
    bound: t.boolean({ description: 'Whether a load balancer has it.' }),
    labels: t.field({
      type: [LabelFilter],
      description: 'Its labels match every one of these.',
    }),
    project: t.stringList({
      description: 'It belongs to one of these projects.',
      extensions: FOR_OPERATORS,
    }),
  }),
})

type Given = typeof IPv4ReservationFilter.$inferInput | null | undefined

/** The filter as the store reads it; ids that name nothing match nothing. */
export function ipv4ReservationFilter(filter: Given): Chosen {
  const { ids, labels, ...others } = filterOf(filter)
  return {
    ...others,
    ...(ids === undefined ? {} : { ids: uuidsOf('IPv4Reservation', ids) }),
    ...(labels === undefined ? {} : { labels: labelFilters(labels) }),
  }
}

/** Whether a reservation is one that the filter chooses: the same as the store's own condition. */
export function matchesReservation(filter: Chosen, record: ReservationRecord): boolean {
  const { ids, nameContains, region, address, state, bound, labels, project } = filter
  return (
    among(ids, record.id) &&
    (nameContains == null || record.name.includes(nameContains)) &&
    among(project, record.project) &&
    among(region, record.region.code) &&
    (address == null || record.address === address) &&
    among(state, record.state) &&
    (bound == null || bound === record.bindings.some(({ state }) => state !== 'UNBINDING')) &&
    matchesLabels(labels, record.labels)
  )
}
