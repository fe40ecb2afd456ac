import { NETWORK_RULES, type NetworkRule } from '../../src/rules/objects.ts'
import { familiesOf } from './vips.ts'
import type { World } from './world.ts'

/** Names by which a step of a rule can be held back. */
export function subjectsOf(rule: NetworkRule): string[] {
  const { IPV4, IPV6 } = familiesOf(rule)
  return [rule.metadata.name, ...IPV4, ...IPV6]
}

/** Puts conditions on a rule, against the version that is known here. */
export async function setRuleStatus(
  world: World,
  rule: NetworkRule,
  conditions: object[],
): Promise<void> {
  const { name, namespace, resourceVersion } = rule.metadata
  const patch = { metadata: { resourceVersion }, status: { conditions } }
  const written = await world.writer.patchStatus<NetworkRule>(
    NETWORK_RULES,
    { name, namespace },
    patch,
  )
  world.followed.rules.learn(written)
}
