import type { Pool } from 'pg'
import { sqlState } from '../db/failure.ts'
import { isId } from './ids.ts'
import type { Page } from './records.ts'

/** Which part of a list: forward or backward, sizes and cursors checked by the graph. */
export type PageRequest = { first?: number; after?: string; last?: number; before?: string }

/** Conditions of a statement that is put together from what a filter names, and their values. */
export class Conditions {
  readonly values: unknown[] = []
  private readonly parts: string[] = []

  /** `sql` holds one `?` for each value, in order. */
  add(sql: string, ...values: unknown[]): void {
    let index = 0
    this.parts.push(
      `(${sql.replaceAll('?', () => {
        this.values.push(values[index])
        index += 1
        return `$${this.values.length}`
      })})`,
    )
  }

  get sql(): string {
    return this.parts.length === 0 ? 'true' : this.parts.join(' AND ')
  }
}

/** How a list is ordered: an expression of one SQL type, ties broken by an id. */
export type Order = {
  sql: string
  type: 'text' | 'timestamptz' | 'bigint' | 'inet'
  descending: boolean
}

/** A cursor that no list of this order gave out; the caller is told so by whoever shows lists. */
export class InvalidCursor extends Error {
  override name = 'InvalidCursor'
}

type List = { from: string; item: string; id: string; order: Order; conditions: Conditions }

/**
 * One page of a list by keyset: what is added or removed meanwhile neither repeats nor skips a row.
 * `item` is what is read, `id` breaks ties. Throws `InvalidCursor`.
 */
export async function readPage<T>(pool: Pool, list: List, page: PageRequest): Promise<Page<T>> {
  const backward = page.last !== undefined
  const size = page.last ?? page.first ?? 20
  const after = page.after === undefined ? undefined : readCursor(page.after, list.order)
  const before = page.before === undefined ? undefined : readCursor(page.before, list.order)
  if (after === null || before === null) throw new InvalidCursor()
  const { order, conditions } = list
  const key = `(${order.sql}, ${list.id})`
  const forwardSign = order.descending ? '<' : '>'
  const backwardSign = order.descending ? '>' : '<'
  if (after) conditions.add(`${key} ${forwardSign} (?::${order.type}, ?::uuid)`, after[0], after[1])
  if (before) {
    conditions.add(`${key} ${backwardSign} (?::${order.type}, ?::uuid)`, before[0], before[1])
  }
  const direction = order.descending === backward ? 'ASC' : 'DESC'
  const rows = await readRows<T>(
    pool,
    list,
    `ORDER BY ${order.sql} ${direction}, ${list.id} ${direction} LIMIT ${size + 1}`,
  )
  const more = rows.length > size
  const kept = rows.slice(0, size)
  if (backward) kept.reverse()
  return {
    items: kept.map((row) => ({
      cursor: writeCursor(list.order, row.key, row.id),
      item: row.item,
    })),
    // What a cursor names is beyond the page, also where the page is filled from the other end.
    hasNextPage: before !== undefined || (!backward && more),
    hasPreviousPage: after !== undefined || (backward && more),
  }
}

/** A key that can't be read as the order's type (SQLSTATE class 22) is in no cursor that we made. */
async function readRows<T>(
  pool: Pool,
  list: List,
  order: string,
): Promise<{ item: T; key: string; id: string }[]> {
  try {
    const { rows } = await pool.query<{ item: T; key: string; id: string }>(
      `SELECT ${list.item} AS item, (${list.order.sql})::text AS key, ${list.id} AS id
       FROM ${list.from} WHERE ${list.conditions.sql} ${order}`,
      list.conditions.values,
    )
    return rows
  } catch (error) {
    if (sqlState(error)?.startsWith('22')) throw new InvalidCursor()
    throw error
  }
}

/** The exact number of rows. */
export async function countRows(
  pool: Pool,
  list: { from: string; conditions: Conditions },
): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `SELECT count(*)::integer AS count FROM ${list.from} WHERE ${list.conditions.sql}`,
    list.conditions.values,
  )
  return rows[0]?.count ?? 0
}

/** Names the order that it was made for: a key of another one is of another type. */
const writeCursor = (order: Order, key: string, id: string): string =>
  Buffer.from(JSON.stringify([order.sql, key, id])).toString('base64url')

/** null: not a cursor of ours for this order. */
function readCursor(cursor: string, order: Order): [string, string] | null {
  try {
    const parsed: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (!Array.isArray(parsed)) return null
    const [made, key, id]: unknown[] = parsed
    if (made !== order.sql || typeof key !== 'string' || typeof id !== 'string') return null
    // Decoding passes over what base64url doesn't have, and over what is too short for a byte.
    return isId(id) && writeCursor(order, key, id) === cursor ? [key, id] : null
  } catch {
    return null
  }
}

/** What is searched for inside a text, with LIKE's own characters taken literally. */
export const containing = (text: string): string => `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`
