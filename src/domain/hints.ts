import { setTimeout as delay } from 'node:timers/promises'
import type { PoolClient } from 'pg'
import type { Store } from '../db/client.ts'

const CHANNEL = 'load_balancers_changed'
/** NOTIFY takes a database-wide lock at commit, so a process sends at most one in this time (ms). */
const APART = 20

type Sender = { local: Set<() => void>; last: number; timer: NodeJS.Timeout | undefined }
const senders = new WeakMap<Store['pool'], Sender>()

/**
 * Says that something was committed: look again. Never part of a transaction, and free to be lost:
 * everybody who listens also polls, so a lost hint costs latency and nothing else.
 */
export function hint(store: Store): void {
  const sender = senderOf(store)
  for (const listener of sender.local) listener()
  if (sender.timer !== undefined) return
  const wait = Math.max(0, sender.last + APART - performance.now())
  sender.timer = setTimeout(() => {
    sender.timer = undefined
    sender.last = performance.now()
    store.pool.query(`NOTIFY ${CHANNEL}`).catch(() => {
      // A hint that couldn't be sent is a lost hint; the store's own errors are met by real work.
    })
  }, wait)
}

/**
 * Calls `listener` on every hint, of this process at once and of others through PostgreSQL, until
 * `signal` ends it. Reconnects for as long as it takes, waiting up to 5 s in between.
 */
export function onHint(store: Store, signal: AbortSignal, listener: () => void): void {
  const { local } = senderOf(store)
  local.add(listener)
  signal.addEventListener('abort', () => local.delete(listener), { once: true })
  void listen(store, signal, listener)
}

async function listen(store: Store, signal: AbortSignal, listener: () => void): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    let client: PoolClient | undefined
    let stop: () => void = () => undefined
    try {
      client = await store.pool.connect()
      const connection = client
      const ended = new Promise<Error | undefined>((resolve) => {
        connection.on('error', resolve)
        connection.on('end', () => resolve(undefined))
        stop = () => resolve(undefined)
        signal.addEventListener('abort', stop)
        // It may have come while the connection was waited for.
        if (signal.aborted) resolve(undefined)
      })
      connection.on('notification', listener)
      await connection.query(`LISTEN ${CHANNEL}`)
      attempt = 0
      // What happened while nobody listened.
      listener()
      await ended
      connection.release(true)
    } catch (error) {
      client?.release(error instanceof Error ? error : true)
    } finally {
      signal.removeEventListener('abort', stop)
    }
    if (signal.aborted) return
    await delay(Math.random() * Math.min(100 * 2 ** attempt, 5_000), undefined, { ref: false })
  }
}

function senderOf(store: Store): Sender {
  const known = senders.get(store.pool)
  if (known !== undefined) return known
  const sender: Sender = { local: new Set(), last: Number.NEGATIVE_INFINITY, timer: undefined }
  senders.set(store.pool, sender)
  return sender
}
