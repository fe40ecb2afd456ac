/** Time as the watch engine needs it; tests give their own. */
export type Clock = {
  /** Milliseconds; only differences mean something. */
  now(): number
  /** Resolves after `ms`, or at once when the signal is aborted. Never rejects. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
}

/** The machine's monotonic clock. Its sleeps don't keep the process alive. */
export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal.aborted) {
        resolve()
        return
      }
      const done = () => {
        clearTimeout(timer)
        signal.removeEventListener('abort', done)
        resolve()
      }
      const timer = setTimeout(done, ms)
      timer.unref()
      signal.addEventListener('abort', done, { once: true })
    }),
}
