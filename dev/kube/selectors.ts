import type { JsonObject } from './json.ts'
import { badRequest, type Refusal } from './refusal.ts'
import type { Version } from './storage.ts'

/** What a list or watch is narrowed to. */
export type Selector = {
  namespace: string
  /** By fieldSelector metadata.name. */
  name: string | undefined
  /** Nothing is selected but by namespace. */
  everything: boolean
  matches(version: Version): boolean
}

type Requirement = (labels: JsonObject) => boolean

const SET = /^(\S+)\s+(in|notin)\s*\(([^()]*)\)$/
const EQUALS = /^([^\s!=]+)\s*(==|=|!=)\s*([^\s!=]*)$/
const EXISTS = /^(!?)\s*([^\s!=(),]+)$/

/** Splits at the commas outside of parentheses. */
function terms(text: string): string[] {
  const found = text.match(/(\([^()]*\)|[^,()])+/g) ?? []
  return found.map((term) => term.trim()).filter((term) => term !== '')
}

function requirement(term: string): Requirement | undefined {
  const set = SET.exec(term)
  if (set !== null) {
    const [, key = '', operator, list = ''] = set
    const values = new Set(list.split(',').map((value) => value.trim()))
    return operator === 'in'
      ? (labels) => typeof labels[key] === 'string' && values.has(labels[key])
      : (labels) => !(typeof labels[key] === 'string' && values.has(labels[key]))
  }
  const equals = EQUALS.exec(term)
  if (equals !== null) {
    const [, key = '', operator, value = ''] = equals
    return operator === '!=' ? (labels) => labels[key] !== value : (labels) => labels[key] === value
  }
  const exists = EXISTS.exec(term)
  if (exists === null) return undefined
  const [, not, key = ''] = exists
  return not === '!'
    ? (labels) => !Object.hasOwn(labels, key)
    : (labels) => Object.hasOwn(labels, key)
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
  let name: string | undefined
  let within = namespace
  for (const term of terms(query.get('fieldSelector') ?? '')) {
    const [, field, operator, value = ''] = EQUALS.exec(term) ?? []
    if (operator === undefined || operator === '!=') {
      return badRequest(`field selector not supported: ${term}`)
    }
    if (field === 'metadata.name') name = value
    else if (field === 'metadata.namespace' && (within === '' || within === value)) within = value
    else return badRequest(`field label not supported: ${field}`)
  }
  return {
    namespace: within,
    name,
    everything: requirements.length === 0 && name === undefined,
    matches: (version) =>
      (within === '' || version.namespace === within) &&
      (name === undefined || version.name === name) &&
      requirements.every((holds) => holds(version.labels)),
  }
}
