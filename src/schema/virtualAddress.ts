import type { VipStatus } from '../domain/status.ts'
import { AddressFamily } from './addressFamily.ts'
import { builder } from './builder.ts'
import { requirePermission } from './context.ts'
import { IPv4Reservation } from './ipv4Reservation.ts'
import { notReported } from './loadBalancerStatus.ts'
import type { VirtualAddressShape } from './shapes.ts'
import { StatusCondition } from './statusCondition.ts'

export const VirtualAddress = builder.objectRef<VirtualAddressShape>('VirtualAddress')

VirtualAddress.implement({
  description: 'An address that clients connect to.',
  fields: (t) => ({
    address: t.field({
      type: 'IPAddress',
      description: 'The address to connect to.',
      resolve: ({ address }) => address.address,
    }),
    prefix: t.field({
      type: 'IPPrefix',
      description:
        'The block that was allocated: a /128 (IPv6) or /32 (IPv4) where it is a single address.',
      resolve: ({ address }) => address.prefix,
    }),
    family: t.field({
      type: AddressFamily,
      description: 'Whether it is IPv4 or IPv6.',
      resolve: ({ address }) => address.family,
    }),
    ipv4Reservation: t.field({
      type: IPv4Reservation,
      nullable: true,
      description:
        'The IPv4 reservation that it comes from, and that keeps it when the load balancer goes. Null for addresses that belong to the load balancer itself.',
      resolve: ({ address }, _args, context) => {
        if (address.reservation === null) return null
        requirePermission(context, 'ipv4reservations.get')
        return context.loaders.reservations.load(address.reservation)
      },
    }),
    status: t.field({
      type: VirtualAddressStatus,
      description: 'How far it is in effect.',
      resolve: ({ address, loadBalancer }) =>
        loadBalancer.status.vips[address.address] ?? {
          provisioned: notReported('Provisioned', loadBalancer),
          advertised: notReported('Advertised', loadBalancer),
          reachable: notReported('Reachable', loadBalancer),
        },
    }),
  }),
})

const VirtualAddressStatus = builder.objectRef<VipStatus>('VirtualAddressStatus')

VirtualAddressStatus.implement({
  description: 'What is known about one virtual address.',
  fields: (t) => ({
    provisioned: t.expose('provisioned', {
      type: StatusCondition,
      description: 'Whether what was asked for last is in effect for it.',
    }),
    advertised: t.expose('advertised', {
      type: StatusCondition,
      description: 'Whether it is announced to the network, so that packets find their way.',
    }),
    reachable: t.expose('reachable', {
      type: StatusCondition,
      description: 'Whether clients outside reach it.',
    }),
    conditions: t.field({
      type: [StatusCondition],
      description: 'All of the above and any further ones, in a stable order.',
      resolve: ({ provisioned, advertised, reachable }) => [provisioned, advertised, reachable],
    }),
  }),
})
