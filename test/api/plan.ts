import { expect } from 'vitest'
import type { Installation } from '../support/installation.ts'
import { accepted } from './operations.ts'

export type Plan = {
  addresses: { address: string; action: string }[]
  flows: {
    clusters: number
    tableSize: number
    moved: number
    lost: number
    taken: number
    needless: number
    movedShare: number
  }[]
  warnings: { code: string; message: string; path: string[] }[]
  changes: { path: string[]; before: string | null; after: string | null }[]
}

const PLAN = `plan { addresses { address action }
  flows { clusters tableSize moved lost taken needless movedShare }
  warnings { code message path } changes { path before after } }`

/** The operation, asking for its plan too. */
const withPlan = (operation: string): string =>
  operation.replace(/(\.\.\. on \w+Payload \{)/, `$1 ${PLAN}`)

/** The plan of a change that would be accepted; that the answer shows nothing else is checked. */
export async function planned(
  api: Installation['api'],
  operation: string,
  input: Record<string, unknown>,
): Promise<Plan> {
  const answer = await accepted<Record<string, unknown> & { plan: Plan }>(
    api,
    withPlan(operation),
    { ...input, validateOnly: true },
  )
  const { __typename, plan, ...objects } = answer
  for (const value of Object.values(objects)) expect(value ?? []).toEqual([])
  return plan
}

export const codes = ({ warnings }: Plan): string[] => warnings.map(({ code }) => code)

/** Waits until no cluster has anything left to do. */
export async function quiet({ store }: Pick<Installation, 'store'>): Promise<void> {
  await expect
    .poll(
      async () => {
        const { rows } = await store.pool.query(
          `SELECT FROM placement WHERE due IS NOT NULL OR applied <> asked
             OR NOT coalesce((report ->> 'inEffect')::boolean AND (report ->> 'asked')::bigint = asked, false)`,
        )
        return rows.length
      },
      { interval: 20 },
    )
    .toBe(0)
}
