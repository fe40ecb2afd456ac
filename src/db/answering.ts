import type { Store } from './client.ts'
import { ANOTHER, type Standing, standingOf } from './history.ts'

/** How long (ms) a database may take to count as one that answers. */
const PATIENCE = 2_000

/** Why the store can't be worked with now, in words; undefined where it can. */
export async function whyUnusable(
  store: Pick<Store, 'pool'>,
  patience = PATIENCE,
): Promise<string | undefined> {
  const answer = await within(patience, askStanding(store))
  return answer === 'late'
    ? `the database didn't answer within ${patience} ms`
    : typeof answer === 'string'
      ? `the database: ${answer}`
      : lacking(answer)
}

/**
 * That another build migrated the database, in words for whoever starts a process on it: that gets no
 * better by waiting. undefined where it is ours, and where nobody can tell now.
 */
export async function whyForeign(
  store: Pick<Store, 'pool'>,
  patience = PATIENCE,
): Promise<string | undefined> {
  const answer = await within(patience, askStanding(store))
  return typeof answer !== 'string' && answer.kind === 'other'
    ? `${answer.how}: ${ANOTHER}`
    : undefined
}

/** A text is what the database, or the way to it, said instead. */
const askStanding = ({ pool }: Pick<Store, 'pool'>): Promise<Standing | string> =>
  standingOf(pool).catch((error: unknown) =>
    error instanceof Error ? error.message : String(error),
  )

async function within<T>(patience: number, asked: Promise<T>): Promise<T | 'late'> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), patience)
  })
  const answer = await Promise.race([asked, late])
  clearTimeout(timer)
  return answer
}

function lacking(standing: Standing): string | undefined {
  switch (standing.kind) {
    case 'complete':
      return undefined
    case 'behind':
      return `the database has not been migrated, it lacks ${standing.first}: npm run migrate`
    case 'unfinished':
      return `the database has not been migrated, ${standing.name} hasn't ended`
    case 'other':
      return `the database: ${standing.how}: ${ANOTHER}`
  }
}
