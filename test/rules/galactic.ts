import { hostPrefix, isIPv4 } from '../../src/rules/addresses.ts'
import { type Desired, desired } from '../../src/rules/desired.ts'
import { judge } from '../../src/rules/evidence.ts'
import { advertisementName } from '../../src/rules/names.ts'
import type {
  BGPAdvertisement,
  ConditionStatus,
  NetworkGateway,
  NetworkRule,
  ObjectCondition,
  ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import type { Observed } from '../../src/rules/observed.ts'
import type { PlacementReport } from '../../src/rules/report.ts'
import type { Capabilities, Wanted } from '../../src/rules/wanted.ts'

export const NOW = '2026-01-01T00:10:00.000Z'

/** A cluster in which the data plane has done all that it should. */
export const inEffect = (wish: Desired, gateways: string[] = ['gw-1', 'gw-2']): Observed =>
  structuredClone({
    rules: wish.rules.map((rule) => accepted(rule, gateways, wish)),
    bindings: wish.bindings.map(bound),
    advertisements: wish.rules.flatMap((rule) => gateways.map((node) => advertised(rule, node))),
    gateways: gateways.map((node) => gateway(node)),
    labelled: wish.labels,
  })

export const condition = (
  type: string,
  status: ConditionStatus,
  reason: string,
  observedGeneration: number,
): ObjectCondition => ({
  type,
  status,
  reason,
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
  observedGeneration,
})

/** The rule was edited twice since `Accepted` was set, which never tells. */
const accepted = (rule: NetworkRule, gateways: string[], wish: Desired): NetworkRule => {
  const nodes = Object.values(wish.backends).flatMap(({ listed, node }) =>
    listed && node !== undefined ? [node] : [],
  )
  return {
    ...rule,
    metadata: { ...rule.metadata, generation: 3 },
    status: {
      conditions: [
        condition('Accepted', 'True', 'GatewayNodesRegistered', 1),
        ...(wish.dialect === 'selector'
          ? [
              ...gateways.map((node) => condition(`${node}/Programmed`, 'True', 'Programmed', 3)),
              ...nodes.map((node) => condition(`${node}/BackendsBound`, 'True', 'Bound', 3)),
            ]
          : []),
      ],
    },
  }
}

const bound = (binding: ServiceVIPBinding): ServiceVIPBinding => ({
  ...binding,
  metadata: { ...binding.metadata, generation: 1 },
  status: { observedGeneration: 1, conditions: [condition('Bound', 'True', 'Bound', 1)] },
})

const advertised = (rule: NetworkRule, node: string): BGPAdvertisement => {
  const vip = rule.spec.vipAddresses[0] ?? ''
  return {
    apiVersion: 'network.datumapis.com/v1alpha1',
    kind: 'BGPAdvertisement',
    metadata: {
      name: advertisementName(rule.metadata.name, node, isIPv4(vip)),
      generation: 1,
      labels: { 'galactic.datum.net/network-rule': rule.metadata.name },
    },
    spec: { routerRef: { name: node }, prefixes: [hostPrefix(vip)] },
    status: { conditions: [condition('Advertised', 'True', 'Advertised', 1)] },
  }
}

export const gateway = (node: string, ready?: ObjectCondition): NetworkGateway => ({
  apiVersion: 'network.datumapis.com/v1alpha1',
  kind: 'NetworkGateway',
  metadata: { name: node },
  spec: { targetRef: { kind: 'Node', name: node } },
  status: { conditions: [ready ?? condition('Ready', 'True', 'EngineHealthy', 1)] },
})

/** A gateway that says why it isn't ready. */
export const troubled = (node: string, reason: string): NetworkGateway =>
  gateway(node, condition('Ready', 'False', reason, 1))

/** The one that a test speaks of. */
export const first = <T>(items: T[] | undefined): T => {
  const item = items?.[0]
  if (item === undefined) throw new Error('there is none')
  return item
}

/** What is reported of a cluster where all is done, but for the change. */
export const report = (
  want: Wanted,
  can: Capabilities,
  change: (seen: Observed) => Observed | undefined = () => undefined,
): PlacementReport => {
  const wish = desired(want, can)
  const seen = inEffect(wish)
  return judge(want, wish, change(seen) ?? seen, NOW)
}

/** Puts conditions in the place of those of the same type. */
export const replaced = (
  object: { status?: { conditions?: ObjectCondition[] } },
  ...conditions: ObjectCondition[]
): void => {
  const types = conditions.map(({ type }) => type)
  const others = object.status?.conditions?.filter(({ type }) => !types.includes(type)) ?? []
  object.status = { ...object.status, conditions: [...others, ...conditions] }
}
