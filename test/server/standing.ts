/** A clock that stands still until it is moved. */
export function standing() {
  const timers = new Set<{ at: number; callback: () => void }>()
  let now = Date.parse('2026-01-01T00:00:00Z')
  return {
    now: () => new Date(now),
    after(ms: number, callback: () => void) {
      const timer = { at: now + ms, callback }
      timers.add(timer)
      return () => void timers.delete(timer)
    },
    /** How long until each timer. */
    get dues() {
      return [...timers].map(({ at }) => at - now)
    },
    get due() {
      return Math.min(...[...timers].map(({ at }) => at - now))
    },
    /** Lets time pass without its timers: as when the process is busy. */
    skip(ms: number) {
      now += ms
    },
    move(ms: number) {
      now += ms
      for (const timer of timers) {
        if (timer.at > now) continue
        timers.delete(timer)
        timer.callback()
      }
    },
  }
}
