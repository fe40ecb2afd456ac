import type { Dialect } from '../../src/rules/wanted.ts'

/** One cluster of a fleet to be started. */
export type ClusterLayout = {
  name: string
  region: string
  servesIPv4: boolean
  dialect?: Dialect
  /** Gateway nodes; absent: two. */
  gateways?: string[]
}

/** A project with one VPC, of which every cluster of the fleet has endpoints. */
export type ProjectLayout = {
  name: string
  vpcName: string
  /** `VPC.status.vpc`: the same wherever the VPC is seen. */
  vpcId: string
  /** A /48. */
  network: string
}

/** An address of a VPC on a node of a cluster. */
export type EndpointLayout = {
  project: string
  vpcName: string
  vpcId: string
  region: string
  cluster: string
  attachment: { namespace: string; name: string }
  attachmentId: string
  node: string
  address: string
  /** As the attachment's spec has it. */
  cidr: string
}

/** Two regions of two clusters; only those in the west serve IPv4. */
export const DEMO_CLUSTERS: ClusterLayout[] = [
  { name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false },
  { name: 'us-east-1-b', region: 'us-east-1', servesIPv4: false },
  { name: 'us-west-1-a', region: 'us-west-1', servesIPv4: true },
  { name: 'us-west-1-b', region: 'us-west-1', servesIPv4: true },
]

export const DEMO_PROJECTS: ProjectLayout[] = [
  { name: 'demo', vpcName: 'demo-vpc', vpcId: '5dEmo1', network: 'fd20:1::' },
  { name: 'other', vpcName: 'other-vpc', vpcId: '5oTher1', network: 'fd20:2::' },
]

/** The gateway nodes of a cluster. */
export function gatewaysOf({ name, gateways }: ClusterLayout): string[] {
  return gateways ?? [`${name}-gateway-1`, `${name}-gateway-2`]
}

/**
 * The endpoints of a cluster: `each` of every project, with one address and one node each, so that none
 * stands in another's way. `position` makes addresses differ between clusters, from 1.
 */
export function endpointsOf(
  cluster: ClusterLayout,
  position: number,
  projects: readonly ProjectLayout[],
  each: number,
): EndpointLayout[] {
  return projects.flatMap((project, projectIndex) =>
    Array.from({ length: each }, (_, index) => {
      const number = index + 1
      const network = project.network.replace(/::$/, '')
      const address = `${network}:0:${position.toString(16)}::${number.toString(16)}`
      return {
        project: project.name,
        vpcName: project.vpcName,
        vpcId: project.vpcId,
        region: cluster.region,
        cluster: cluster.name,
        attachment: { namespace: project.name, name: `web-${number}` },
        attachmentId: `${project.vpcId.slice(1, 4)}${position}a${number}`,
        node: `${cluster.name}-worker-${projectIndex * each + number}`,
        address,
        // Interfaces come with host routes and with whole subnets; the address is the same either way.
        cidr: `${address}/${number % 2 === 1 ? 128 : 96}`,
      }
    }),
  )
}
