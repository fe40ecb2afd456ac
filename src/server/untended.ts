import type { Store } from '../db/client.ts'
import { lookForUntended, tellUntended, type Unheld } from '../domain/reachability/untended.ts'
import type { Clock } from '../schema/context.ts'

/** It is looked for clusters that nobody serves this often (ms). */
const LOOK = 5_000

/**
 * Has the status of load balancers say so where no worker is left that would. Failures are told to
 * `onError`, and it is looked again.
 */
export function watchUntended({
  store,
  clock,
  onError,
}: {
  store: Store
  clock: Clock
  onError: (error: unknown) => void
}): { close(): Promise<void> } {
  const closing = new AbortController()
  let unheld: Unheld = new Map()
  let looking: Promise<void> | undefined
  const look = async () => {
    try {
      unheld = await lookForUntended(store, unheld)
      await tellUntended(store, closing.signal)
    } catch (error) {
      // What was seen before counts no more: workers couldn't renew their leases either, perhaps.
      unheld = new Map()
      onError(error)
    }
  }
  let cancel = (): void => undefined
  const later = () => {
    cancel = clock.after(LOOK, () => {
      looking = look().finally(() => {
        if (!closing.signal.aborted) later()
      })
    })
  }
  later()
  return {
    async close() {
      closing.abort()
      cancel()
      await looking
    },
  }
}
