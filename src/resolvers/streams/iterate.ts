import type { Clock } from '../../schema/context.ts'

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
