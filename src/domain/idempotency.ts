import { createHash } from 'node:crypto'
import type { Querier } from './querier.ts'

/**
 * One text for what is meant, whatever the order in which its fields came; absent and null are the same.
 * Callers give defaults as what they stand for: inputs that mean the same have one hash.
 */
export function hashOf(meant: object): string {
  const sorted = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(sorted)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, item]) => item !== null && item !== undefined)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, item]) => [key, sorted(item)]),
    )
  }
  return createHash('sha256')
    .update(JSON.stringify(sorted(meant)))
    .digest('hex')
}

/** What a key was used for within the last 24 hours. The caller has locked the project's row. */
export async function findKey(
  client: Querier,
  project: string,
  mutation: string,
  key: string,
): Promise<{ inputHash: string; objectId: string } | undefined> {
  const { rows } = await client.query<{ inputHash: string; objectId: string }>(
    `SELECT input_hash AS "inputHash", object_id AS "objectId" FROM idempotency_key
     WHERE project = $1 AND mutation = $2 AND key = $3
       AND created_at > clock_timestamp() - interval '24 hours'`,
    [project, mutation, key],
  )
  return rows[0]
}

/** Keeps a key with what it made, in the transaction that made it. */
export async function keepKey(
  client: Querier,
  row: { project: string; mutation: string; key: string; inputHash: string; objectId: string },
): Promise<void> {
  await client.query(
    `INSERT INTO idempotency_key (project, mutation, key, input_hash, object_id, created_at)
     VALUES ($1, $2, $3, $4, $5, clock_timestamp())
     ON CONFLICT (project, mutation, key) DO UPDATE
     SET input_hash = excluded.input_hash, object_id = excluded.object_id, created_at = excluded.created_at`,
    [row.project, row.mutation, row.key, row.inputHash, row.objectId],
  )
}
