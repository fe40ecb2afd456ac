import { isDeepStrictEqual } from 'node:util'
import type { KubeObject, NetworkRule, ServiceVIPBinding } from './objects.ts'

/** A merge patch of a rule's spec; null takes a field away. */
export type RuleMend = { vipAddresses?: string[]; sessionAffinity?: null }

/**
 * What others added to the fields that are ours alone and an apply of ours leaves standing: under
 * server-side apply `vipAddresses` is a set whose items have owners of their own, and a field that
 * we don't send stays with whoever sent it.
 */
export const surplusOf = (wish: NetworkRule, rule: NetworkRule): RuleMend | undefined => {
  const spec: Partial<NetworkRule['spec']> = rule.spec ?? {}
  const foreignVips = spec.vipAddresses?.some((vip) => !wish.spec.vipAddresses.includes(vip))
  const foreignAffinity =
    spec.sessionAffinity !== undefined && wish.spec.sessionAffinity === undefined
  if (!foreignVips && !foreignAffinity) return undefined
  return {
    ...(foreignVips ? { vipAddresses: wish.spec.vipAddresses } : {}),
    ...(foreignAffinity ? { sessionAffinity: null } : {}),
  }
}

/** Whether a rule's spec, read back, is what we want in every field that we decide. */
export const isAsWanted = (wish: NetworkRule, rule: NetworkRule): boolean =>
  sameFields(wish.spec, rule.spec) &&
  isDeepStrictEqual(selectorOf(wish), selectorOf(rule)) &&
  surplusOf(wish, rule) === undefined

/** One more label in a selector would choose fewer backends, so it must be equal as a whole. */
const selectorOf = ({ spec }: { spec?: object }): unknown =>
  spec && 'backendSelector' in spec ? spec.backendSelector : undefined

/** Whether a binding does exactly what we want. */
export const bindsAsWanted = (wish: ServiceVIPBinding, binding: ServiceVIPBinding): boolean =>
  sameFields(wish.spec, binding.spec)

/**
 * Whether all that keeps a binding from being what we want are fields that it lacks, as one reads back, and is
 * stored when it is written, while the definition of bindings lacks them. None was ever made so: there is nothing
 * else than what was made that the data plane could have taken up.
 */
export const isPruned = (wish: ServiceVIPBinding, binding: ServiceVIPBinding): boolean =>
  agrees(wish, binding) && !bindsAsWanted(wish, binding)

/** Whether a binding says nothing else than what we want, though it may not say all of it. */
export const agrees = (wish: ServiceVIPBinding, binding: ServiceVIPBinding): boolean =>
  sameFields(wish.spec, binding.spec, true)

/** Whether an object carries our labels and our annotation, beside whatever others put there. */
export const carriesMarks = (wish: KubeObject, object: KubeObject): boolean =>
  sameFields(wish.metadata.labels, object.metadata.labels ?? {}) &&
  sameFields(wish.metadata.annotations, object.metadata.annotations ?? {})

/**
 * Whether everything that is wished is there and equal; further fields of maps are others' affair.
 * Lists must be equal as a whole, each of their items in its wished fields. `lacking`: what isn't there counts as
 * equal.
 */
const sameFields = (wish: unknown, seen: unknown, lacking = false): boolean => {
  if (wish === undefined || (lacking && seen === undefined)) return true
  if (Array.isArray(wish))
    return (
      Array.isArray(seen) &&
      wish.length === seen.length &&
      wish.every((item, index) => sameFields(item, seen[index], lacking))
    )
  if (typeof wish === 'object' && wish !== null)
    return (
      typeof seen === 'object' &&
      seen !== null &&
      Object.entries(wish).every(([key, value]) =>
        sameFields(value, Reflect.get(seen, key), lacking),
      )
    )
  return wish === seen
}
