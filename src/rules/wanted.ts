/**
 * What the store wants of one load balancer in one cluster, read at one instant: the input from
 * which the desired objects there are computed.
 */

export type Protocol = 'TCP' | 'UDP'
export type AddressFamily = 'IPV4' | 'IPV6'
export type SessionAffinity = 'NONE' | 'CLIENT_IP' | 'CLIENT_IP_AND_PROTOCOL'
export type BackendAdminState = 'ENABLED' | 'STANDBY' | 'DISABLED'

export type Wanted = {
  /** The load balancer's id, a UUID. */
  loadBalancer: string
  /** The store's instance id: the label by which we know our own objects. */
  instance: string
  /** The base62 id of the VPC (`VPC.status.vpc`). */
  vpcRef: string
  protocol: Protocol
  port: number
  sessionAffinity: SessionAffinity
  /** The generation in the store when this was read. */
  generation: number
  /** The last generation that changed rules; written on every rule. */
  rulesGeneration: number
  /**
   * The cluster was found to carry a newer generation than the store: no number of the store's says that its
   * own is newer, until an operator does.
   */
  storeBehind?: boolean
  /** The placement's asked number when this was read; the report is about it. */
  asked: number
  /** false: nothing of the load balancer should be in this cluster any more. */
  placed: boolean
  /** Not placed here any more, but what is here stays until it is in effect where it goes. */
  awaitsSuccessor?: boolean
  vips: WantedVip[]
  backends: WantedBackend[]
}

export type WantedVip = {
  address: string
  family: AddressFamily
  /** Another load balancer whose hold on this address is still open in the region: no rule until it is closed. */
  heldBy: string | null
  /** The gateways have no row left for it, and it has none yet. */
  noRoom?: boolean
}

export type WantedBackend = {
  id: string
  address: string
  adminState: BackendAdminState
  /** Left out because it is unhealthy; false where failing open. */
  unhealthy: boolean
  /** Where it lives in this cluster; null: not known here. */
  endpoint: Endpoint | null
  /**
   * An older backend on the same node of the same VPC, protocol and port holds the data plane's
   * one place there (also another load balancer's); only the *backends* dialect cares.
   */
  nodeTaken: boolean
  /**
   * A binding of another load balancer that still stands in its place: as long as it does, nothing
   * else is bound there; only the *backends* dialect cares.
   */
  nodeHeldBy?: string
  /** The cluster is cordoned, and this backend came after that: it is left out. */
  cordoned?: boolean
}

export type Endpoint = {
  /** The VPCAttachment object. */
  attachment: { namespace: string; name: string; uid: string }
  /** `status.vpcAttachment`. */
  attachmentRef: string
  node: string
  egressKind: 'veth' | 'tap'
  /** The attachment's other IPv6 addresses: in the *selector* dialect it serves with all or none. */
  otherAddresses?: string[]
}

export type Dialect = 'backends' | 'selector'

/** What a cluster can do, seen or said by an operator. */
export type Capabilities = {
  /** undefined: the data plane's schema is not there. */
  dialect: Dialect | undefined
  /** The rule's schema has a field for session affinity. */
  sessionAffinity: boolean
  servesIPv4: boolean
}
