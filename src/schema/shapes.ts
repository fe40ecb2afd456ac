/** What the graph's types stand on, where that isn't a record as the store gives it. */
import type { ClusterRecord } from '../domain/operators/clusterRecord.ts'
import type { PoolRecord } from '../domain/operators/poolRecord.ts'
import type {
  AddressRecord,
  BackendRecord,
  EventRecord,
  LoadBalancerRecord,
  RegionRecord,
  ReservationRecord,
} from '../domain/records.ts'
import type { NodeType } from './ids.ts'

/** A backend is never read without its load balancer. */
export type BackendShape = { backend: BackendRecord; loadBalancer: LoadBalancerRecord }
export type VirtualAddressShape = { address: AddressRecord; loadBalancer: LoadBalancerRecord }
/** The project is the one that looks at it: a VPC may have lost its own since. */
export type VpcShape = { id: string; name: string; project: string }

export type NodeShape =
  | LoadBalancerRecord
  | BackendShape
  | ReservationRecord
  | VpcShape
  | RegionRecord
  | EventRecord
  | ClusterRecord
  | PoolRecord

/** Which type of the graph an object is. */
export function typeOfNode(shape: NodeShape): NodeType {
  if ('backends' in shape) return 'LoadBalancer'
  if ('backend' in shape) return 'Backend'
  if ('bindings' in shape) return 'IPv4Reservation'
  if ('cityCode' in shape) return 'Region'
  if ('objectKind' in shape) return 'ChangeEvent'
  if ('context' in shape) return 'Cluster'
  if ('coolDownSeconds' in shape) return 'AddressPool'
  return 'Vpc'
}
