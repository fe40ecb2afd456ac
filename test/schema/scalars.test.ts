import { GraphQLError, GraphQLScalarType } from 'graphql'
import { describe, expect, test } from 'vitest'
import { InvalidValue } from '../../src/domain/input.ts'
import { schema } from '../../src/server/schema.ts'

function scalar(name: string): GraphQLScalarType {
  const type = schema.getType(name)
  if (!(type instanceof GraphQLScalarType)) throw new Error(`${name} is no scalar`)
  return type
}
const parse = (name: string, value: unknown) => scalar(name).parseValue(value)

test.each([
  ['IPAddress', '2001:DB8::0001', '2001:db8::1'],
  ['IPv4Address', '192.0.2.7', '192.0.2.7'],
  ['IPPrefix', '2001:DB8::/32', '2001:db8::/32'],
  ['Port', 1, 1],
  ['Port', 65_535, 65_535],
  ['ResourceName', 'a', 'a'],
  ['ResourceName', `a${'-'.repeat(61)}b`, `a${'-'.repeat(61)}b`],
  ['DateTime', '2026-03-09T13:00:00+01:00', '2026-03-09T12:00:00.000Z'],
  ['LogCursor', 'abc', 'abc'],
])('%s takes %j as %j', (name, given, taken) => {
  expect(parse(name, given)).toBe(taken)
})

describe('a wrong string or number is handed on as invalid', () => {
  test.each([
    ['IPAddress', '010.0.0.1', 'INVALID_ADDRESS', '10.0.0.1'],
    ['IPAddress', '[2001:db8::1]', 'INVALID_ADDRESS', '2001:db8::1'],
    ['IPAddress', 10, 'INVALID_ADDRESS', null],
    ['IPv4Address', '2001:db8::1', 'INVALID_ADDRESS', null],
    ['IPPrefix', '10.0.0.1/8', 'INVALID_PREFIX', '10.0.0.0/8'],
    ['Port', 0, 'INVALID_PORT', null],
    ['Port', 65_536, 'INVALID_PORT', null],
    ['Port', 80.5, 'INVALID_PORT', null],
    ['Port', '80', 'INVALID_PORT', '80'],
    ['ResourceName', 'A_b', 'INVALID_NAME', 'a-b'],
    ['ResourceName', '1a', 'INVALID_NAME', 'a'],
    ['ResourceName', 'a-', 'INVALID_NAME', 'a'],
    ['ResourceName', '', 'INVALID_NAME', null],
    ['ResourceName', 'a'.repeat(64), 'INVALID_NAME', 'a'.repeat(63)],
    ['DateTime', 'yesterday', 'INVALID_DATE_TIME', null],
    ['DateTime', '2026-13-01T00:00:00Z', 'INVALID_DATE_TIME', null],
    ['LogCursor', '', 'INVALID_CURSOR', null],
  ])('%s: %j', (name, given, code, suggestion) => {
    const value = parse(name, given)
    expect(value).toBeInstanceOf(InvalidValue)
    expect(value).toMatchObject({ code, suggestion })
  })
})

test.each([
  'IPAddress',
  'IPv4Address',
  'IPPrefix',
  'Port',
  'ResourceName',
  'DateTime',
  'LogCursor',
])('%s throws at what is neither a string nor a number', (name) => {
  for (const given of [true, {}, [], null]) {
    expect(() => parse(name, given)).toThrow(GraphQLError)
  }
})
