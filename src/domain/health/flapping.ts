/** So often a healthy backend may turn unhealthy within so long (ms); with one more it is held out. */
const TURNS = 3
const WITHIN = 5 * 60_000
/** The first hold (ms); each further one is twice as long as the one before, up to the longest. */
const FIRST_HOLD = 60_000
const LONGEST_HOLD = 30 * 60_000

/** How a backend came and went of late. Instants are milliseconds since 1970. */
export type Flaps = {
  /** When it turned unhealthy, the last times that may still count. */
  turns: number[]
  /** Until then it is held out, whatever its probes say; null: it isn't. */
  heldUntil: number | null
  /** Holds that followed each other closely, the last one included. */
  holds: number
}

export const STEADY: Flaps = { turns: [], heldUntil: null, holds: 0 }

/**
 * A healthy backend turned unhealthy. Once too often within the time, it is held out; one that turns
 * again within that time after a hold is held out again, for twice as long.
 */
export function turnedUnhealthy(before: Flaps, at: number): Flaps {
  const turns = [...before.turns.filter((turn) => turn > at - WITHIN), at].slice(-TURNS - 1)
  const again = before.heldUntil !== null && at < before.heldUntil + WITHIN
  if (!again && turns.length <= TURNS) return { turns, heldUntil: null, holds: 0 }
  const holds = again ? before.holds + 1 : 1
  return { turns, heldUntil: at + Math.min(FIRST_HOLD * 2 ** (holds - 1), LONGEST_HOLD), holds }
}

export const isHeld = ({ heldUntil }: Flaps, at: number): boolean =>
  heldUntil !== null && at < heldUntil
