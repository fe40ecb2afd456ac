/**
 * What the store gives back: whole objects, as the graph shows them. Dates are RFC 3339 strings in
 * UTC with milliseconds, addresses canonical (RFC 5952), ids UUIDs; the graph makes Relay ids.
 */
import type {
  AddressFamily,
  BackendAdminState,
  Protocol,
  SessionAffinity,
} from '../rules/wanted.ts'
import type { Status } from './status.ts'

export type Label = { key: string; value: string }

export type LoadBalancerRecord = {
  id: string
  /** Counts committed changes of this object of any kind; orders its events. */
  version: number
  project: string
  name: string
  displayName: string | null
  description: string | null
  labels: Label[]
  vpc: { id: string; name: string; project: string | null }
  region: RegionRecord
  protocol: Protocol
  port: number
  sessionAffinity: SessionAffinity
  healthCheck: HealthCheckSettings
  deletionProtection: boolean
  generation: number
  createdAt: string
  updatedAt: string
  deletingSince: string | null
  /** IPv6 first, then reservations in the order they were bound. */
  addresses: AddressRecord[]
  /** In the order they were added. */
  backends: BackendRecord[]
  status: Status
}

export type AddressRecord = {
  address: string
  prefix: string
  family: AddressFamily
  reservation: string | null
}

export type HealthState = 'HEALTHY' | 'UNHEALTHY' | 'UNKNOWN' | 'NOT_CHECKED'

export type BackendRecord = {
  id: string
  address: string
  name: string | null
  adminState: BackendAdminState
  createdAt: string
  health: {
    state: HealthState
    reason: string
    message: string
    since: string
    lastProbedAt: string | null
    consecutiveSuccesses: number | null
    consecutiveFailures: number | null
  }
}

export type HealthCheckSettings = {
  enabled: boolean
  probe: TcpProbe | HttpProbe
  intervalSeconds: number
  timeoutSeconds: number
  rise: number
  fall: number
  minimumHealthyPercent: number
}
export type TcpProbe = { kind: 'tcp'; port: number | null }
export type HttpProbe = {
  kind: 'http'
  port: number | null
  scheme: 'HTTP' | 'HTTPS'
  host: string | null
  path: string
  expectedStatuses: { from: number; to: number }[]
  verifyCertificate: boolean
}

export type RegionRecord = {
  id: string
  code: string
  displayName: string
  cityCode: string
  addressFamilies: AddressFamily[]
  sessionAffinities: SessionAffinity[]
  acceptsLoadBalancers: boolean
}

export type VpcRecord = { id: string; name: string; project: string | null }
export type EndpointRecord = {
  address: string
  region: RegionRecord
  name: string
  /** The cluster's name. */
  cluster: string
  node: string
}

export type IPv4ReservationState = 'RESERVED' | 'BINDING' | 'BOUND' | 'UNBINDING'
export type IPv4BindingState = 'WAITING' | 'BINDING' | 'BOUND' | 'UNBINDING'

export type ReservationRecord = {
  id: string
  version: number
  project: string
  name: string
  displayName: string | null
  description: string | null
  labels: Label[]
  region: RegionRecord
  address: string
  state: IPv4ReservationState
  bindings: {
    loadBalancer: string
    state: IPv4BindingState
    effective: StatusCondition
  }[]
  deletionProtection: boolean
  generation: number
  createdAt: string
  updatedAt: string
}

export type StatusCondition = {
  type: string
  status: 'TRUE' | 'FALSE' | 'UNKNOWN'
  reason: string
  message: string
  lastTransitionTime: string
  observedGeneration: number
}

export type ActorKind = 'USER' | 'SERVICE_ACCOUNT' | 'OPERATOR' | 'SYSTEM'
export type Actor = { kind: ActorKind; name: string }

export type EventRecord = {
  id: string
  cursor: string
  at: string
  reason: string
  message: string
  actor: Actor
  project: string
  objectKind: 'LoadBalancer' | 'IPv4Reservation'
  objectId: string
  version: number
  generation: number
  changes: { path: string[]; before: string | null; after: string | null }[]
}

/** One page of ids in order, as the lists answer it. */
export type Page<T> = {
  items: { cursor: string; item: T }[]
  hasNextPage: boolean
  hasPreviousPage: boolean
}
