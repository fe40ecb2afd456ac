import {
  BackendsOutsideRegion,
  IdempotencyKeyReused,
  NameTaken,
  NotFound,
  NotReleased,
  QuotaExceeded,
  type Refusal,
  Refused,
  RegionMismatch,
  ReservationInUse,
} from '../refusals.ts'
import type { Scope } from '../scope.ts'
import type { CreateLoadBalancerInput } from './inputs.ts'
import type { Made } from './made.ts'

/** How many reservations a load balancer can have: a rule holds 8 VIPs, one is its IPv6 address. */
export const MOST_RESERVATIONS = 7

/** What `create_load_balancer` answers. */
export type Answer = Made | { existing: string } | CreateRefused
/** With nothing changed. */
export type CreateRefused = { refused: string } & RefusalData
type RefusalData = {
  id?: string
  place?: number
  region?: string
  holder?: string
  addresses?: string[]
  resource?: string
  limit?: number
  used?: number
}

/** Refuses more IPv4 reservations than a load balancer can have. */
export function tooManyReservations(count: number): QuotaExceeded {
  return new QuotaExceeded({
    message: `A load balancer has at most ${MOST_RESERVATIONS} IPv4 reservations; this would be ${count}.`,
    path: ['ipv4Reservations'],
    hint: 'Bind fewer, or use a second load balancer.',
    resource: 'networking.datumapis.com/ipv4reservations',
    limit: MOST_RESERVATIONS,
    used: count,
  })
}

/** Another live load balancer of the region has the name. */
export const nameTaken = (input: CreateLoadBalancerInput): NameTaken =>
  new NameTaken({
    message: `Region "${input.region}" has a load balancer named "${String(input.name)}" already.`,
    path: ['name'],
    hint: 'Choose another name, or read the one that is there by loadBalancerByName.',
    takenName: String(input.name),
  })

/** What `create_load_balancer` refused, as the refusal that the caller gets. */
export function refusalOf(
  answer: CreateRefused,
  scope: Scope,
  input: CreateLoadBalancerInput,
): Refusal {
  const reservationPath = ['ipv4Reservations', String(answer.place ?? 0)]
  const reservation = input.ipv4Reservations?.[answer.place ?? 0] ?? null
  switch (answer.refused) {
    case 'NOT_RELEASED':
      return new NotReleased(scope.project)
    case 'IDEMPOTENCY_KEY_REUSED':
      return new IdempotencyKeyReused()
    case 'VPC_NOT_FOUND':
      return new NotFound({
        message: 'There is no such VPC.',
        path: ['vpc'],
        hint: 'List the VPCs of your project by the query vpcs.',
        missingId: input.vpc,
      })
    case 'VPC_NOT_OWNED':
      return vpcNotOwned(['vpc'])
    case 'REGION_NOT_FOUND':
      return new NotFound({
        message: `There is no region "${input.region}".`,
        path: ['region'],
        hint: 'List the regions by the query regions.',
        missingId: null,
      })
    case 'RESERVATION_NOT_FOUND':
      return new NotFound({
        message: 'There is no such IPv4 reservation.',
        path: reservationPath,
        hint: 'List the reservations of your project by the query ipv4Reservations.',
        missingId: reservation,
      })
    case 'REGION_MISMATCH':
      return new RegionMismatch({
        message: `The reservation is in region "${answer.region}", the load balancer in "${input.region}".`,
        path: reservationPath,
        hint: 'Reserve an address in the region of the load balancer.',
        expectedRegion: input.region,
        actualRegion: answer.region ?? null,
      })
    case 'BACKENDS_OUTSIDE_REGION':
      return new BackendsOutsideRegion(answer.addresses ?? [], input.region)
    case 'QUOTA_EXCEEDED':
      return quotaExceeded(answer)
    case 'RESERVATION_IN_USE':
      return new ReservationInUse({
        message: 'The reservation is bound to another load balancer.',
        path: reservationPath,
        hint: 'Unbind it there first.',
        reservationId: answer.id ?? String(reservation),
        loadBalancerId: answer.holder ?? null,
      })
    case 'NAME_TAKEN':
      return nameTaken(input)
    default:
      throw new Error(`create_load_balancer refused with ${answer.refused}`)
  }
}

/** The VPC is the project's, but its clusters no longer say so. */
export const vpcNotOwned = (path: string[]): Refused =>
  new Refused('VPC_NOT_OWNED', {
    message: 'It is not certain any more that this VPC belongs to your project.',
    path,
    hint: 'What runs goes on running. Ask the platform why the VPC lost its owner.',
    retryable: true,
  })

/** A limit of the project was reached. */
export function quotaExceeded(answer: {
  resource?: string
  limit?: number
  used?: number
}): QuotaExceeded {
  const resource = answer.resource ?? ''
  const what: Record<string, string> = {
    'networking.datumapis.com/loadbalancers': 'load balancers in this region',
    'networking.datumapis.com/ipv4reservations': 'IPv4 reservations in this region',
    'networking.datumapis.com/rulespervpc': 'served addresses of this VPC in this region',
  }
  return new QuotaExceeded({
    message: `The project has ${answer.used} of at most ${answer.limit} ${what[resource] ?? resource}.`,
    hint: 'Delete what is not needed, or ask the platform for a higher limit.',
    resource,
    limit: answer.limit ?? 0,
    used: answer.used ?? 0,
  })
}
