import type { Store } from './client.ts'

/** How long (ms) a database may take to count as one that answers. */
const PATIENCE = 2_000

/** Why the store can't be worked with now, in words; undefined where it can. */
export async function whyUnusable(
  store: Pick<Store, 'pool'>,
  patience = PATIENCE,
): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`the database didn't answer within ${patience} ms`), patience)
  })
  const asked = store.pool.query('SELECT FROM store').then(
    ({ rowCount }) => (rowCount === 1 ? undefined : 'the database has not been migrated'),
    (error: unknown) => `the database: ${error instanceof Error ? error.message : String(error)}`,
  )
  const answer = await Promise.race([asked, late])
  clearTimeout(timer)
  return answer
}
