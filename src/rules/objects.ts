/**
 * The data plane's objects as we write and read them, and the marks by which we know our own.
 * Only the fields we use are typed; others pass through untouched.
 */

export type ConditionStatus = 'True' | 'False' | 'Unknown'

/** A condition as Kubernetes objects carry it. */
export type ObjectCondition = {
  type: string
  status: ConditionStatus
  reason: string
  message: string
  lastTransitionTime: string
  observedGeneration?: number
}

export type ObjectMeta = {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  generation?: number
  creationTimestamp?: string
  deletionTimestamp?: string
  labels?: Record<string, string>
  annotations?: Record<string, string>
  finalizers?: string[]
}

/** What every object of an API server has. */
export type KubeObject = { apiVersion: string; kind: string; metadata: ObjectMeta }

type Conditioned = { observedGeneration?: number; conditions?: ObjectCondition[] }

/** One kind of object: where its API lives and what it is called there. */
export type Resource = {
  group: string
  version: string
  plural: string
  kind: string
}

const network = { group: 'network.datumapis.com', version: 'v1alpha1' }
const cloud = { group: 'cloud.datumapis.com', version: 'v1alpha1' }

export const NETWORK_RULES: Resource = { ...network, plural: 'networkrules', kind: 'NetworkRule' }
export const NETWORK_GATEWAYS: Resource = {
  ...network,
  plural: 'networkgateways',
  kind: 'NetworkGateway',
}
export const BGP_ADVERTISEMENTS: Resource = {
  ...network,
  plural: 'bgpadvertisements',
  kind: 'BGPAdvertisement',
}
export const SERVICE_VIP_BINDINGS: Resource = {
  ...network,
  plural: 'servicevipbindings',
  kind: 'ServiceVIPBinding',
}
export const VPCS: Resource = { ...cloud, plural: 'vpcs', kind: 'VPC' }
export const VPC_ATTACHMENTS: Resource = {
  ...cloud,
  plural: 'vpcattachments',
  kind: 'VPCAttachment',
}
export const NAMESPACES: Resource = {
  group: '',
  version: 'v1',
  plural: 'namespaces',
  kind: 'Namespace',
}

/** Where the data plane keeps its objects, those of all tenants together. */
export const DATA_PLANE_NAMESPACE = 'galactic-system'
/** Under this field manager our server-side applies own their fields. */
export const FIELD_MANAGER = 'network-load-balancers'
export const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by'
/** Which installation of ours wrote the object: the store's instance id. */
export const INSTANCE_LABEL = 'lb.networking.datumapis.com/instance'
/** The id of the load balancer an object serves. */
export const LOAD_BALANCER_LABEL = 'lb.networking.datumapis.com/load-balancer'
/** On a binding: the VPC that it is about (`status.vpc`), which its spec doesn't say. */
export const VPC_LABEL = 'lb.networking.datumapis.com/vpc'
/** The last generation of the load balancer that changed its rules. */
export const GENERATION_ANNOTATION = 'lb.networking.datumapis.com/generation'
/** The data plane's own tie between an advertisement and its rule. */
export const ADVERTISEMENT_RULE_LABEL = 'galactic.datum.net/network-rule'
/** On a VPC, or else on its namespace: `cluster-<project>`. */
export const PROJECT_LABEL = 'meta.datumapis.com/upstream-cluster-name'

export type RuleProtocol = 'tcp' | 'udp'

/** The fields both dialects of a rule share. */
type RuleSpec = {
  vpcRef: string
  vipAddresses: string[]
  protocol: RuleProtocol
  port: number
  sessionAffinity?: string
}
/** The *backends* dialect: an explicit list. */
export type BackendsRuleSpec = RuleSpec & {
  vpcAttachmentRef: string
  backends: { address: string; port: number }[]
}
/** The *selector* dialect: labels on attachments. */
export type SelectorRuleSpec = RuleSpec & {
  backendSelector: { matchLabels: Record<string, string> }
  backendPort: number
}
export type NetworkRule = KubeObject & {
  spec: BackendsRuleSpec | SelectorRuleSpec
  status?: Conditioned
}

export type NetworkGateway = KubeObject & {
  spec?: { targetRef: { kind: string; name: string } }
  status?: Conditioned
}

export type BGPAdvertisement = KubeObject & {
  spec: { routerRef: { name: string }; prefixes?: string[] }
  status?: Conditioned & { advertisedPrefixes?: number }
}

export type ServiceVIPBinding = KubeObject & {
  spec: {
    targetRef: { kind: string; name: string }
    vipAddress: string
    port: number
    protocol: RuleProtocol
    backendAddress?: string
    backendPort?: number
    egressKind: 'veth' | 'tap'
  }
  status?: Conditioned
}

export type Vpc = KubeObject & { spec: { networks: string[] }; status?: { vpc?: string } }

export type VpcAttachment = KubeObject & {
  spec: {
    vpc: { name: string }
    interface: {
      name?: string
      addresses?: string[]
      mode?: 'Netns' | 'Hypervisor' | 'HypervisorDeclared'
    }
  }
  status?: { vpc?: string; vpcAttachment?: string; node?: string }
}
