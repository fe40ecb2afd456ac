import { canonical, canonicalPrefix, hostPrefix } from './addresses.ts'
import type { AttachmentLabel } from './desired.ts'
import { namePrefix } from './names.ts'
import {
  ADVERTISEMENT_RULE_LABEL,
  type BGPAdvertisement,
  GENERATION_ANNOTATION,
  type NetworkGateway,
  type NetworkRule,
  type ObjectCondition,
  type ServiceVIPBinding,
} from './objects.ts'

/** What a cluster holds of one load balancer now. */
export type Observed = {
  /** Those with our instance label and the load balancer's id. */
  rules: NetworkRule[]
  /** Likewise, and any other that names one of the VIPs (the data plane writes some itself). */
  bindings: ServiceVIPBinding[]
  /** Those labelled with one of the rules' names, and those with one of the VIPs' prefixes. */
  advertisements: BGPAdvertisement[]
  /** All of the cluster. */
  gateways: NetworkGateway[]
  /** The attachments that carry the load balancer's serving label; absent: none. */
  labelled?: AttachmentLabel[]
  /** Bindings of other load balancers that stand where one of this one should; absent: none. */
  rivals?: ServiceVIPBinding[]
  /** Names of bindings whose backend is on their node no more: the data plane can't let go of them. */
  stranded?: string[]
}

/**
 * Whether nothing in a cluster serves a VIP any more: its rule is gone, no advertisement carries
 * the rule's label or exactly the VIP's prefix, no binding names it. Only then may its hold close.
 */
export const gone = (vip: string, rule: string, observed: Observed): boolean =>
  !observed.rules.some(
    ({ metadata, spec }) => metadata.name === rule || vipsOf({ spec }).includes(canonical(vip)),
  ) &&
  !observed.advertisements.some(
    (advertisement) => labelledFor(advertisement, rule) || announces(advertisement, vip),
  ) &&
  !observed.bindings.some(({ spec }) => canonical(spec.vipAddress) === canonical(vip))

/** The VIPs of a rule in one spelling. A rule written by hand may lack its whole spec. */
export const vipsOf = (rule: { spec?: { vipAddresses?: string[] } }): string[] =>
  (rule.spec?.vipAddresses ?? []).map(canonical)

/** Whether an advertisement is labelled as one of a rule's. */
export const labelledFor = (advertisement: BGPAdvertisement, rule: string): boolean =>
  advertisement.metadata.labels?.[ADVERTISEMENT_RULE_LABEL] === rule

/** Whether an advertisement announces exactly a VIP, perhaps beside other prefixes. */
export const announces = (advertisement: BGPAdvertisement, vip: string): boolean =>
  (advertisement.spec.prefixes ?? []).some((prefix) => canonicalPrefix(prefix) === hostPrefix(vip))

/** Whether an advertisement announces exactly a VIP and nothing else. */
export const announcesOnly = (advertisement: BGPAdvertisement, vip: string): boolean =>
  advertisement.spec.prefixes?.length === 1 && announces(advertisement, vip)

/** Every VIP that the cluster still shows a trace of for this load balancer, in one spelling. */
export const tracedVips = (loadBalancer: string, observed: Observed): string[] => {
  const ours = namePrefix(loadBalancer)
  return [
    ...new Set([
      ...observed.rules.flatMap(vipsOf),
      ...observed.bindings
        .filter(({ metadata }) => metadata.name.startsWith(ours))
        .map(({ spec }) => canonical(spec.vipAddress)),
      ...observed.advertisements
        .filter(({ metadata }) => metadata.labels?.[ADVERTISEMENT_RULE_LABEL]?.startsWith(ours))
        .flatMap(({ spec }) => spec.prefixes ?? [])
        .map((prefix) => canonicalPrefix(prefix).split('/', 1)[0] ?? prefix),
    ]),
  ].toSorted()
}

/** A rule carries a newer generation than the store knows: the store was restored from a backup. */
export const isAhead = (rulesGeneration: number, observed: Observed): boolean =>
  newestGeneration(observed) > rulesGeneration

/** The newest generation that a rule carries; 0: none does. */
export const newestGeneration = ({ rules }: Observed): number =>
  Math.max(0, ...rules.map(({ metadata }) => generationOn(metadata.annotations)))

/** What isn't a number says nothing. */
const generationOn = (annotations: Record<string, string> | undefined): number =>
  Number(annotations?.[GENERATION_ANNOTATION] ?? 0) || 0

/** What a condition of the data plane says, in its own words. */
export const said = ({ reason, message }: ObjectCondition): string =>
  message === '' ? reason : `${reason}: ${message}`

/** The node that a gateway stands on; by convention it is named as that. */
export const nodeOf = ({ spec, metadata }: NetworkGateway): string =>
  spec?.targetRef.name ?? metadata.name

/** A condition by its type, whatever generation it is about. */
export const conditionOf = (
  object: { status?: { conditions?: ObjectCondition[] } },
  type: string,
): ObjectCondition | undefined =>
  object.status?.conditions?.find((condition) => condition.type === type)

/** A condition by its type, if it is about the object's present generation. */
export const currentCondition = (
  object: {
    metadata: { generation?: number }
    status?: { observedGeneration?: number; conditions?: ObjectCondition[] }
  },
  type: string,
): ObjectCondition | undefined => {
  const condition = conditionOf(object, type)
  const about = condition?.observedGeneration ?? object.status?.observedGeneration
  return about === object.metadata.generation ? condition : undefined
}
