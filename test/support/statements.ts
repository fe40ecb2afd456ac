import pg from 'pg'

/**
 * The statements that `work` has this process send to PostgreSQL, by whatever library, with their values.
 * What follows the log of changes all the time is left out.
 */
export async function statementsOf(
  work: () => Promise<unknown>,
): Promise<{ statements: string[]; values: unknown[] }> {
  const statements: string[] = []
  const values: unknown[] = []
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function recorded(this: pg.Client, ...given: unknown[]) {
    const [first, second] = given
    const config = typeof first === 'object' && first !== null ? first : {}
    const text = String('text' in config ? config.text : first)
    if (!/pg_snapshot|pg_current|LISTEN|NOTIFY/i.test(text)) {
      statements.push(text)
      values.push('values' in config ? config.values : second)
    }
    return Reflect.apply(query, this, given)
  }
  try {
    await work()
  } finally {
    pg.Client.prototype.query = query
  }
  return { statements, values }
}
