import {
  countReservations,
  findReservationByName,
  listReservations,
} from '../domain/reservations/read.ts'
import { builder } from '../schema/builder.ts'
import { projectOf, requirePermission } from '../schema/context.ts'
import { uuidOf } from '../schema/ids.ts'
import { IPv4Reservation, IPv4ReservationConnection } from '../schema/ipv4Reservation.ts'
import { IPv4ReservationFilter, ipv4ReservationFilter } from '../schema/ipv4ReservationFilter.ts'
import { loadAll } from '../schema/loaders.ts'
import { connectionOf, pageArgs, pageRequest } from '../schema/pages.ts'
import { valid } from '../schema/valid.ts'

builder.queryFields((t) => ({
  ipv4Reservation: t.field({
    type: IPv4Reservation,
    nullable: true,
    description: 'The IPv4 reservation with this id; null where there is none.',
    args: { id: t.arg.id({ required: true, description: 'Its id.' }) },
    resolve: (_root, { id }, context) => {
      requirePermission(context, 'ipv4reservations.get')
      const uuid = uuidOf('IPv4Reservation', id)
      return uuid === null ? null : context.loaders.reservations.load(uuid)
    },
  }),
  ipv4ReservationByName: t.field({
    type: IPv4Reservation,
    nullable: true,
    description:
      'The IPv4 reservation of the project with this name in this region; null where there is none.',
    args: {
      region: t.arg.string({ required: true, description: 'The code of its region.' }),
      name: t.arg({ type: 'ResourceName', required: true, description: 'Its name.' }),
    },
    resolve: async (_root, args, context) => {
      requirePermission(context, 'ipv4reservations.get')
      const { store, loaders } = context
      const project = projectOf(context)
      const id = await findReservationByName(store, { project, ...valid(args) })
      return id === null ? null : loaders.reservations.load(id)
    },
  }),
  ipv4Reservations: t.field({
    type: IPv4ReservationConnection,
    description: 'The IPv4 reservations of the project, oldest first.',
    args: {
      ...pageArgs(t.arg),
      filter: t.arg({
        type: IPv4ReservationFilter,
        description: 'Which ones; all where none is given.',
      }),
    },
    resolve: (_root, args, context) => {
      requirePermission(context, 'ipv4reservations.list')
      const { store, project, loaders } = context
      const selection = { project, filter: ipv4ReservationFilter(args.filter) }
      return connectionOf(
        listReservations(store, { ...selection, page: pageRequest(args) }),
        (ids) => loadAll(loaders.reservations, ids),
        () => countReservations(store, selection),
      )
    },
  }),
}))
