/** How changes of load balancers are refused. */
import { expect } from 'vitest'
import { accepted, CREATE, type LoadBalancer, UPDATE } from '../operations.ts'
import * as flaws from './flaws.ts'
import { type Ask, type Case, caseOf, type Flaw, type Input } from './register.ts'
import type { Stock } from './stock.ts'

type OfOne = { input: Input; loadBalancer: LoadBalancer }

export function loadBalancerCases(stock: Stock, ask: Ask): Case[] {
  const foreign = () => stock.shared.foreign.loadBalancer
  const gone = flaws.beingDeleted<OfOne>(stock, ({ loadBalancer }) => loadBalancer)
  const [one, second] = stock.installation.addresses('us-east-1-a')
  /** A load balancer, and an input that names it. */
  const scene =
    (field: string, more: () => Input, made: Input = {}) =>
    async (): Promise<OfOne> => {
      const loadBalancer = await stock.loadBalancer(made)
      return { loadBalancer, input: { [field]: loadBalancer.id, ...more() } }
    }
  const wrongAddress = flaws.invalid('backends', [{ address: '::ffff:10.0.0.1' }], {
    code: 'INVALID_ADDRESS',
    path: ['backends', '0', 'address'],
    suggestion: '10.0.0.1',
  })
  const nameOfFirst: Flaw<OfOne> = {
    refusal: 'NameTaken',
    how: 'another backend has the name',
    spoil: ({ input }) => {
      const [backend, ...others] = flaws.listIn(input, 'backends')
      input['backends'] = [{ ...Object(backend), name: 'first' }, ...others]
      return undefined
    },
    told: () => ({ path: ['backends'], takenName: 'first' }),
  }
  const general = (field: string) => [flaws.notReleased(stock), flaws.names(field, foreign)]
  return [
    caseOf(ask, 'createLoadBalancer', async () => ({ input: stock.creation() }), [
      flaws.notReleased(stock),
      flaws.names('vpc', () => stock.installation.vpc('other')),
      flaws.region(),
      {
        refusal: 'NotFound',
        how: 'a reservation of another project',
        spoil: withReservation(() => stock.shared.foreign.reservation),
        told: ({ input }) => ({
          path: ['ipv4Reservations', '0'],
          missingId: flaws.listIn(input, 'ipv4Reservations')[0],
        }),
      },
      flaws.unprintable(),
      {
        refusal: 'RegionMismatch',
        how: 'a reservation of another region',
        spoil: withReservation(() => stock.shared.western.id),
        told: () => ({
          path: ['ipv4Reservations', '0'],
          ...{ expectedRegion: 'us-east-1', actualRegion: 'us-west-1' },
        }),
      },
      flaws.outsideRegion(stock),
      flaws.vpcNotOwned(stock, 'vpc'),
      flaws.exceeded(stock, 'loadbalancers'),
      flaws.exceeded(stock, 'rulespervpc'),
      flaws.tooManyBackends(65),
      {
        refusal: 'QuotaExceeded',
        how: 'more than seven reservations',
        spoil: (made) => {
          const { seven, reservation } = stock.shared
          for (const { id } of [...seven, reservation]) withReservation(() => id)(made)
          return undefined
        },
        told: () => ({
          path: ['ipv4Reservations'],
          ...{ resource: 'networking.datumapis.com/ipv4reservations', limit: 7, used: 8 },
        }),
      },
      flaws.nameTaken(() => stock.shared.loadBalancer.name),
      {
        refusal: 'IdempotencyKeyReused',
        how: 'the key made another one',
        spoil: async ({ input }) => {
          const idempotencyKey = `key-${stock.next()}`
          await accepted(stock.api, CREATE, stock.creation({ idempotencyKey }))
          input['idempotencyKey'] = idempotencyKey
          return undefined
        },
        told: () => ({ path: ['idempotencyKey'] }),
      },
      {
        refusal: 'ReservationInUse',
        how: 'a reservation that another one has',
        spoil: withReservation(() => stock.shared.bound.id),
        told: () => ({
          path: ['ipv4Reservations', '0'],
          reservationId: stock.shared.bound.id,
          loadBalancerId: stock.shared.loadBalancer.id,
        }),
      },
      flaws.exhausted(stock, 'IPV6'),
    ]),
    caseOf(
      ask,
      'updateLoadBalancer',
      scene('id', () => ({ displayName: 'changed' })),
      [
        ...general('id'),
        {
          refusal: 'ValidationFailed',
          how: 'what it says itself, and what it would come to',
          spoil: ({ input }) => {
            Object.assign(input, { displayName: 'a\u0007', healthCheck: { timeoutSeconds: 30 } })
            return undefined
          },
          told: () => ({
            path: ['displayName'],
            issues: [
              expect.objectContaining({ code: 'INVALID_TEXT', path: ['displayName'] }),
              expect.objectContaining({
                code: 'OUT_OF_RANGE',
                path: ['healthCheck', 'timeoutSeconds'],
                suggestion: '10',
              }),
            ],
          }),
        },
        flaws.nameTaken(() => stock.shared.loadBalancer.name),
        flaws.expectsAnother(1),
        gone,
      ],
    ),
    caseOf(
      ask,
      'deleteLoadBalancer',
      scene('id', () => ({})),
      [
        ...general('id'),
        flaws.expectsAnother(1),
        {
          refusal: 'DeletionProtected',
          how: 'it is protected',
          spoil: async ({ loadBalancer: { id } }) => {
            await accepted(stock.api, UPDATE, { id, deletionProtection: true })
            return undefined
          },
          told: () => ({ path: [] }),
        },
      ],
    ),
    ...[['addBackends', [nameOfFirst]] as const, ['setBackends', []] as const].map(
      ([mutation, more]) =>
        caseOf(
          ask,
          mutation,
          scene('loadBalancer', () => ({ backends: [{ address: second }] })),
          [
            ...general('loadBalancer'),
            wrongAddress,
            flaws.outsideRegion(stock),
            flaws.vpcNotOwned(stock, 'loadBalancer'),
            flaws.tooManyBackends(mutation === 'addBackends' ? 66 : 65),
            ...more,
            flaws.expectsAnother(1),
            gone,
          ],
        ),
    ),
    caseOf(
      ask,
      'updateBackends',
      scene('loadBalancer', () => ({ backends: [{ address: second, adminState: 'STANDBY' }] }), {
        backends: [{ address: one, name: 'first' }, { address: second }],
      }),
      [
        ...general('loadBalancer'),
        {
          refusal: 'NotFound',
          how: 'an address that is no backend',
          spoil: also({ address: 'fd20:1::dead' }),
          told: () => ({ path: ['backends', '1', 'address'], missingId: null }),
        },
        {
          refusal: 'ValidationFailed',
          how: 'a name that is given and taken away',
          spoil: also({ address: one, name: 'new', resetName: true }),
          told: () => ({
            path: ['backends', '1', 'resetName'],
            issues: [expect.objectContaining({ code: 'SET_AND_RESET' })],
          }),
        },
        nameOfFirst,
        flaws.expectsAnother(1),
        gone,
      ],
    ),
    caseOf(
      ask,
      'removeBackends',
      scene('loadBalancer', () => ({ addresses: [one] })),
      [
        ...general('loadBalancer'),
        flaws.invalid('addresses', ['10.1'], {
          code: 'INVALID_ADDRESS',
          path: ['addresses', '0'],
          suggestion: null,
        }),
        flaws.expectsAnother(1),
        gone,
      ],
    ),
  ]
}

/** One more reservation to bind from the beginning. */
const withReservation =
  (id: () => string) =>
  ({ input }: { input: Input }): undefined => {
    input['ipv4Reservations'] = [...flaws.listIn(input, 'ipv4Reservations'), id()]
  }

/** One more backend. */
const also =
  (backend: Input) =>
  ({ input }: { input: Input }): undefined => {
    input['backends'] = [...flaws.listIn(input, 'backends'), backend]
  }
