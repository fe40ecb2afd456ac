/** What the objects of a cluster say of VPCs and endpoints. */
import type { SeenEndpoint } from '../domain/inventory.ts'
import { addressOfCidr } from '../ipam/address.ts'
import type { VpcAttachment } from '../rules/objects.ts'

/** The project that a label's value names; undefined: nobody's. */
export function projectOf(label: string | undefined): string | undefined {
  return /^cluster-(.+)$/.exec(label ?? '')?.[1]
}

/** The addresses of an attachment that is complete. What isn't an address is left out. */
export function endpointsOf(attachment: VpcAttachment | undefined): SeenEndpoint[] {
  const { vpc, vpcAttachment, node } = attachment?.status ?? {}
  const { uid, namespace, name } = attachment?.metadata ?? {}
  if (!attachment || !vpc || !vpcAttachment || !node || !uid || !namespace || !name) return []
  const { addresses = [], mode } = attachment.spec?.interface ?? {}
  return addresses.flatMap((cidr) => {
    const parsed = addressOfCidr(cidr)
    if ('code' in parsed) return []
    return {
      attachmentUid: uid,
      attachmentNamespace: namespace,
      attachmentName: name,
      attachmentRef: vpcAttachment,
      vpcRef: vpc,
      address: parsed.address,
      node,
      egressKind: mode === 'Hypervisor' || mode === 'HypervisorDeclared' ? 'tap' : 'veth',
    }
  })
}

/** Whether an attachment says all that its endpoints need. */
export function isUp(attachment: VpcAttachment | undefined): boolean {
  const { vpc, vpcAttachment, node } = attachment?.status ?? {}
  const addresses = attachment?.spec?.interface?.addresses
  return Boolean(vpc && vpcAttachment && node && addresses && addresses.length > 0)
}

/** Of those that are up. */
export function uidsOfUp(attachments: Iterable<VpcAttachment>): string[] {
  return [...attachments].filter(isUp).flatMap(({ metadata }) => metadata.uid ?? [])
}
