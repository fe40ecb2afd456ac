import { canonical } from './addresses.ts'
import {
  agrees,
  carriesMarks,
  isAsWanted,
  isPruned,
  type RuleMend,
  surplusOf,
} from './comparison.ts'
import type { AttachmentLabel, Desired } from './desired.ts'
import { isBindingName, namePrefix, SERVING, servingLabel } from './names.ts'
import {
  FIELD_MANAGER,
  INSTANCE_LABEL,
  type KubeObject,
  LOAD_BALANCER_LABEL,
  MANAGED_BY_LABEL,
  NETWORK_RULES,
  type NetworkRule,
  type Resource,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
  VPC_ATTACHMENTS,
} from './objects.ts'
import { isAhead, type Observed, vipsOf } from './observed.ts'

/** One call to the cluster. */
export type Step =
  | { act: 'apply'; resource: Resource; object: NetworkRule | ServiceVIPBinding }
  | { act: 'remove'; resource: Resource; where: { name: string; namespace?: string; uid?: string } }
  /** A JSON merge patch, for what an apply can't take away from other field managers. */
  | {
      act: 'merge'
      resource: Resource
      where: { name: string; namespace?: string }
      patch: Patch
    }

/** null takes a field away. */
export type Patch = {
  metadata?: { uid: string; labels: Record<string, string | null> }
  spec?: RuleMend
}

export type Steps = {
  /** To be done now, in this order. Safe to do any number of times. */
  now: Step[]
  /** Names of what must be gone before the rest can be done; a change of theirs is worth a look. */
  waitingFor: string[]
}

/**
 * What to do now so that a cluster comes closer to what is desired there. Nothing is remembered
 * between calls: the same pair always gives the same steps, and none once all is as desired.
 */
export const steps = (desired: Desired, observed: Observed): Steps => {
  if (desired.blocked !== null || isAhead(desired.rulesGeneration, observed))
    return { now: [], waitingFor: [] }
  const bindings = bindingSteps(desired, observed)
  const rules = ruleSteps(desired, observed)
  const labels = labelSteps(desired, observed)
  return {
    // Labels come before a rule that selects by them, and go after the rule that did.
    now: [
      ...labels.add,
      ...bindings.remove,
      ...rules.remove,
      ...rules.apply,
      ...bindings.apply,
      ...labels.drop,
    ],
    waitingFor: [...bindings.waitingFor, ...rules.waitingFor, ...desired.awaited],
  }
}

const bindingSteps = (desired: Desired, observed: Observed) => {
  const wanted = new Map(desired.bindings.map((binding) => [binding.metadata.name, binding]))
  const present = observed.bindings.filter((binding) => isOurs(binding, desired))
  const unwanted = present.filter((binding) => {
    const wish = wanted.get(binding.metadata.name)
    return !wish || isDeleting(binding) || !agrees(wish, binding)
  })
  const relieved = unwanted.filter((binding) => !stillNeeded(binding, desired, observed))
  // The data plane keeps one row per node, so the old binding there must be gone before the next.
  const busyNodes = new Set(unwanted.map(({ spec }) => spec.targetRef.name))
  const byName = new Map(present.map((binding) => [binding.metadata.name, binding]))
  return {
    remove: relieved.filter((binding) => !isDeleting(binding)).map(removal(SERVICE_VIP_BINDINGS)),
    apply: desired.bindings
      .filter((wish) => {
        if (busyNodes.has(wish.spec.targetRef.name)) return false
        const binding = byName.get(wish.metadata.name)
        return !binding || !carriesMarks(wish, binding) || isPruned(wish, binding)
      })
      .map(application(SERVICE_VIP_BINDINGS)),
    waitingFor: unwanted.map(({ metadata }) => metadata.name),
  }
}

const ruleSteps = (desired: Desired, observed: Observed) => {
  const wanted = new Set(desired.rules.map(({ metadata }) => metadata.name))
  const byName = new Map(observed.rules.map((rule) => [rule.metadata.name, rule]))
  const unwanted = observed.rules.filter(({ metadata }) => !wanted.has(metadata.name))
  const waitedFor = observed.rules.filter(
    (rule) => isDeleting(rule) || !wanted.has(rule.metadata.name),
  )
  return {
    remove: unwanted
      .filter((rule) => !isDeleting(rule) && !hasBindings(rule, desired, observed))
      .map(removal(NETWORK_RULES)),
    apply: desired.rules.flatMap((wish): Step[] => {
      const rule = byName.get(wish.metadata.name)
      if (!rule) return [application(NETWORK_RULES)(wish)]
      return isDeleting(rule) ? [] : repairs(wish, rule)
    }),
    waitingFor: waitedFor.map(({ metadata }) => metadata.name),
  }
}

/** The steps that make a rule which is there as it should be. */
const repairs = (wish: NetworkRule, rule: NetworkRule): Step[] => {
  if (isAsWanted(wish, rule) && carriesMarks(wish, rule)) return []
  const now = [application(NETWORK_RULES)(wish)]
  const surplus = surplusOf(wish, rule)
  if (surplus === undefined) return now
  const { name, namespace } = wish.metadata
  const where = namespace === undefined ? { name } : { name, namespace }
  return [...now, { act: 'merge', resource: NETWORK_RULES, where, patch: { spec: surplus } }]
}

const labelSteps = (desired: Desired, observed: Observed) => {
  const label = servingLabel(desired.loadBalancer)
  const key = ({ namespace, name, uid }: AttachmentLabel) => `${namespace}/${name}/${uid}`
  const wanted = new Set(desired.labels.map(key))
  const present = new Set((observed.labelled ?? []).map(key))
  // The uid makes the patch of another object of the same name a conflict.
  const patch = ({ namespace, name, uid }: AttachmentLabel, value: string | null): Step => ({
    act: 'merge',
    resource: VPC_ATTACHMENTS,
    where: { name, namespace },
    patch: { metadata: { uid, labels: { [label]: value } } },
  })
  return {
    add: desired.labels
      .filter((each) => !present.has(key(each)))
      .map((each) => patch(each, SERVING)),
    drop: (observed.labelled ?? [])
      .filter((each) => !wanted.has(key(each)))
      .map((each) => patch(each, null)),
  }
}

/**
 * Ours by the labels, which another installation on the same cluster never shares. One that lost
 * its labels is known by its name, unless it says that somebody else manages it.
 */
const isOurs = ({ metadata: { name, labels } }: KubeObject, desired: Desired): boolean =>
  labels?.[INSTANCE_LABEL] === undefined
    ? isBindingName(name) &&
      name.startsWith(namePrefix(desired.loadBalancer)) &&
      (labels?.[MANAGED_BY_LABEL] ?? FIELD_MANAGER) === FIELD_MANAGER
    : labels[INSTANCE_LABEL] === desired.instance &&
      labels[LOAD_BALANCER_LABEL] === desired.loadBalancer

/**
 * After a switch to the *selector* dialect the data plane writes bindings of its own; until the one
 * for the same VIP and node is there, ours carries the traffic.
 */
const stillNeeded = (
  { metadata, spec }: ServiceVIPBinding,
  desired: Desired,
  observed: Observed,
): boolean =>
  desired.dialect === 'selector' &&
  desired.rules.some((rule) => vipsOf(rule).includes(canonical(spec.vipAddress))) &&
  Object.values(desired.backends).some(
    ({ address, listed, node }) =>
      listed && address === spec.backendAddress && node === spec.targetRef.name,
  ) &&
  !observed.bindings.some(
    (other) =>
      other.metadata.name !== metadata.name &&
      !isOurs(other, desired) &&
      canonical(other.spec.vipAddress) === canonical(spec.vipAddress) &&
      other.spec.targetRef.name === spec.targetRef.name,
  )

/**
 * Those that the data plane can't let go of don't keep a rule: it would go on to announce an address
 * that nothing serves.
 */
const hasBindings = (rule: NetworkRule, desired: Desired, observed: Observed): boolean => {
  const vips = vipsOf(rule)
  return observed.bindings.some(
    (binding) =>
      isOurs(binding, desired) &&
      // One that is wanted belongs to a rule that is, though another rule may name its VIP too.
      !desired.bindings.some(({ metadata }) => metadata.name === binding.metadata.name) &&
      !(isDeleting(binding) && observed.stranded?.includes(binding.metadata.name)) &&
      (binding.metadata.name.startsWith(`${rule.metadata.name}-`) ||
        vips.includes(canonical(binding.spec.vipAddress))),
  )
}

const isDeleting = (object: KubeObject): boolean => object.metadata.deletionTimestamp !== undefined

const application =
  (resource: Resource) =>
  (object: NetworkRule | ServiceVIPBinding): Step => ({ act: 'apply', resource, object })

/** By uid where it is known, so that a successor of the same name stays. */
const removal =
  (resource: Resource) =>
  ({ metadata: { name, namespace, uid } }: KubeObject): Step => ({
    act: 'remove',
    resource,
    where: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
    },
  })
