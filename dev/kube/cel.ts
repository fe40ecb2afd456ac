import { isIPv4, isIPv6 } from 'node:net'
import { Environment } from '@marcbachmann/cel-js'
import type { Json } from './json.ts'
import { isObject } from './json.ts'
import type { Schema, SchemaRule } from './schema.ts'

/** A rule ready to run; `transition` rules compare with the old value and need one. */
export type CompiledRule = {
  transition: boolean
  message: string
  reason: string
  /** True: holds. A text: why it could not be evaluated. */
  run(self: unknown, oldSelf: unknown): boolean | string
}

const MAPPED = /^\[::ffff:[0-9a-f]{1,4}:[0-9a-f]{1,4}\]$/

/** Kubernetes' isIP: any spelling, but no zone, no IPv4-mapped IPv6, no leading zeros in IPv4. */
export function isIP(text: string): boolean {
  if (isIPv4(text)) return true
  if (text.includes('%') || !isIPv6(text)) return false
  return !MAPPED.test(new URL(`http://[${text}]/`).hostname)
}

/** Kubernetes' isCIDR: host bits are allowed. */
export function isCIDR(text: string): boolean {
  const slash = text.lastIndexOf('/')
  const address = text.slice(0, slash)
  const length = text.slice(slash + 1)
  if (slash < 0 || !isIP(address) || !/^(0|[1-9][0-9]{0,2})$/.test(length)) return false
  return Number(length) <= (isIPv4(address) ? 32 : 128)
}

const environment = new Environment({
  homogeneousAggregateLiterals: false,
  enableOptionalTypes: true,
})
  .registerVariable('self', 'dyn')
  .registerVariable('oldSelf', 'dyn')
  .registerFunction('isIP(string): bool', (text: string) => isIP(text))
  .registerFunction('isCIDR(string): bool', (text: string) => isCIDR(text))

/** Compiles a rule, or says why it is none. */
export function compileRule(source: SchemaRule): CompiledRule | { problem: string } {
  let program: ReturnType<typeof environment.parse>
  try {
    program = environment.parse(source.rule)
    const check = program.check()
    if (!check.valid) return { problem: check.error?.message.split('\n')[0] ?? 'invalid rule' }
  } catch (error) {
    return { problem: error instanceof Error ? (error.message.split('\n')[0] ?? '') : `${error}` }
  }
  return {
    transition: /\boldSelf\b/.test(source.rule),
    message: source.message ?? `failed rule: ${source.rule}`,
    reason: source.reason ?? 'FieldValueInvalid',
    run(self, oldSelf) {
      try {
        return program({ self, oldSelf }) === true
      } catch (error) {
        return error instanceof Error ? (error.message.split('\n')[0] ?? '') : `${error}`
      }
    },
  }
}

const compiled = new WeakMap<Schema, CompiledRule[]>()

/** The rules that stand on a schema itself, compiled once. (A CRD whose rules don't compile was refused.) */
export function rulesOf(schema: Schema): CompiledRule[] {
  const known = compiled.get(schema)
  if (known !== undefined) return known
  const rules = schema.rules.flatMap((source) => {
    const rule = compileRule(source)
    return 'problem' in rule ? [] : [rule]
  })
  compiled.set(schema, rules)
  return rules
}

/** A JSON value as CEL sees it: integers are integers where the schema says so. */
export function celValue(value: Json, schema: Schema | undefined): unknown {
  if (typeof value === 'number') {
    const whole = schema === undefined ? Number.isInteger(value) : schema.type === 'integer'
    return (whole || schema?.intOrString) && Number.isInteger(value) ? BigInt(value) : value
  }
  if (Array.isArray(value)) return value.map((item) => celValue(item, schema?.items))
  if (!isObject(value)) return value
  const out: Record<string, unknown> = {}
  for (const [name, field] of Object.entries(value)) {
    out[name] = celValue(field, schema?.properties.get(name) ?? schema?.values)
  }
  return out
}
