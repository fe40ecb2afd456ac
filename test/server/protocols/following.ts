import type { Store } from '../../../src/db/client.ts'
import type { Following } from '../../../src/domain/events/follower.ts'
import { type EventLog, openEventLog } from '../../../src/domain/events/log.ts'

/** A log of changes that knows how many follow it: every stream that is open does. */
export function following() {
  let log: EventLog | undefined
  let storeOf: (() => Store) | undefined
  const open = (): EventLog => {
    if (log === undefined && storeOf !== undefined) log = openEventLog(storeOf())
    if (log === undefined) throw new Error('there is no store yet')
    return log
  }
  let followers = 0
  const waiting = new Set<() => void>()
  const change = (by: number) => {
    followers += by
    for (const look of waiting) look()
  }
  const until = (isSo: () => boolean) =>
    new Promise<void>((resolve) => {
      const look = () => {
        if (!isSo()) return
        waiting.delete(look)
        resolve()
      }
      waiting.add(look)
      look()
    })
  return {
    log: {
      head: () => open().head(),
      hint: () => open().hint(),
      close: () => open().close(),
      follow(...asked: Parameters<EventLog['follow']>) {
        change(1)
        return whenOver(open().follow(...asked), () => change(-1))
      },
    } satisfies EventLog,
    /** Says where the store will be. */
    over(store: () => Store) {
      storeOf = store
    },
    close: () => log?.close(),
    count: (number: number) => until(() => followers === number),
    nobody: () => until(() => followers === 0),
    somebody: () => until(() => followers > 0),
  }
}

function whenOver(following: Following, tell: () => void): Following {
  let over = false
  const end = () => {
    if (!over) tell()
    over = true
  }
  return {
    async next() {
      try {
        const next = await following.next()
        if (next.done === true) end()
        return next
      } catch (error) {
        end()
        throw error
      }
    },
    async return() {
      await following.return?.()
      end()
      return { done: true, value: undefined }
    },
    nudge: () => following.nudge(),
    [Symbol.asyncIterator]() {
      return this
    },
  }
}
