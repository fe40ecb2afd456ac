import type { Desired } from './desired.ts'
import { found } from './findings.ts'
import type { NetworkGateway, NetworkRule, ObjectCondition } from './objects.ts'
import { conditionOf, currentCondition, nodeOf, said } from './observed.ts'
import { isReason, type Reason } from './reasons.ts'
import type { Finding } from './report.ts'

/** The data plane's words for what we call otherwise. */
const SELECTOR_REASONS: Record<string, Reason> = { BindingsNotBound: 'BindFailed' }

const refusal = (condition: ObjectCondition, otherwise: Reason): Reason =>
  SELECTOR_REASONS[condition.reason] ?? (isReason(condition.reason) ? condition.reason : otherwise)

const programmedType = (gateway: NetworkGateway): string => `${nodeOf(gateway)}/Programmed`

/** *selector* dialect: whether a gateway has programmed the rule as it is now. */
export const programmedFinding = (gateway: NetworkGateway, rule: NetworkRule): Finding => {
  const condition = currentCondition(rule, programmedType(gateway))
  const node = nodeOf(gateway)
  if (condition?.status === 'True')
    return found('TRUE', 'InEffect', `Gateway ${node} has programmed the rule.`)
  return condition?.status === 'False'
    ? found('FALSE', refusal(condition, 'LoadFailed'), `Gateway ${node} says ${said(condition)}.`)
    : found('FALSE', 'Progressing', `Gateway ${node} has not programmed the rule yet.`)
}

/** Whatever the generation: an older one still carries what it had. */
export const isProgrammed = (gateway: NetworkGateway, rule: NetworkRule): boolean =>
  conditionOf(rule, programmedType(gateway))?.status === 'True'

/** *selector* dialect: one finding for each node of a listed backend. */
export const boundNodes = (
  rule: NetworkRule | undefined,
  desired: Desired,
): Map<string, Finding> => {
  const nodes = Object.values(desired.backends).flatMap(({ listed, node }) =>
    listed && node !== undefined ? [node] : [],
  )
  return new Map(
    nodes.map((node) => {
      const condition = rule && currentCondition(rule, `${node}/BackendsBound`)
      if (condition?.status === 'True')
        return [node, found('TRUE', 'InEffect', `The backends on node ${node} are bound.`)]
      return condition?.status === 'False'
        ? [
            node,
            found(
              'FALSE',
              refusal(condition, 'BindFailed'),
              `Node ${node} says ${said(condition)}.`,
            ),
          ]
        : [node, found('FALSE', 'Progressing', `The backends on node ${node} are not bound yet.`)]
    }),
  )
}

/** *selector* dialect: the addresses that are served now, by whatever generation. */
export const servingByNode = (rule: NetworkRule, desired: Desired): string[] =>
  Object.values(desired.backends).flatMap(({ address, listed, node }) =>
    listed && conditionOf(rule, `${node}/BackendsBound`)?.status === 'True' ? [address] : [],
  )
