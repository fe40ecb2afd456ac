import type { Conditions } from './paging.ts'

/** Absent values: has the key. */
export type LabelFilter = { key: string; values?: string[] | null }

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
