import { TABLE_SIZE, type Table } from './table.ts'

/** What becomes of a table's slots: moved = lost + taken + needless. */
export type Impact = {
  /** Their backend changes. */
  moved: number
  /** Their backend leaves. */
  lost: number
  /** Their backend stays, and a new one takes them. */
  taken: number
  /** They go from one backend that stays to another that stays. */
  needless: number
}

/**
 * The cost of going from one table to another. null: no table, nothing is served. Where nothing was
 * served before nothing moves; where nothing is served afterwards everything is lost.
 */
export function impactOf(before: Table | null, after: Table | null): Impact {
  if (before === null) return { moved: 0, lost: 0, taken: 0, needless: 0 }
  if (after === null) return { moved: TABLE_SIZE, lost: TABLE_SIZE, taken: 0, needless: 0 }
  const former = new Set(before.keys)
  const staying = new Set(after.keys)
  let lost = 0
  let taken = 0
  let needless = 0
  for (const [slot, index] of before.slots.entries()) {
    const from = before.keys[index]
    const to = after.keys[after.slots[slot] ?? 0]
    if (from === undefined || to === undefined || from === to) continue
    if (!staying.has(from)) lost += 1
    else if (!former.has(to)) taken += 1
    else needless += 1
  }
  return { moved: lost + taken + needless, lost, taken, needless }
}
