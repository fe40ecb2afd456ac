/** What may be a backend, as rules on values alone. */
import ipaddr from 'ipaddr.js'
import { InvalidValue, type ValidationIssue } from '../input.ts'
import { QuotaExceeded } from '../refusals.ts'
import type { BackendInput } from './inputs.ts'

/** A rule of the data plane holds at most this many (its CRD's maxItems). */
export const MOST_BACKENDS = 64

/** Ranges in ipaddr.js's words that no endpoint can have. */
const NEVER_A_BACKEND = new Set(['unspecified', 'multicast', 'broadcast', 'loopback', 'linkLocal'])

/** Duplicates and addresses that can't be a backend; the scalars' own issues are collected apart. */
export function backendIssues(
  backends: readonly Pick<BackendInput, 'address' | 'name'>[],
  field: string,
): ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const addresses = new Map<string, number>()
  const names = new Map<string, number>()
  backends.forEach(({ address, name }, index) => {
    const path = [field, String(index)]
    if (!(address instanceof InvalidValue)) {
      issues.push(...addressIssues(address, [...path, 'address']))
      const first = addresses.get(address)
      if (first !== undefined) {
        issues.push({
          code: 'DUPLICATE',
          message: `${address} is given twice: it is number ${first} of the list already.`,
          path: [...path, 'address'],
          suggestion: null,
        })
      } else {
        addresses.set(address, index)
      }
    }
    if (typeof name === 'string') {
      if (names.has(name)) {
        issues.push({
          code: 'DUPLICATE',
          message: `The name "${name}" is given to two backends.`,
          path: [...path, 'name'],
          suggestion: null,
        })
      }
      names.set(name, index)
    }
  })
  return issues
}

function addressIssues(address: string, path: string[]): ValidationIssue[] {
  const parsed = ipaddr.parse(address)
  // ::/96 held IPv4-compatible addresses (RFC 4291, 2.5.5.1: nobody has them any more), which
  // PostgreSQL writes with dots.
  const compatible =
    parsed instanceof ipaddr.IPv6 && parsed.parts.slice(0, 6).every((part) => part === 0)
  if (!compatible && !NEVER_A_BACKEND.has(parsed.range())) return []
  return [
    {
      code: 'INVALID_ADDRESS',
      message: `${address} can't be a backend: no endpoint of a VPC has such an address.`,
      path,
      suggestion: null,
    },
  ]
}

/** Refuses a set that is larger than one rule can hold. */
export function tooManyBackends(count: number): QuotaExceeded | undefined {
  if (count <= MOST_BACKENDS) return undefined
  return new QuotaExceeded({
    message: `A load balancer has at most ${MOST_BACKENDS} backends; this would be ${count}.`,
    path: ['backends'],
    hint: 'Remove some, or spread them over several load balancers.',
    resource: 'networking.datumapis.com/backends',
    limit: MOST_BACKENDS,
    used: count,
  })
}

/** Where in the input each backend is, by its address. */
export const namedBackends = (
  backends: readonly Pick<BackendInput, 'address'>[],
): Map<string, string[]> =>
  new Map(
    backends.map(({ address }, index) => [String(address), ['backends', String(index), 'address']]),
  )
