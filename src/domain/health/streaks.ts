import type { Store } from '../../db/client.ts'

/** How a backend's last probes went, for people to see. */
export type Streak = {
  id: string
  /** Milliseconds since 1970. */
  at: number
  successes: number
  failures: number
  /** What the last probe failed of, in a tenant's words; null: it didn't. */
  lastFailure: string | null
}

/**
 * Writes streaks, last probe times and last failures, all in one statement; they are no transitions, and lost at a
 * crash without harm. `leftBehind`: backends that aren't probed any more, forgotten if they are gone.
 */
export async function recordStreaks(
  store: Store,
  streaks: Streak[],
  leftBehind: string[],
): Promise<void> {
  await store.pool.query({
    name: 'record-probes',
    text: 'SELECT record_probes($1, $2, $3, $4, $5::text[], $6::uuid[])',
    values: [
      column(streaks.map(({ id }) => id)),
      column(streaks.map(({ at }) => at)),
      column(streaks.map(({ successes }) => successes)),
      column(streaks.map(({ failures }) => failures)),
      streaks.map(({ lastFailure }) => lastFailure),
      leftBehind,
    ],
  })
}

/** An array as PostgreSQL reads it: rows as JSON, with their times, took this process twice as long. */
const column = (values: (string | number)[]): string => `{${values.join(',')}}`
