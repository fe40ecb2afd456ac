import type { Clock } from '../../schema/context.ts'

/** Silence after which a stream says that it is alive, in milliseconds. */
export const QUIET = 10_000

/**
 * An iterator whose `return` ends it even while a `next` is waiting, which a generator alone doesn't
 * do: `run` is given a signal and must come to its end when that is aborted.
 */
export function endable<T>(run: (signal: AbortSignal) => AsyncGenerator<T>): AsyncGenerator<T> {
  const ending = new AbortController()
  const inner = run(ending.signal)
  return {
    async next() {
      try {
        return await inner.next()
      } catch (error) {
        // What was under way when it ended is nobody's any more.
        if (ending.signal.aborted) return { done: true, value: undefined }
        throw error
      }
    },
    return(value) {
      ending.abort()
      return inner.return(value)
    },
    throw(error) {
      ending.abort()
      return inner.throw(error)
    },
    [Symbol.asyncIterator]() {
      return this
    },
    [Symbol.asyncDispose]: async () => {
      ending.abort()
      await inner.return(undefined)
    },
  }
}

/** What the promise comes to, or undefined when that takes longer than `ms`. */
export async function within<T extends object>(
  promise: Promise<T>,
  ms: number,
  clock: Clock,
): Promise<T | undefined> {
  let cancel: (() => void) | undefined
  const late = new Promise<undefined>((resolve) => {
    cancel = clock.after(Math.max(0, ms), () => resolve(undefined))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    cancel?.()
  }
}

/**
 * Calls back when nothing was heard for `ms`, and again after every such time, until it is ended. It has one
 * timer, however much is heard.
 */
export function whenQuiet(clock: Clock, ms: number, callback: () => void) {
  let since = clock.now().getTime()
  let cancel: () => void = () => undefined
  const wait = () => {
    cancel = clock.after(since + ms - clock.now().getTime(), () => {
      const now = clock.now().getTime()
      if (now - since >= ms) {
        since = now
        callback()
      }
      wait()
    })
  }
  wait()
  return {
    heard: () => {
      since = clock.now().getTime()
    },
    end: () => cancel(),
  }
}
