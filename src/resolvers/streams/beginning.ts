import type { Store } from '../../db/client.ts'
import { inTurn } from '../../db/turns.ts'

/** No project is called so. */
const TURNS = '(streams that begin)'

/**
 * Reads for a stream that begins, when it is its turn: where a process is started anew thousands come back at once,
 * and would keep all connections from those who ask for something else.
 */
export const beginning = <T>(store: Store, read: () => Promise<T>): Promise<T> =>
  inTurn(store, TURNS, read)
