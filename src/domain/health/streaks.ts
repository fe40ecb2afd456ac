import type { Store } from '../../db/client.ts'

/** How a backend's last probes went, for people to see. */
export type Streak = {
  id: string
  /** RFC 3339. */
  at: string
  successes: number
  failures: number
}

/**
 * Writes streaks and last probe times, all in one statement; they are no transitions, and lost at a
 * crash without harm. `leftBehind`: backends that aren't probed any more, forgotten if they are gone.
 */
export async function recordStreaks(
  store: Store,
  streaks: Streak[],
  leftBehind: string[],
): Promise<void> {
  await store.pool.query({
    name: 'record-probes',
    text: 'SELECT record_probes($1, $2::uuid[])',
    values: [JSON.stringify(streaks), leftBehind],
  })
}
