import type { Conditions } from './paging.ts'
import type { Label } from './records.ts'

/** Absent values: has the key. */
export type LabelFilter = { key: string; values?: string[] | null }

/** As a key stands for one value, their order means nothing. */
export const byKey = (labels: readonly Label[]): Label[] =>
  labels.toSorted((one, other) => (one.key < other.key ? -1 : 1))

/** Each of the filters must match one label of the row's `labels`. */
export function addLabelConditions(
  conditions: Conditions,
  column: string,
  filters: readonly LabelFilter[] | null | undefined,
): void {
  for (const { key, values } of filters ?? []) {
    conditions.add(
      `EXISTS (SELECT FROM jsonb_array_elements(${column}) AS label
       WHERE label ->> 'key' = ? AND (?::text[] IS NULL OR label ->> 'value' = ANY (?::text[])))`,
      key,
      values ?? null,
      values ?? null,
    )
  }
}
