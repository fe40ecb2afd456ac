import type { Desired } from '../../rules/desired.ts'
import { SERVING, servingLabel } from '../../rules/names.ts'
import {
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
  VPC_ATTACHMENTS,
} from '../../rules/objects.ts'
import type { FieldChange } from '../events/append.ts'
import type { Action, RuleChange } from './plan.ts'
import type { Scene } from './scene.ts'

/** An object as it is wanted; of an attachment only the label that is ours. */
type Wanted = {
  cluster: string
  kind: string
  name: string
  address: string | null
  /** By path, joined by NUL. */
  fields: Map<string, string>
}

/** Every object that would be written or removed, by cluster, kind and name. */
export function ruleChanges(before: Scene, after: Scene): RuleChange[] {
  const was = objectsOf(before)
  const is = objectsOf(after)
  return [...new Set([...was.keys(), ...is.keys()])]
    .sort()
    .flatMap((key) => changesOf(was.get(key), is.get(key)))
}

function changesOf(was: Wanted | undefined, is: Wanted | undefined): RuleChange[] {
  const diff = difference(was?.fields, is?.fields)
  if (diff.length === 0) return []
  const one = (object: Wanted, action: Action, changes: FieldChange[]): RuleChange => {
    const { fields, ...told } = object
    return { ...told, action, diff: changes }
  }
  const either = is ?? was
  // An attachment is there before and after: only a label of ours comes or goes.
  if (either?.kind === VPC_ATTACHMENTS.kind) return [one(either, 'UPDATE', diff)]
  if (was === undefined) return is === undefined ? [] : [one(is, 'CREATE', diff)]
  if (is === undefined) return [one(was, 'DELETE', diff)]
  // A binding is never edited: it is removed and made anew.
  if (is.kind === SERVICE_VIP_BINDINGS.kind) {
    return [
      one(was, 'DELETE', difference(was.fields, undefined)),
      one(is, 'CREATE', difference(undefined, is.fields)),
    ]
  }
  return [one(is, 'UPDATE', diff)]
}

function objectsOf({ clusters }: Scene): Map<string, Wanted> {
  const objects = new Map<string, Wanted>()
  for (const { name: cluster, placements } of clusters) {
    for (const { desired } of placements.values()) {
      for (const object of wantedOf(cluster, desired)) {
        const key = [cluster, object.kind, object.name].join('\0')
        // One attachment may carry the labels of several load balancers.
        const known = objects.get(key)
        if (known === undefined) objects.set(key, object)
        else for (const [field, value] of object.fields) known.fields.set(field, value)
      }
    }
  }
  return objects
}

function wantedOf(cluster: string, desired: Desired): Wanted[] {
  const applied = (object: NetworkRule | ServiceVIPBinding, address: string | null): Wanted => ({
    cluster,
    kind: object.kind,
    name: object.metadata.name,
    address,
    fields: leaves({ metadata: marksOf(object), spec: object.spec }),
  })
  return [
    ...desired.rules.map((rule) => applied(rule, rule.spec.vipAddresses[0] ?? null)),
    ...desired.bindings.map((binding) => applied(binding, binding.spec.vipAddress)),
    ...desired.labels.map((attachment) => ({
      cluster,
      kind: VPC_ATTACHMENTS.kind,
      name: `${attachment.namespace}/${attachment.name}`,
      address: null,
      fields: leaves({ metadata: { labels: { [servingLabel(desired.loadBalancer)]: SERVING } } }),
    })),
  ]
}

const marksOf = ({ metadata: { labels, annotations } }: NetworkRule | ServiceVIPBinding) => ({
  ...(labels === undefined ? {} : { labels }),
  ...(annotations === undefined ? {} : { annotations }),
})

function difference(
  was: ReadonlyMap<string, string> = new Map(),
  is: ReadonlyMap<string, string> = new Map(),
): FieldChange[] {
  return [...new Set([...was.keys(), ...is.keys()])].flatMap((field) => {
    const before = was.get(field) ?? null
    const after = is.get(field) ?? null
    return before === after ? [] : [{ path: field.split('\0'), before, after }]
  })
}

/** Every value of an object by its path; backends go by their addresses, which have no order. */
function leaves(value: unknown, path: string[] = [], into = new Map<string, string>()) {
  if (Array.isArray(value)) {
    const items: unknown[] = value
    for (const [index, item] of items.entries()) leaves(item, [...path, nameOf(item, index)], into)
  } else if (typeof value === 'object' && value !== null) {
    for (const [key, field] of Object.entries(value)) leaves(field, [...path, key], into)
  } else if (value !== undefined) {
    into.set(path.join('\0'), String(value))
  }
  return into
}

const nameOf = (item: unknown, index: number): string =>
  typeof item === 'object' && item !== null && 'address' in item
    ? String(item.address)
    : String(index)
