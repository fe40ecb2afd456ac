import { ApiFailure } from '../../src/clusters/cluster.ts'
import {
  DATA_PLANE_NAMESPACE,
  type KubeObject,
  NAMESPACES,
  PROJECT_LABEL,
  type Resource,
  VPC_ATTACHMENTS,
  VPCS,
} from '../../src/rules/objects.ts'
import type { Draft, Writer } from '../dataplane/writer.ts'
import type { EndpointLayout, ProjectLayout } from './layout.ts'

/** Puts into a cluster what is there before any load balancer; what is there already stays as it is. */
export async function seedCluster(
  writer: Writer,
  projects: readonly ProjectLayout[],
  endpoints: readonly EndpointLayout[],
): Promise<void> {
  await Promise.all([
    put(writer, NAMESPACES, { metadata: { name: DATA_PLANE_NAMESPACE } }),
    ...projects.map(({ name }) =>
      put(writer, NAMESPACES, {
        metadata: { name, labels: { [PROJECT_LABEL]: `cluster-${name}` } },
      }),
    ),
  ])
  await Promise.all(
    projects.map(({ name, vpcName, vpcId, network }) =>
      put(
        writer,
        VPCS,
        { metadata: { name: vpcName, namespace: name }, spec: { networks: [`${network}/48`] } },
        { vpc: vpcId, observedGeneration: 1, conditions: [ready('Ready')] },
      ),
    ),
  )
  await Promise.all(endpoints.map((endpoint) => seedAttachment(writer, endpoint)))
}

/** One attachment that is up: it has an address, an id and a node. */
export function seedAttachment(writer: Writer, endpoint: EndpointLayout): Promise<void> {
  const { attachment, attachmentId, vpcName, vpcId, node, cidr } = endpoint
  return put(
    writer,
    VPC_ATTACHMENTS,
    {
      metadata: attachment,
      spec: { vpc: { name: vpcName }, interface: { name: 'eth0', addresses: [cidr] } },
    },
    {
      vpc: vpcId,
      vpcAttachment: attachmentId,
      node,
      // 46 characters, as the field wants them.
      containerID: `cri-${'0'.repeat(42)}`,
      podName: attachment.name,
      podSubnet: cidr,
      hostInterface: `G${attachmentId}H`,
      vrfInterface: `G${vpcId}V`,
      observedGeneration: 1,
      conditions: [ready('Ready'), ready('Programmed')],
    },
  )
}

/** Makes an object with its status, which is put in also where an earlier start was cut off before. */
async function put(
  writer: Writer,
  resource: Resource,
  draft: Draft,
  status?: object,
): Promise<void> {
  const { name, namespace } = draft.metadata
  try {
    await writer.create<KubeObject>(resource, draft)
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.reason !== 'AlreadyExists') throw error
    // An empty patch changes nothing and answers what is there.
    const known = await writer.patch<KubeObject>(resource, { name, namespace }, {})
    if ('status' in known) return
  }
  if (status !== undefined) await writer.patchStatus(resource, { name, namespace }, { status })
}

function ready(type: string): object {
  return {
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime: new Date().toISOString().replace(/\.\d+Z$/, 'Z'),
    observedGeneration: 1,
  }
}
