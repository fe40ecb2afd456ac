/** How changes of IPv4 reservations are refused. */
import {
  accepted,
  type LoadBalancer,
  MOVE,
  RESERVE,
  type Reservation,
  UNBIND,
  UPDATE_RESERVATION,
} from '../operations.ts'
import * as flaws from './flaws.ts'
import { type Ask, type Case, caseOf, type Flaw, type Input } from './register.ts'
import type { Stock } from './stock.ts'

/** `holder`: whom a flaw gave the reservation to. */
type OfOne = { input: Input; reservation: Reservation; holder?: LoadBalancer }
type Binding = OfOne & { loadBalancer: LoadBalancer }
type Moving = OfOne & { from: LoadBalancer; to: LoadBalancer }

export function reservationCases(stock: Stock, ask: Ask): Case[] {
  const foreign = () => stock.shared.foreign.reservation
  const foreignLoadBalancer = () => stock.shared.foreign.loadBalancer
  const scene = (more: Input) => async (): Promise<OfOne> => {
    const reservation = await stock.reservation()
    return { reservation, input: { id: reservation.id, ...more } }
  }
  const toBind = async (): Promise<Binding> => {
    const [loadBalancer, reservation] = [await stock.loadBalancer(), await stock.reservation()]
    const input = { loadBalancer: loadBalancer.id, reservation: reservation.id }
    return { loadBalancer, reservation, input }
  }
  const toUnbind = async (): Promise<Binding> => {
    const made = await toBind()
    await stock.bind(made.reservation.id, made.loadBalancer.id)
    return made
  }
  const toMove = async (): Promise<Moving> => {
    const { loadBalancer: from, reservation } = await toUnbind()
    const to = await stock.loadBalancer()
    return {
      from,
      to,
      reservation,
      input: { reservation: reservation.id, from: from.id, to: to.id },
    }
  }
  const inUse = (field: string): Flaw<OfOne> => ({
    refusal: 'ReservationInUse',
    how: 'a load balancer has it',
    spoil: async (made) => {
      made.holder = await stock.loadBalancer()
      await stock.bind(made.reservation.id, made.holder.id)
      return undefined
    },
    told: ({ reservation, holder }) => ({
      path: [field],
      ...{ reservationId: reservation.id, loadBalancerId: holder?.id },
    }),
  })
  return [
    caseOf(
      ask,
      'createIPv4Reservation',
      async (): Promise<{ input: Input }> => ({
        input: { name: `ip-${stock.next()}`, region: 'us-east-1' },
      }),
      [
        flaws.notReleased(stock),
        flaws.region(),
        flaws.unprintable(),
        flaws.exceeded(stock, 'ipv4reservations'),
        flaws.nameTaken(() => stock.shared.reservation.name),
        {
          refusal: 'IdempotencyKeyReused',
          how: 'the key made another one',
          spoil: async ({ input }) => {
            const idempotencyKey = `key-${stock.next()}`
            const other = { name: idempotencyKey, region: 'us-east-1', idempotencyKey }
            await accepted(stock.api, RESERVE, other)
            input['idempotencyKey'] = idempotencyKey
            return undefined
          },
          told: () => ({ path: ['idempotencyKey'] }),
        },
        flaws.exhausted(stock, 'IPV4'),
      ],
    ),
    caseOf(ask, 'updateIPv4Reservation', scene({ displayName: 'changed' }), [
      flaws.notReleased(stock),
      flaws.names('id', foreign),
      flaws.invalid('reset', ['DISPLAY_NAME'], {
        code: 'SET_AND_RESET',
        path: ['reset', '0'],
        suggestion: null,
      }),
      flaws.nameTaken(() => stock.shared.reservation.name),
      flaws.expectsAnother(1),
    ]),
    caseOf(ask, 'deleteIPv4Reservation', scene({}), [
      flaws.notReleased(stock),
      flaws.names('id', foreign),
      flaws.expectsAnother(1),
      {
        refusal: 'DeletionProtected',
        how: 'it is protected',
        spoil: async ({ reservation: { id } }) => {
          await accepted(stock.api, UPDATE_RESERVATION, { id, deletionProtection: true })
          return undefined
        },
        told: () => ({ path: [] }),
      },
      inUse('id'),
    ]),
    caseOf(ask, 'bindIPv4Reservation', toBind, [
      flaws.notReleased(stock),
      flaws.names('loadBalancer', foreignLoadBalancer),
      flaws.names('reservation', foreign),
      flaws.otherRegion(stock),
      flaws.exceeded(stock, 'rulespervpc'),
      flaws.sevenBound<Binding>(stock, ({ loadBalancer }) => loadBalancer),
      flaws.expectsAnother(1),
      inUse('reservation'),
      flaws.beingDeleted<Binding>(stock, ({ loadBalancer }) => loadBalancer),
    ]),
    caseOf(ask, 'unbindIPv4Reservation', toUnbind, [
      flaws.notReleased(stock),
      flaws.names('loadBalancer', foreignLoadBalancer),
      flaws.names('reservation', foreign),
      flaws.expectsAnother(2),
      {
        refusal: 'StaleHolder',
        how: 'another load balancer has it by now',
        spoil: async (made) => {
          made.holder = await stock.loadBalancer()
          const [from, to] = [made.loadBalancer.id, made.holder.id]
          await accepted(stock.api, MOVE, { reservation: made.reservation.id, from, to })
          return undefined
        },
        told: ({ holder }) => ({ path: ['loadBalancer'], holderId: holder?.id }),
      },
    ]),
    caseOf(ask, 'moveIPv4Reservation', toMove, [
      flaws.notReleased(stock),
      flaws.names('reservation', foreign),
      flaws.names('from', foreignLoadBalancer),
      flaws.names('to', foreignLoadBalancer),
      flaws.invalid('idempotencyKey', '', {
        code: 'INVALID_KEY',
        path: ['idempotencyKey'],
        suggestion: null,
      }),
      flaws.otherRegion(stock),
      flaws.sevenBound<Moving>(stock, ({ to }) => to),
      {
        refusal: 'IdempotencyKeyReused',
        how: 'the key moved another one',
        spoil: async ({ input }) => {
          const idempotencyKey = `key-${stock.next()}`
          await accepted(stock.api, MOVE, { ...(await toMove()).input, idempotencyKey })
          input['idempotencyKey'] ??= idempotencyKey
          return undefined
        },
        told: () => ({ path: ['idempotencyKey'] }),
      },
      flaws.expectsAnother(2),
      {
        refusal: 'StaleHolder',
        how: 'nobody has it any more',
        spoil: async ({ reservation, from }) => {
          const input = { reservation: reservation.id, loadBalancer: from.id }
          await accepted(stock.api, UNBIND, input)
          return undefined
        },
        told: () => ({ path: ['loadBalancer'], holderId: null }),
      },
      flaws.beingDeleted<Moving>(stock, ({ to }) => to),
    ]),
  ]
}
