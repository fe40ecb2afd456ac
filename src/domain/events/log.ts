import type { Store } from '../../db/client.ts'
import { onHint } from '../hints.ts'
import { headCursor, type Interest } from './batch.ts'
import { Follower, type Following } from './follower.ts'
import { Tail, type TailOptions } from './tail.ts'

export type EventLog = {
  /** The head of the log now. */
  head(): Promise<string>
  /**
   * What is committed after a cursor, without gaps, in batches as they come, until `signal` ends it.
   * Throws `CursorLost`. A follower that is slow reads larger batches; nothing piles up for it. `interest`:
   * batches with none of these events are left out, all where it isn't given.
   */
  follow(after: string, signal: AbortSignal, interest?: Interest): Following
  /** Something was committed: look at once. */
  hint(): void
  close(): void
}

/** While someone waits, the log is looked at this often (ms) even if no hint comes. */
const POLL = 250
const ALL: Interest = { project: null }

/** The log of changes as one process follows it. */
export function openEventLog(store: Store, options: TailOptions = {}): EventLog {
  const closing = new AbortController()
  const tail = new Tail(store, options)
  const look = () => tail.look()
  onHint(store, closing.signal, look)
  const timer = setInterval(look, POLL)
  timer.unref()
  return {
    head: () => headCursor(store),
    follow: (after, signal, interest = ALL) =>
      new Follower(tail, after, { interest, signals: [signal, closing.signal] }),
    hint: look,
    close() {
      clearInterval(timer)
      closing.abort()
    },
  }
}
