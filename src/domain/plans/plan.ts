import type { Impact } from '../../maglev/impact.ts'
import type { FieldChange } from '../events/append.ts'

export type Action = 'CREATE' | 'UPDATE' | 'DELETE' | 'NONE'

/** An address that is taken (CREATE), changes hands (UPDATE) or is given back (DELETE). */
export type AddressChange = { address: string; action: Action }

/** What happens to one table, and in how many clusters it is that one. */
export type FlowImpact = Impact & { clusters: number; tableSize: number }

/** What a person should know before; `path` leads to the argument it is about, as in a refusal. */
export type Warning = { code: string; message: string; path: string[] }

/** What happens to one object in one cluster; `diff` in paths of that object. */
export type RuleChange = {
  cluster: string
  kind: string
  name: string
  /** The VIP that it is about. */
  address: string | null
  action: Action
  diff: FieldChange[]
}

/** What a change would do. */
export type Plan = {
  addresses: AddressChange[]
  /** One for each distinct table among the clusters; none where no flow moves. */
  flows: FlowImpact[]
  warnings: Warning[]
  /** As the change's event would tell them. */
  changes: FieldChange[]
  /** For operators: every object that would be written or removed, also of other load balancers. */
  rules: RuleChange[]
}

/** The answer to a change that was only asked about: nothing was changed. */
export type Planned = { plan: Plan }
