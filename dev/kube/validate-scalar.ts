import type { Json } from './json.ts'
import { equal, isObject } from './json.ts'
import type { Cause } from './refusal.ts'
import { cause } from './refusal.ts'
import type { Schema, SchemaType } from './schema.ts'

/** Whether a value is of the type; 1.0 is an integer, as in JSON Schema. */
export function ofType(value: Json, type: SchemaType): boolean {
  switch (type) {
    case 'array':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
    case 'integer':
      return typeof value === 'number' && Number.isInteger(value)
    default:
      return typeof value === type
  }
}

const DATE_TIME = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/

/** Type, enum, bounds, pattern and format of the value itself; what is inside it isn't looked at. */
export function validateScalar(value: Json, schema: Schema, path: string, out: Cause[]): void {
  const type = schema.type
  if (schema.intOrString) {
    if (typeof value !== 'string' && !ofType(value, 'integer')) {
      out.push(cause.type(path, value, 'integer,string'))
      return
    }
  } else if (type !== undefined && !ofType(value, type)) {
    out.push(cause.type(path, value, type))
    return
  }
  if (schema.enum !== undefined && !schema.enum.some((allowed) => equal(allowed, value))) {
    out.push(cause.unsupported(path, value, [...schema.enum]))
  }
  if (typeof value === 'number') validateNumber(value, schema, path, out)
  else if (typeof value === 'string') validateText(value, schema, path, out)
  else if (Array.isArray(value)) validateCount(value.length, 'Items', 'items', schema, path, out)
  else if (isObject(value)) {
    validateCount(Object.keys(value).length, 'Properties', 'properties', schema, path, out)
  }
  for (const all of schema.allOf) validateScalar(value, all, path, out)
  validateAlternatives(value, schema, path, out)
}

const passes = (value: Json, schema: Schema): boolean => {
  const causes: Cause[] = []
  validateScalar(value, schema, '', causes)
  const fields = isObject(value) ? value : {}
  return causes.length === 0 && schema.required.every((name) => Object.hasOwn(fields, name))
}

function validateAlternatives(value: Json, schema: Schema, path: string, out: Cause[]): void {
  if (schema.anyOf.length > 0 && !schema.anyOf.some((one) => passes(value, one))) {
    out.push(
      cause.invalid(path, value, `${path} in body must validate at least one schema (anyOf)`),
    )
  }
  if (schema.oneOf.length > 0 && schema.oneOf.filter((one) => passes(value, one)).length !== 1) {
    out.push(cause.invalid(path, value, `${path} in body must validate one and only one schema`))
  }
  if (schema.not !== undefined && passes(value, schema.not)) {
    out.push(cause.invalid(path, value, `${path} in body must not validate the schema (not)`))
  }
}

function validateNumber(value: number, schema: Schema, path: string, out: Cause[]): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema.bounds
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) {
    const words = exclusiveMinimum ? 'greater than' : 'greater than or equal to'
    out.push(cause.invalid(path, value, `${path} in body should be ${words} ${minimum}`))
  }
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) {
    const words = exclusiveMaximum ? 'less than' : 'less than or equal to'
    out.push(cause.invalid(path, value, `${path} in body should be ${words} ${maximum}`))
  }
  if (multipleOf !== undefined && value % multipleOf !== 0) {
    out.push(cause.invalid(path, value, `${path} in body should be a multiple of ${multipleOf}`))
  }
  if (schema.format === 'int32' && (value < -(2 ** 31) || value >= 2 ** 31)) {
    out.push(cause.invalid(path, value, `${path} in body must be of type int32: ${value}`))
  }
}

function validateText(value: string, schema: Schema, path: string, out: Cause[]): void {
  const { minLength, maxLength } = schema.bounds
  const length = maxLength === undefined && minLength === undefined ? 0 : [...value].length
  if (minLength !== undefined && length < minLength) {
    const why = `${path} in body should be at least ${minLength} chars long`
    out.push(cause.invalid(path, value, why))
  }
  if (maxLength !== undefined && length > maxLength) out.push(cause.tooLong(path, maxLength))
  if (schema.pattern !== undefined && !schema.pattern.test(value)) {
    out.push(cause.invalid(path, value, `${path} in body should match '${schema.pattern.source}'`))
  }
  if (
    schema.format === 'date-time' &&
    (!DATE_TIME.test(value) || Number.isNaN(Date.parse(value)))
  ) {
    out.push(
      cause.invalid(
        path,
        value,
        `${path} in body must be of type date-time: ${JSON.stringify(value)}`,
      ),
    )
  }
}

function validateCount(
  count: number,
  bound: 'Items' | 'Properties',
  noun: string,
  schema: Schema,
  path: string,
  out: Cause[],
): void {
  const minimum = schema.bounds[`min${bound}`]
  const maximum = schema.bounds[`max${bound}`]
  if (minimum !== undefined && count < minimum) {
    out.push(cause.invalid(path, count, `${path} in body should have at least ${minimum} ${noun}`))
  }
  if (maximum !== undefined && count > maximum) out.push(cause.tooMany(path, count, maximum))
}
