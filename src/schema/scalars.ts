/**
 * Scalars never throw on a string or a number that is wrong: they hand on an `InvalidValue`, which
 * a mutation lists among its issues and everything else refuses (see valid.ts).
 */
import { InvalidValue } from '../domain/input.ts'
import { parseAddress, parsePrefix } from '../ipam/address.ts'
import { builder } from './builder.ts'
import { badUserInput } from './failures.ts'

/** Cursors of ours are far shorter. */
const LONGEST_CURSOR = 200
const LONGEST_NAME = 63
const RESOURCE_NAME = /^[a-z](?:[a-z0-9-]*[a-z0-9])?$/
const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)$/

const canonical = (value: string) => value

/** A scalar written as a string: `read` gets any string, and a number as its decimal text. */
function textual(
  name: 'DateTime' | 'IPAddress' | 'IPv4Address' | 'IPPrefix' | 'ResourceName' | 'LogCursor',
  description: string,
  read: (text: string) => string | InvalidValue,
) {
  builder.scalarType(name, {
    description,
    serialize: canonical,
    parseValue: (value) => {
      if (typeof value === 'string' || typeof value === 'number') return read(String(value))
      throw badUserInput(`${name} is written as a string.`)
    },
  })
}

textual(
  'DateTime',
  'A point in time as RFC 3339 writes it, in UTC with milliseconds: `2026-03-09T12:00:00.000Z`.',
  (text) => {
    const time = RFC3339.test(text) ? new Date(text) : undefined
    if (time === undefined || Number.isNaN(time.getTime())) {
      return new InvalidValue('INVALID_DATE_TIME', `"${text}" is not a time as RFC 3339 writes it.`)
    }
    return time.toISOString()
  },
)

const readAddress = (text: string) => {
  const parsed = parseAddress(text)
  return 'code' in parsed
    ? new InvalidValue(parsed.code, parsed.message, parsed.suggestion)
    : parsed.address
}

textual(
  'IPAddress',
  'An IPv4 or IPv6 address: `192.0.2.7` or `2001:db8::7`. IPv6 is given back as RFC 5952 writes it (lower case, shortest form). Zone ids, brackets, leading zeros, and short or integer forms of IPv4 are refused; an IPv4 address written as IPv6 (`::ffff:192.0.2.7`) is refused and the plain one suggested.',
  readAddress,
)

textual('IPv4Address', 'An IPv4 address as four decimal numbers: `192.0.2.7`.', (text) => {
  const parsed = parseAddress(text)
  if ('code' in parsed) return new InvalidValue(parsed.code, parsed.message, parsed.suggestion)
  return parsed.family === 'IPV4'
    ? parsed.address
    : new InvalidValue('INVALID_ADDRESS', `"${text}" is an IPv6 address; here it is IPv4.`)
})

textual(
  'IPPrefix',
  'A block of addresses in CIDR form, without host bits: `2001:db8:0:1::/64` or `192.0.2.0/24`.',
  (text) => {
    const parsed = parsePrefix(text)
    return 'code' in parsed
      ? new InvalidValue(parsed.code, parsed.message, parsed.suggestion)
      : parsed.prefix
  },
)

textual(
  'ResourceName',
  'The name of an object: 1 to 63 characters out of lower-case letters, digits and hyphen; it starts with a letter and does not end with a hyphen.',
  (text) => {
    if (text.length <= LONGEST_NAME && RESOURCE_NAME.test(text)) return text
    const suggestion = text
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^[^a-z]+/, '')
      .slice(0, LONGEST_NAME)
      .replace(/-+$/, '')
    return new InvalidValue(
      'INVALID_NAME',
      'A name has 1 to 63 lower-case letters, digits and hyphens, starts with a letter and does not end with a hyphen.',
      suggestion === '' ? null : suggestion,
    )
  },
)

textual(
  'LogCursor',
  'A position in the log of all changes. Opaque: keep the one you were given and pass it back to go on from there. It stays good as long as the log reaches back to it (90 days by default).',
  (text) =>
    text !== '' && text.length <= LONGEST_CURSOR
      ? text
      : new InvalidValue('INVALID_CURSOR', 'This is no cursor that was ever given out.'),
)

builder.scalarType('Port', {
  description: 'A TCP or UDP port, 1 to 65535.',
  serialize: (value) => value,
  parseValue: (value) => {
    if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535) {
      return value
    }
    if (typeof value !== 'string' && typeof value !== 'number') {
      throw badUserInput('Port is written as a number.')
    }
    const meant =
      typeof value === 'string' && /^[1-9]\d{0,4}$/.test(value) && Number(value) <= 65_535
    return new InvalidValue(
      'INVALID_PORT',
      'A port is a whole number from 1 to 65535.',
      meant ? String(value) : null,
    )
  },
})
