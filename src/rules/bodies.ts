import { bindingName, SERVING, servingLabel } from './names.ts'
import {
  type BackendsRuleSpec,
  DATA_PLANE_NAMESPACE,
  FIELD_MANAGER,
  GENERATION_ANNOTATION,
  INSTANCE_LABEL,
  LOAD_BALANCER_LABEL,
  MANAGED_BY_LABEL,
  NETWORK_RULES,
  type NetworkRule,
  type RuleProtocol,
  SERVICE_VIP_BINDINGS,
  type SelectorRuleSpec,
  type ServiceVIPBinding,
  VPC_LABEL,
} from './objects.ts'
import type { ListedBackend } from './placing.ts'
import type { Capabilities, SessionAffinity, Wanted } from './wanted.ts'

/** The field's value where a schema has `sessionAffinity`; NONE is the field's absence. */
const AFFINITIES: Record<SessionAffinity, string | undefined> = {
  NONE: undefined,
  CLIENT_IP: 'ClientIP',
  CLIENT_IP_AND_PROTOCOL: 'ClientIPAndProtocol',
}

const metaOf = (wanted: Wanted, name: string) => ({
  name,
  namespace: DATA_PLANE_NAMESPACE,
  labels: {
    [MANAGED_BY_LABEL]: FIELD_MANAGER,
    [INSTANCE_LABEL]: wanted.instance,
    [LOAD_BALANCER_LABEL]: wanted.loadBalancer,
  },
})

const protocolOf = (wanted: Wanted): RuleProtocol => (wanted.protocol === 'TCP' ? 'tcp' : 'udp')

/** The rule of one VIP, in the cluster's dialect. */
export const ruleOf = (
  wanted: Wanted,
  capabilities: Capabilities,
  name: string,
  vip: string,
  byAddress: ListedBackend[],
  byAge: ListedBackend[],
): NetworkRule => {
  const affinity = capabilities.sessionAffinity ? AFFINITIES[wanted.sessionAffinity] : undefined
  const shared = {
    vpcRef: wanted.vpcRef,
    vipAddresses: [vip],
    protocol: protocolOf(wanted),
    port: wanted.port,
    ...(affinity === undefined ? {} : { sessionAffinity: affinity }),
  }
  const spec: BackendsRuleSpec | SelectorRuleSpec =
    capabilities.dialect === 'selector'
      ? {
          ...shared,
          backendSelector: { matchLabels: { [servingLabel(wanted.loadBalancer)]: SERVING } },
          backendPort: wanted.port,
        }
      : {
          ...shared,
          vpcAttachmentRef: byAge[0]?.endpoint.attachmentRef ?? '',
          backends: byAddress.map(({ backend }) => ({
            address: backend.address,
            port: wanted.port,
          })),
        }
  return {
    apiVersion: `${NETWORK_RULES.group}/${NETWORK_RULES.version}`,
    kind: NETWORK_RULES.kind,
    metadata: {
      ...metaOf(wanted, name),
      annotations: { [GENERATION_ANNOTATION]: String(wanted.rulesGeneration) },
    },
    spec,
  }
}

/** The binding of one backend to one VIP, in the *backends* dialect. */
export const bindingOf = (
  wanted: Wanted,
  rule: string,
  vip: string,
  { backend, endpoint }: ListedBackend,
): ServiceVIPBinding => {
  const meta = metaOf(wanted, bindingName(rule, backend.address, endpoint.node))
  return {
    apiVersion: `${SERVICE_VIP_BINDINGS.group}/${SERVICE_VIP_BINDINGS.version}`,
    kind: SERVICE_VIP_BINDINGS.kind,
    metadata: { ...meta, labels: { ...meta.labels, [VPC_LABEL]: wanted.vpcRef } },
    spec: {
      targetRef: { kind: 'Node', name: endpoint.node },
      vipAddress: vip,
      port: wanted.port,
      protocol: protocolOf(wanted),
      backendAddress: backend.address,
      backendPort: wanted.port,
      egressKind: endpoint.egressKind,
    },
  }
}
