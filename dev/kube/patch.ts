import type { Json, JsonObject } from './json.ts'
import { equal, isObject, textAt } from './json.ts'

/** RFC 7386: null removes a field, objects are merged, everything else replaces. */
export function mergePatched(target: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch
  const out: JsonObject = isObject(target) ? { ...target } : {}
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) delete out[name]
    else out[name] = mergePatched(out[name], value)
  }
  return out
}

export type PatchProblem = { problem: string }

/** RFC 6902: all operations, or the first one that can't be done. */
export function jsonPatched(
  target: JsonObject,
  operations: Json[],
): { object: Json } | PatchProblem {
  const holder: { object: Json } = { object: structuredClone(target) }
  for (const operation of operations) {
    const problem = operate(holder, operation)
    if (problem !== undefined) return { problem }
  }
  return holder
}

function operate(holder: { object: Json }, operation: Json): string | undefined {
  if (!isObject(operation)) return 'an operation is not an object'
  const op = textAt(operation, 'op') ?? ''
  const path = pointer(textAt(operation, 'path'))
  if (path === undefined) return `${op}: the path is not a JSON pointer`
  const value = operation['value']
  switch (op) {
    case 'test':
      return equal(read(holder.object, path), value) ? undefined : 'test failed'
    case 'add':
    case 'replace':
      if (value === undefined) return `${op}: value is missing`
      if (op === 'replace' && read(holder.object, path) === undefined) return missing(path)
      return put(holder, path, value, op === 'add')
    case 'remove':
      return take(holder, path)
    case 'move':
    case 'copy': {
      const from = pointer(textAt(operation, 'from'))
      const moved = from === undefined ? undefined : read(holder.object, from)
      if (from === undefined || moved === undefined) return missing(from ?? [])
      const problem = op === 'move' ? take(holder, from) : undefined
      return problem ?? put(holder, path, structuredClone(moved), true)
    }
    default:
      return `unknown operation ${JSON.stringify(op)}`
  }
}

const missing = (path: string[]): string => `no value at /${path.join('/')}`

function pointer(text: string | undefined): string[] | undefined {
  if (text === undefined || (text !== '' && !text.startsWith('/'))) return undefined
  return text
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
}

function read(from: Json | undefined, path: string[]): Json | undefined {
  let at = from
  for (const part of path) {
    if (Array.isArray(at)) at = at[index(part) ?? -1]
    else if (isObject(at) && Object.hasOwn(at, part)) at = at[part]
    else return undefined
  }
  return at
}

const index = (part: string): number | undefined =>
  /^(0|[1-9][0-9]*)$/.test(part) ? Number(part) : undefined

function put(
  holder: { object: Json },
  path: string[],
  value: Json,
  insert: boolean,
): string | undefined {
  const last = path.at(-1)
  if (last === undefined) {
    holder.object = value
    return undefined
  }
  const parent = read(holder.object, path.slice(0, -1))
  if (isObject(parent)) {
    parent[last] = value
    return undefined
  }
  if (!Array.isArray(parent)) return missing(path.slice(0, -1))
  const at = last === '-' && insert ? parent.length : index(last)
  if (at === undefined || at > parent.length) return missing(path)
  parent.splice(at, insert ? 0 : 1, value)
  return undefined
}

function take(holder: { object: Json }, path: string[]): string | undefined {
  const last = path.at(-1)
  const parent = read(holder.object, path.slice(0, -1))
  if (last === undefined || read(parent, [last]) === undefined) return missing(path)
  if (Array.isArray(parent)) parent.splice(index(last) ?? 0, 1)
  else if (isObject(parent)) delete parent[last]
  return undefined
}
