import type { Store } from './client.ts'

/**
 * Does `work` unless another process (or another call of this one) is at what has the same name: then
 * undefined is answered at once. It holds one connection meanwhile, and with that the lock goes, too.
 */
export async function alone<T>(
  { pool }: Pick<Store, 'pool'>,
  name: string,
  work: () => Promise<T>,
): Promise<T | undefined> {
  const client = await pool.connect()
  let broken = true
  try {
    const { rows } = await client.query<{ mine: boolean }>(
      'SELECT pg_try_advisory_lock(hashtext($1)) AS mine',
      [name],
    )
    if (rows[0]?.mine !== true) {
      broken = false
      return undefined
    }
    try {
      return await work()
    } finally {
      await client.query('SELECT pg_advisory_unlock(hashtext($1))', [name])
      broken = false
    }
  } finally {
    // One that failed may have the lock still.
    client.release(broken)
  }
}
