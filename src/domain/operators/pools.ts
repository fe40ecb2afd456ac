import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import { transaction } from '../../db/transaction.ts'
import { type Prefix, parsePrefix } from '../../ipam/address.ts'
import { type PoolPlan, planPool, SHORTEST_IPV4_PREFIX } from '../../ipam/pool.ts'
import { newId } from '../ids.ts'
import type { ValidationIssue } from '../input.ts'
import { NameTaken, type Refusal, Refused, ValidationFailed } from '../refusals.ts'
import { noRegion } from './regions.ts'

export type CreateAddressPoolInput = {
  name: string
  region: string
  prefix: string
  /** IPv6: 128, or less for a subnet each; IPv4: 32. */
  allocationPrefixLength?: number | null
  skipFirstAndLast?: boolean
  coolDownSeconds?: number | null
  excluded?: string[] | null
}

/** Each counter hands out every sixteenth block: see the table's comment. */
const STRIPES = 16

/** Makes a pool of a region. That it overlaps no other one is for the database to say. */
export async function createAddressPool(
  store: Store,
  input: CreateAddressPoolInput,
): Promise<{ pool: { id: string } } | Refusal> {
  const region = await store.prisma.region.findUnique({
    where: { code: input.region },
    select: { id: true },
  })
  if (region === null) return noRegion(input.region)
  const parsed = readPool(input)
  if (Array.isArray(parsed)) return new ValidationFailed(parsed)
  const { prefix, plan } = parsed
  const id = newId()
  const unusable = `{${plan.unusable.map(([from, to]) => `[${from},${to})`).join(',')}}`
  try {
    await transaction(store, async (client) => {
      await client.query(
        `INSERT INTO address_pool (id, name, region_id, family, prefix, allocation_prefix_length,
           skip_first_and_last, cool_down_seconds, excluded, blocks, unusable)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::cidr[], $10, $11)`,
        [
          id,
          input.name,
          region.id,
          plan.family,
          prefix.prefix,
          plan.allocationPrefixLength,
          input.skipFirstAndLast ?? false,
          input.coolDownSeconds ?? 600,
          input.excluded ?? [],
          String(plan.blocks),
          unusable,
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
    return refusalOf(error, input)
  }
}

function refusalOf(error: unknown, input: CreateAddressPoolInput): Refusal {
  const constraint = violatedConstraint(error)
  if (constraint === 'address_pool_name_key') {
    return new NameTaken({
      message: `There is a pool "${input.name}" already.`,
      path: ['name'],
      takenName: input.name,
    })
  }
  if (constraint === 'address_pool_no_overlap') {
    return new Refused('POOL_OVERLAP', {
      message: `${input.prefix} shares addresses with another pool.`,
      path: ['prefix'],
      hint: 'An address belongs to one pool; take a prefix that is free.',
    })
  }
  throw error
}

function readPool(
  input: CreateAddressPoolInput,
): { prefix: Prefix; plan: PoolPlan } | ValidationIssue[] {
  const issues: ValidationIssue[] = []
  const read = (text: string, path: string[]): Prefix[] => {
    const parsed = parsePrefix(text)
    if (!('code' in parsed)) return [parsed]
    issues.push({ ...parsed, path })
    return []
  }
  const [prefix] = read(input.prefix, ['prefix'])
  const excluded = (input.excluded ?? []).flatMap((text, index) =>
    read(text, ['excluded', String(index)]),
  )
  if (prefix === undefined) return issues
  const problem = lengthProblem(prefix, input.allocationPrefixLength ?? undefined)
  if (problem) issues.push(problem)
  if (issues.length > 0) return issues
  const plan = planPool({
    prefix,
    allocationPrefixLength: input.allocationPrefixLength ?? undefined,
    skipFirstAndLast: input.skipFirstAndLast ?? false,
    excluded,
  })
  return { prefix, plan }
}

function lengthProblem(prefix: Prefix, length: number | undefined): ValidationIssue | undefined {
  const issue = (field: string, message: string): ValidationIssue => ({
    code: 'INVALID_PREFIX',
    message,
    path: [field],
    suggestion: null,
  })
  if (prefix.family === 'IPV4') {
    if (prefix.length < SHORTEST_IPV4_PREFIX) {
      return issue('prefix', `An IPv4 pool is a /${SHORTEST_IPV4_PREFIX} at most.`)
    }
    if (length !== undefined && length !== 32) {
      return issue('allocationPrefixLength', 'IPv4 addresses are handed out one by one: 32.')
    }
    return undefined
  }
  if (length !== undefined && (length < prefix.length || length > 128)) {
    return issue('allocationPrefixLength', `It is ${prefix.length} (the pool's own) to 128.`)
  }
  return undefined
}
