import type { Store } from '../../db/client.ts'
import { onHint } from '../hints.ts'
import { headCursor } from './batch.ts'
import { Follower, type Following } from './follower.ts'
import { Tail, type TailOptions } from './tail.ts'

export type EventLog = {
  /** The head of the log now. */
  head(): Promise<string>
  /**
   * What is committed after a cursor, without gaps, in batches as they come, until `signal` ends it.
   * Throws `CursorLost`. A follower that is slow reads larger batches; nothing piles up for it.
   */
  follow(after: string, signal: AbortSignal): Following
  /** Something was committed: look at once. */
  hint(): void
  close(): void
}

/** While someone waits, the log is looked at this often (ms) even if no hint comes. */
const POLL = 250

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
    follow: (after, signal) => new Follower(tail, after, [signal, closing.signal]),
    hint: look,
    close() {
      clearInterval(timer)
      closing.abort()
    },
  }
}
