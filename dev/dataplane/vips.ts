import { parseAddress } from '../../src/ipam/address.ts'
import type { NetworkRule } from '../../src/rules/objects.ts'
import type { AddressFamily } from '../../src/rules/wanted.ts'

/** The VIPs of a rule in canonical form, by family. What can't be read is left out. */
export function familiesOf(rule: NetworkRule): Record<AddressFamily, string[]> {
  const families: Record<AddressFamily, string[]> = { IPV4: [], IPV6: [] }
  for (const vip of rule.spec.vipAddresses) {
    const parsed = parseAddress(vip)
    if ('code' in parsed) continue
    const { address, family } = parsed
    if (!families[family].includes(address)) families[family].push(address)
  }
  return families
}

/** The one spelling in which addresses are compared; undefined where it is none. */
export function canonical(text: string | undefined): string | undefined {
  const parsed = parseAddress(text ?? '')
  return 'code' in parsed ? undefined : parsed.address
}
