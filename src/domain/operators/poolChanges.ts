/**
 * Changes of pools. Nobody is ever moved: an address that somebody has, or that a cluster may still
 * carry, stays in its pool, or the change is refused.
 */
import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import { rollback, transaction } from '../../db/transaction.ts'
import { planPool, renumbered, SHORTEST_IPV4_PREFIX } from '../../ipam/pool.ts'
import type { AddressFamily } from '../../rules/wanted.ts'
import { isId } from '../ids.ts'
import type { Checked, ValidationIssue } from '../input.ts'
import { NotFound, PoolInUse, Refusal, ValidationFailed } from '../refusals.ts'
import { type PoolRecord, type PoolState, readPools } from './poolRecord.ts'
import { coolDownIssues, multirange, overlapOf, readPrefix, readPrefixes } from './pools.ts'

export type UpdateAddressPoolInput = {
  id: string
  state?: PoolState | null | undefined
  prefix?: Checked<string> | null | undefined
  coolDownSeconds?: number | null | undefined
  excluded?: Checked<string>[] | null | undefined
}

type Row = {
  family: AddressFamily
  prefix: string
  length: number
  skip: boolean
  excluded: string[]
}

/** How many holders a refusal names. */
const NAMED = 10
/** So many blocks of a range that is let in again are handed out again. */
const REOPENED = 65_536

/** Changes what is given; new bounds hold for what is handed out from now on. */
export async function updateAddressPool(
  store: Store,
  input: UpdateAddressPoolInput,
): Promise<{ pool: PoolRecord } | Refusal> {
  const { id } = input
  try {
    return await transaction<Refusal | { pool: PoolRecord }>(store, async (client) => {
      const pool = await lockPool(client, id)
      if (pool instanceof Refusal) return rollback(pool)
      const issues: ValidationIssue[] = [...coolDownIssues(input.coolDownSeconds)]
      const prefix =
        input.prefix == null ? readPrefix(pool.prefix, [], issues) : boundsOf(input, pool, issues)
      const excluded = readPrefixes(input.excluded ?? pool.excluded, issues)
      if (issues.length > 0 || prefix === undefined) return rollback(new ValidationFailed(issues))
      await client.query(
        `UPDATE address_pool SET state = coalesce($2, state), cool_down_seconds = coalesce($3, cool_down_seconds)
         WHERE id = $1`,
        [id, input.state ?? null, input.coolDownSeconds ?? null],
      )
      const bounds = { prefix: prefix.prefix, excluded: excluded.map((one) => one.prefix) }
      if (bounds.prefix !== pool.prefix || String(bounds.excluded) !== String(pool.excluded)) {
        const holders = await moveBounds(client, id, pool, bounds)
        const path = [bounds.prefix === pool.prefix ? 'excluded' : 'prefix']
        if (holders.length > 0) return rollback(new PoolInUse(holders, path))
      }
      return { pool: await present(store, client, id) }
    })
  } catch (error) {
    if (violatedConstraint(error) !== 'address_pool_no_overlap') throw error
    return overlapOf(store, String(input.prefix), id)
  }
}

/** Takes a pool away from which nobody has an address. Answers it as it was last. */
export async function deleteAddressPool(
  store: Store,
  id: string,
): Promise<{ pool: PoolRecord } | Refusal> {
  return transaction<Refusal | { pool: PoolRecord }>(store, async (client) => {
    const pool = await lockPool(client, id)
    if (pool instanceof Refusal) return rollback(pool)
    await lockAddresses(client, id)
    const holders = await holdersIn(client, id, 'true', [])
    if (holders.length > 0) return rollback(new PoolInUse(holders, ['id']))
    const last = await present(store, client, id)
    await client.query('DELETE FROM ipv6_block WHERE pool_id = $1', [id])
    await client.query('DELETE FROM ipv4_address WHERE pool_id = $1', [id])
    await client.query('DELETE FROM address_pool WHERE id = $1', [id])
    return { pool: last }
  })
}

/** The new prefix, or why it can't be one of this pool. */
function boundsOf(input: UpdateAddressPoolInput, pool: Row, issues: ValidationIssue[]) {
  const prefix = readPrefix(input.prefix ?? '', ['prefix'], issues)
  if (prefix === undefined) return undefined
  const wrong = (message: string) =>
    issues.push({ code: 'INVALID_PREFIX', message, path: ['prefix'], suggestion: null })
  if (prefix.family !== pool.family) wrong('A pool keeps its family: make another pool.')
  else if (prefix.family === 'IPV4' && prefix.length < SHORTEST_IPV4_PREFIX) {
    wrong(`An IPv4 pool is a /${SHORTEST_IPV4_PREFIX} at most.`)
  } else if (prefix.length > pool.length) {
    wrong(`The pool hands out blocks of /${pool.length}: it can't be smaller than one.`)
  }
  return prefix
}

/** What no longer is in the pool: `$2` its prefix, `$3` what is excluded, `$4` whether the ends are skipped. */
const leaving = (block: string): string => `(NOT ${block} <<= $2::cidr
  OR EXISTS (SELECT FROM unnest($3::cidr[]) AS barred WHERE barred && ${block})
  OR ($4::boolean AND (${block} >>= host($2::cidr)::inet OR ${block} >>= host(broadcast($2::cidr))::inet)))`

/** Gives the pool other bounds. Answers who has something that would leave it: then it must be undone. */
async function moveBounds(
  client: PoolClient,
  id: string,
  pool: Row,
  bounds: { prefix: string; excluded: string[] },
): Promise<string[]> {
  const read = (text: string) => readPrefix(text, [], [])
  const [before, prefix] = [read(pool.prefix), read(bounds.prefix)]
  if (before === undefined || prefix === undefined) throw new Error(`not a prefix: ${pool.prefix}`)
  const excluded = bounds.excluded.flatMap((text) => read(text) ?? [])
  const { family, length, skip } = pool
  const plan = planPool({
    prefix,
    allocationPrefixLength: length,
    skipFirstAndLast: skip,
    excluded,
  })
  await lockAddresses(client, id)
  const values = [bounds.prefix, bounds.excluded, skip]
  const condition = leaving(family === 'IPV6' ? 'taken.prefix' : 'taken.address')
  const holders = await holdersIn(client, id, condition, values)
  if (holders.length > 0) return holders
  const { rows } = await client.query<{ reopened: string }>(
    `UPDATE address_pool pool SET prefix = $2, excluded = $3::cidr[], blocks = $4, unusable = $5, geometry = pool.geometry + 1
     FROM address_pool old WHERE pool.id = $1 AND old.id = $1
     RETURNING (old.unusable - pool.unusable)::text AS reopened`,
    [id, bounds.prefix, bounds.excluded, String(plan.blocks), multirange(plan.unusable)],
  )
  await client.query(
    family === 'IPV6'
      ? `DELETE FROM ipv6_block taken WHERE pool_id = $1 AND load_balancer_id IS NULL AND ${condition}`
      : `DELETE FROM ipv4_address taken WHERE pool_id = $1 AND reservation_id IS NULL AND ${condition}`,
    [id, ...values],
  )
  if (family === 'IPV4') {
    await client.query(
      `INSERT INTO ipv4_address (address, pool_id)
       SELECT host(pool.prefix)::inet + number, pool.id
       FROM address_pool pool CROSS JOIN LATERAL generate_series(0, pool.blocks - 1) AS number
       WHERE pool.id = $1 AND NOT number <@ pool.unusable ON CONFLICT DO NOTHING`,
      [id],
    )
  } else {
    await recount(client, id, renumbered(before, prefix, length), rows[0]?.reopened ?? '{}')
  }
  // Somebody may have taken one that was free when it was looked at first.
  return holdersIn(client, id, condition, values)
}

/**
 * Makes counters count in the new numbers, which are the old ones and `offset`. What was handed out
 * behind a new beginning is jumped over later; what was barred and isn't any more is put with what was
 * given back, since counters never go back.
 */
async function recount(
  client: PoolClient,
  id: string,
  offset: bigint,
  reopened: string,
): Promise<void> {
  if (offset === 0n) {
    await client.query(
      `INSERT INTO ipv6_block (prefix, vip, pool_id, reusable_at)
       SELECT set_masklen(block.start, pool.allocation_prefix_length)::cidr,
         CASE WHEN pool.allocation_prefix_length >= 127 THEN block.start ELSE block.start + 1 END,
         pool.id, clock_timestamp()
       FROM address_pool pool
       CROSS JOIN LATERAL unnest($2::int8multirange) AS range
       CROSS JOIN LATERAL generate_series(lower(range), least(upper(range), lower(range) + ${REOPENED}) - 1) AS number
       JOIN address_pool_counter counter ON counter.pool_id = pool.id AND counter.stripe = number % 16
       CROSS JOIN LATERAL (SELECT block_start(pool.prefix, number, 128 - pool.allocation_prefix_length) AS start) block
       WHERE pool.id = $1 AND number < counter.next AND number < pool.blocks
       ON CONFLICT DO NOTHING`,
      [id, reopened],
    )
  } else if (offset > 0n) {
    // Where the offset is beyond all numbers, so is what was handed out.
    await client.query(
      `UPDATE address_pool pool SET handed = CASE WHEN $2::numeric >= pool.blocks THEN '{}'::int8multirange
         ELSE int8multirange(int8range($2::numeric::bigint, least(pool.blocks, $2::numeric + (
           SELECT max(next) FROM address_pool_counter WHERE pool_id = pool.id))::bigint)) END
       WHERE pool.id = $1`,
      [id, String(offset)],
    )
    await client.query('UPDATE address_pool_counter SET next = stripe WHERE pool_id = $1', [id])
  } else {
    await client.query(
      `UPDATE address_pool_counter counter SET next = greatest(counter.stripe, old.next + $2::numeric)::bigint
       FROM address_pool_counter old
       WHERE counter.pool_id = $1 AND old.pool_id = $1
         AND old.stripe = mod(mod(counter.stripe - $2::numeric, 16) + 16, 16)`,
      [id, String(offset)],
    )
  }
  await client.query(
    `UPDATE address_pool_counter counter SET geometry = pool.geometry
     FROM address_pool pool WHERE pool.id = $1 AND counter.pool_id = $1`,
    [id],
  )
}

/** Whoever is just being given an address is waited for; nobody is given one until this is over. */
async function lockAddresses(client: PoolClient, id: string): Promise<void> {
  await client.query(
    'SELECT FROM address_pool_counter WHERE pool_id = $1 ORDER BY stripe FOR UPDATE',
    [id],
  )
  await client.query('SELECT FROM ipv4_address WHERE pool_id = $1 ORDER BY address FOR UPDATE', [
    id,
  ])
}

/** The first addresses that fulfil a condition and that somebody has, or a cluster may still carry. */
async function holdersIn(
  client: PoolClient,
  id: string,
  condition: string,
  values: unknown[],
): Promise<string[]> {
  const { rows } = await client.query<{ address: string }>(
    `SELECT host(taken.address) AS address FROM (
       SELECT vip AS address, prefix, load_balancer_id AS holder FROM ipv6_block WHERE pool_id = $1
       UNION ALL
       SELECT address, address::cidr, reservation_id FROM ipv4_address WHERE pool_id = $1) AS taken
     WHERE (taken.holder IS NOT NULL
       OR EXISTS (SELECT FROM hold WHERE hold.vip = taken.address AND hold.gone_at IS NULL))
       AND ${condition} ORDER BY taken.address LIMIT ${NAMED}`,
    [id, ...values],
  )
  return rows.map(({ address }) => address)
}

async function lockPool(client: PoolClient, id: string): Promise<Row | NotFound> {
  const { rows } = isId(id)
    ? await client.query<Row>(
        `SELECT family, prefix::text, allocation_prefix_length AS length, skip_first_and_last AS skip,
           excluded::text[] FROM address_pool WHERE id = $1 FOR UPDATE`,
        [id],
      )
    : { rows: [] }
  return (
    rows[0] ??
    new NotFound({
      message: 'There is no such pool.',
      path: ['id'],
      hint: 'List them by the query addressPools.',
      missingId: id,
    })
  )
}

async function present(store: Store, client: PoolClient, id: string): Promise<PoolRecord> {
  const pool = (await readPools(store, [id], client)).get(id)
  if (pool === undefined) throw new Error(`pool ${id} is locked and not there`)
  return pool
}
