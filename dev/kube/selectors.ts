import type { JsonObject } from './json.ts'
import { isLabelValue, isQualifiedName } from './metadata.ts'
import { badRequest, Refusal } from './refusal.ts'
import type { Version } from './storage.ts'

/** What a list or watch is narrowed to. */
export type Selector = {
  namespace: string
  /** Nothing is selected but by namespace. */
  everything: boolean
  matches(version: Version): boolean
}

type Requirement = (labels: JsonObject) => boolean

const SET = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/
const EQUALS = /^([^\s!=]+)\s*(==|=|!=)\s*([^\s!=]*)$/
const COMPARES = /^([^\s!=<>]+)\s*([<>])\s*([0-9]+)$/
const EXISTS = /^(!?)\s*([^\s!=(),<>]+)$/

/** Splits at the commas outside of parentheses; no text is no term. */
const terms = (text: string): string[] =>
  text.trim() === '' ? [] : text.split(/,(?![^()]*\))/).map((term) => term.trim())

/** What a term asks of labels; undefined where it makes no sense. */
function requirement(term: string): Requirement | undefined {
  const [key, values, holds] = parsed(term) ?? []
  if (key === undefined || values === undefined || holds === undefined) return undefined
  return isQualifiedName(key) && values.every(isLabelValue) ? holds : undefined
}

function parsed(term: string): [string, string[], Requirement] | undefined {
  const set = SET.exec(term)
  if (set !== null) {
    const [, key = '', operator, list = ''] = set
    const values = list.split(',').map((value) => value.trim())
    const within: Requirement = (labels) => values.some((value) => labels[key] === value)
    return [key, values, operator === 'in' ? within : (labels) => !within(labels)]
  }
  const equals = EQUALS.exec(term)
  if (equals !== null) {
    const [, key = '', operator, value = ''] = equals
    const same: Requirement = (labels) => labels[key] === value
    return [key, [value], operator === '!=' ? (labels) => !same(labels) : same]
  }
  const compares = COMPARES.exec(term)
  if (compares !== null) {
    const [, key = '', operator, bound] = compares
    const sign = operator === '>' ? 1 : -1
    return [key, [], (labels) => sign * (Number(labels[key] ?? Number.NaN) - Number(bound)) > 0]
  }
  const exists = EXISTS.exec(term)
  if (exists === null) return undefined
  const [, not, key = ''] = exists
  const has: Requirement = (labels) => Object.hasOwn(labels, key)
  return [key, [], not === '!' ? (labels) => !has(labels) : has]
}

/** What a term asks of an object's name and namespace; no other fields are known. */
function fieldRequirement(term: string): ((version: Version) => boolean) | Refusal {
  const [, field, operator, value = ''] = EQUALS.exec(term) ?? []
  if (field === undefined) return badRequest(`invalid selector: ${term}`)
  if (field !== 'metadata.name' && field !== 'metadata.namespace') {
    return badRequest(`field label not supported: ${field}`)
  }
  const part = field === 'metadata.name' ? 'name' : 'namespace'
  return (version) => (version[part] === value) === (operator !== '!=')
}

/** Reads `labelSelector` and `fieldSelector`; only metadata.name and metadata.namespace are fields. */
export function selectorOf(query: URLSearchParams, namespace: string): Selector | Refusal {
  const requirements: Requirement[] = []
  const labelText = query.get('labelSelector') ?? ''
  for (const term of terms(labelText)) {
    const one = requirement(term)
    if (one === undefined) return badRequest(`unable to parse requirement: ${term}`)
    requirements.push(one)
  }
  const fields: ((version: Version) => boolean)[] = []
  for (const term of terms(query.get('fieldSelector') ?? '')) {
    const one = fieldRequirement(term)
    if (one instanceof Refusal) return one
    fields.push(one)
  }
  return {
    namespace,
    everything: requirements.length === 0 && fields.length === 0,
    matches: (version) =>
      (namespace === '' || version.namespace === namespace) &&
      fields.every((holds) => holds(version)) &&
      requirements.every((holds) => holds(version.labels)),
  }
}
