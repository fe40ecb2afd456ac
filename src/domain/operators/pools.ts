import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import { transaction } from '../../db/transaction.ts'
import { type Prefix, parsePrefix } from '../../ipam/address.ts'
import { type PoolPlan, planPool, SHORTEST_IPV4_PREFIX } from '../../ipam/pool.ts'
import { newId } from '../ids.ts'
import { type Checked, InvalidValue, type ValidationIssue } from '../input.ts'
import { NameTaken, PoolOverlap, type Refusal, ValidationFailed } from '../refusals.ts'
import { findRegion, noRegion } from './regions.ts'

export type CreateAddressPoolInput = {
  name: Checked<string>
  region: string
  prefix: Checked<string>
  /** IPv6: 128, or less for a subnet each; IPv4: 32. */
  allocationPrefixLength?: number | null | undefined
  skipFirstAndLast?: boolean
  coolDownSeconds?: number | null | undefined
  excluded?: Checked<string>[] | null | undefined
}

/** Each counter hands out every sixteenth block: see the table's comment. */
const STRIPES = 16
/** Seconds: 90 days. */
const LONGEST_COOL_DOWN = 7_776_000

/** Makes a pool of a region. That it overlaps no other one is for the database to say. */
export async function createAddressPool(
  store: Store,
  input: CreateAddressPoolInput,
): Promise<{ pool: { id: string } } | Refusal> {
  const region = await findRegion(store, input.region)
  if (region === null) return noRegion(input.region)
  const parsed = readPool(input)
  if (Array.isArray(parsed)) return new ValidationFailed(parsed)
  const { name, prefix, excluded, plan } = parsed
  const id = newId()
  try {
    await transaction(store, async (client) => {
      await client.query(
        `INSERT INTO address_pool (id, name, region_id, family, prefix, allocation_prefix_length,
           skip_first_and_last, cool_down_seconds, excluded, blocks, unusable)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::cidr[], $10, $11)`,
        [
          id,
          name,
          region,
          plan.family,
          prefix.prefix,
          plan.allocationPrefixLength,
          input.skipFirstAndLast ?? false,
          input.coolDownSeconds ?? 600,
          excluded.map((one) => one.prefix),
          String(plan.blocks),
          multirange(plan.unusable),
        ],
      )
      await client.query(
        plan.family === 'IPV6'
          ? `INSERT INTO address_pool_counter (pool_id, stripe, next)
             SELECT $1, stripe, stripe FROM generate_series(0, ${STRIPES - 1}) AS stripe`
          : `INSERT INTO ipv4_address (address, pool_id)
             SELECT host(pool.prefix)::inet + number, pool.id
             FROM address_pool pool CROSS JOIN LATERAL generate_series(0, pool.blocks - 1) AS number
             WHERE pool.id = $1 AND NOT number <@ pool.unusable`,
        [id],
      )
    })
    return { pool: { id } }
  } catch (error) {
    const constraint = violatedConstraint(error)
    if (constraint === 'address_pool_no_overlap') return overlapOf(store, prefix.prefix, id)
    if (constraint !== 'address_pool_name_key') throw error
    return new NameTaken({
      message: `There is a pool "${name}" already.`,
      path: ['name'],
      takenName: name,
    })
  }
}

/** The pool that a prefix overlaps with; `except` is the pool that wants it. */
export async function overlapOf(
  store: Store,
  prefix: string,
  except: string,
): Promise<PoolOverlap> {
  const { rows } = await store.pool.query<{ name: string; prefix: string }>(
    'SELECT name, prefix::text FROM address_pool WHERE prefix && $1::cidr AND id <> $2 ORDER BY prefix LIMIT 1',
    [prefix, except],
  )
  // It may have been deleted since; then the next try succeeds.
  return new PoolOverlap(rows[0]?.name ?? 'unknown', rows[0]?.prefix ?? prefix)
}

/** Block numbers as PostgreSQL writes them. */
export const multirange = (ranges: PoolPlan['unusable']): string =>
  `{${ranges.map(([from, to]) => `[${from},${to})`).join(',')}}`

function readPool(
  input: CreateAddressPoolInput,
): { name: string; prefix: Prefix; excluded: Prefix[]; plan: PoolPlan } | ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const { name, allocationPrefixLength = null } = input
  if (name instanceof InvalidValue) issues.push(issueOf(name, ['name']))
  const prefix = readPrefix(input.prefix, ['prefix'], issues)
  const excluded = readPrefixes(input.excluded ?? [], issues)
  issues.push(...coolDownIssues(input.coolDownSeconds))
  if (prefix !== undefined) issues.push(...lengthIssues(prefix, allocationPrefixLength))
  if (issues.length > 0 || prefix === undefined || name instanceof InvalidValue) return issues
  const plan = planPool({
    prefix,
    allocationPrefixLength: allocationPrefixLength ?? undefined,
    skipFirstAndLast: input.skipFirstAndLast ?? false,
    excluded,
  })
  return { name, prefix, excluded, plan }
}

const issueOf = ({ code, message, suggestion }: InvalidValue, path: string[]): ValidationIssue => ({
  code,
  message,
  path,
  suggestion,
})

/** Reads a prefix; what is wrong with it becomes an issue. */
export function readPrefix(
  given: Checked<string>,
  path: string[],
  issues: ValidationIssue[],
): Prefix | undefined {
  if (given instanceof InvalidValue) return void issues.push(issueOf(given, path))
  const parsed = parsePrefix(given)
  if (!('code' in parsed)) return parsed
  issues.push({ ...parsed, path })
  return undefined
}

/** Reads what is excluded. */
export const readPrefixes = (given: Checked<string>[], issues: ValidationIssue[]): Prefix[] =>
  given.flatMap((one, index) => readPrefix(one, ['excluded', String(index)], issues) ?? [])

export const coolDownIssues = (seconds: number | null | undefined): ValidationIssue[] => {
  if (seconds == null || (seconds >= 0 && seconds <= LONGEST_COOL_DOWN)) return []
  const message = `It goes from 0 to ${LONGEST_COOL_DOWN} seconds (90 days).`
  return [{ code: 'OUT_OF_RANGE', message, path: ['coolDownSeconds'], suggestion: null }]
}

function lengthIssues(prefix: Prefix, length: number | null): ValidationIssue[] {
  const issue = (field: string, message: string): ValidationIssue[] => [
    { code: 'INVALID_PREFIX', message, path: [field], suggestion: null },
  ]
  if (prefix.family === 'IPV4') {
    if (prefix.length < SHORTEST_IPV4_PREFIX) {
      return issue('prefix', `An IPv4 pool is a /${SHORTEST_IPV4_PREFIX} at most.`)
    }
    if (length !== null && length !== 32) {
      return issue('allocationPrefixLength', 'IPv4 addresses are handed out one by one: 32.')
    }
    return []
  }
  if (length !== null && (length < prefix.length || length > 128)) {
    return issue('allocationPrefixLength', `It is ${prefix.length} (the pool's own) to 128.`)
  }
  return []
}
