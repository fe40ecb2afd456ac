import { canonical } from './addresses.ts'
import { bindsAsWanted } from './comparison.ts'
import type { Desired } from './desired.ts'
import { found } from './findings.ts'
import type { NetworkRule, ServiceVIPBinding } from './objects.ts'
import { currentCondition, type Observed, said } from './observed.ts'
import type { Finding } from './report.ts'

/** *backends* dialect: one finding for each of our bindings. */
export const bindingFindings = (
  wish: NetworkRule,
  desired: Desired,
  observed: Observed,
): Finding[] =>
  desired.bindings
    .filter(({ spec }) => wish.spec.vipAddresses.includes(spec.vipAddress))
    .map((want) => bindingFinding(want, observed))

const bindingFinding = (want: ServiceVIPBinding, observed: Observed): Finding => {
  const { backendAddress, targetRef } = want.spec
  const binding = observed.bindings.find(({ metadata }) => metadata.name === want.metadata.name)
  const standing = binding && binding.metadata.deletionTimestamp === undefined
  const condition =
    standing && bindsAsWanted(want, binding) ? currentCondition(binding, 'Bound') : undefined
  if (condition?.status === 'True')
    return found('TRUE', 'InEffect', `${backendAddress} is bound on node ${targetRef.name}.`)
  return condition?.status === 'False'
    ? found('FALSE', 'BindFailed', `Node ${targetRef.name} says ${said(condition)}.`)
    : found('FALSE', 'Progressing', `${backendAddress} is not bound on node ${targetRef.name} yet.`)
}

/**
 * *backends* dialect: the addresses that are served now. The rule as it stands may list fewer or
 * other backends than wished.
 */
export const servingByBinding = (
  rule: NetworkRule,
  _desired: Desired,
  observed: Observed,
): string[] => {
  if (!rule.spec || !('backends' in rule.spec)) return []
  const { spec } = rule
  const listed = new Set(spec.backends.map(({ address }) => canonical(address)))
  return observed.bindings.flatMap((binding) => {
    const { vipAddress, protocol, port, backendAddress = '' } = binding.spec
    const serves =
      listed.has(canonical(backendAddress)) &&
      spec.vipAddresses.some((vip) => canonical(vip) === canonical(vipAddress)) &&
      spec.protocol === protocol &&
      spec.port === port &&
      binding.metadata.deletionTimestamp === undefined &&
      currentCondition(binding, 'Bound')?.status === 'True'
    return serves ? [canonical(backendAddress)] : []
  })
}
