/** Paging by Relay's rules, the same for every list. */
import type { ArgBuilder } from '@pothos/core'
import { InvalidCursor } from '../domain/paging.ts'
import type { Page } from '../domain/records.ts'
import type { BuilderTypes } from './builder.ts'
import { badUserInput, overLimit } from './failures.ts'

export const DEFAULT_PAGE = 20
export const LARGEST_PAGE = 100

/** What to answer, once checked: exactly one of first and last. */
export type PageRequest = { first?: number; after?: string; last?: number; before?: string }

export type PageArgs = {
  first?: number | null | undefined
  after?: string | null | undefined
  last?: number | null | undefined
  before?: string | null | undefined
}

type Total = () => Promise<number> | number

/** The four arguments of every list. */
export function pageArgs(arg: ArgBuilder<BuilderTypes>) {
  return {
    first: arg.int({
      description: `How many from the start of the list, 0 to ${LARGEST_PAGE}; ${DEFAULT_PAGE} where neither first nor last is given.`,
    }),
    after: arg.string({ description: 'Only what comes after this cursor.' }),
    last: arg.int({
      description: `How many from the end of the list, 0 to ${LARGEST_PAGE}. Not together with first.`,
    }),
    before: arg.string({ description: 'Only what comes before this cursor.' }),
  }
}

/** Checks the arguments of a list; anything Relay doesn't allow is the caller's mistake. */
export function pageRequest(args: PageArgs): PageRequest {
  const { first, last } = args
  if (first != null && last != null) throw badUserInput('Give either first or last, not both.')
  for (const [name, value] of Object.entries({ first, last })) {
    if (value == null || (value >= 0 && value <= LARGEST_PAGE)) continue
    const message = `${name} is ${value}; it goes from 0 to ${LARGEST_PAGE}.`
    throw value < 0 ? badUserInput(message) : overLimit(message, 'page')
  }
  return {
    ...(last == null ? { first: first ?? DEFAULT_PAGE } : { last }),
    ...(args.after == null ? {} : { after: args.after }),
    ...(args.before == null ? {} : { before: args.before }),
  }
}

/**
 * A page as the graph shows it. The total is only counted when somebody asks for it, and where there is
 * more than the page: what came after it was read would be counted, but not shown.
 */
export function connection<T>(page: Page<T>, total: Total | null) {
  const edges = page.items.map(({ cursor, item }) => ({ cursor, node: item }))
  const isWhole = !page.hasNextPage && !page.hasPreviousPage
  return {
    edges,
    pageInfo: {
      hasNextPage: page.hasNextPage,
      hasPreviousPage: page.hasPreviousPage,
      startCursor: edges[0]?.cursor ?? null,
      endCursor: edges.at(-1)?.cursor ?? null,
    },
    total: total !== null && isWhole ? () => edges.length : total,
  }
}

/** A page of ids with the objects read for them; what vanished in between is left out. */
export async function connectionOf<T>(
  listed: Promise<Page<string>>,
  read: (ids: string[]) => Promise<(T | null)[]>,
  total: Total | null,
) {
  const page = await listed
  const found = await read(page.items.map(({ item }) => item))
  const items = page.items.flatMap(({ cursor }, index) => {
    const item = found[index]
    return item == null ? [] : [{ cursor, item }]
  })
  return connection({ ...page, items }, total)
}

/** How a list that is in memory, ordered by a key, is paged. */
export type Keys<T> = {
  of(item: T): string
  cursor(item: T): string
  /** The key in a cursor; null where it isn't one of the list's. */
  read(cursor: string): string | null
}

/**
 * A page of a list that is in memory. A cursor names a place in the order also when its item is gone.
 * Throws `InvalidCursor`.
 */
export function pageOfList<T>(
  list: readonly T[],
  { first, after, last, before }: PageRequest,
  keys: Keys<T>,
): Page<T> {
  const keyIn = (cursor: string): string => {
    const key = keys.read(cursor)
    if (key === null) throw new InvalidCursor()
    return key
  }
  const placeOf = (is: (item: T) => boolean): number => {
    const index = list.findIndex(is)
    return index === -1 ? list.length : index
  }
  const afterKey = after === undefined ? undefined : keyIn(after)
  const beforeKey = before === undefined ? undefined : keyIn(before)
  const from = afterKey === undefined ? 0 : placeOf((item) => keys.of(item) > afterKey)
  const end = beforeKey === undefined ? list.length : placeOf((item) => keys.of(item) >= beforeKey)
  const to = Math.max(from, end)
  const start = last === undefined ? from : Math.max(from, to - last)
  const stop = first === undefined ? to : Math.min(to, from + first)
  return {
    items: list.slice(start, stop).map((item) => ({ cursor: keys.cursor(item), item })),
    hasNextPage: stop < list.length,
    hasPreviousPage: start > 0,
  }
}

/** The resolver of `totalCount`. */
export function total(list: { total: Total | null }): Promise<number> | number {
  if (list.total === null) throw new Error('a list that is not counted has no totalCount')
  return list.total()
}
