import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { DEADLINE, type Store } from './client.ts'
import { sqlState } from './failure.ts'

const attempts = 6

/** Carries a transaction's answer past its ROLLBACK; made by `rollback`. */
class Rollback<T> {
  readonly value: T
  constructor(value: T) {
    this.value = value
  }
}

/** Returned by a transaction's function: undo everything, and still answer `value`. */
export function rollback<T>(value: T): Rollback<T> {
  return new Rollback(value)
}

/** A transaction that wasn't over in time; it is undone. */
export class TransactionTimeout extends Error {
  override readonly name = 'TransactionTimeout'
}

/** Whether something failed only because it took longer than a transaction or a statement may. */
export const tookTooLong = (error: unknown): boolean =>
  error instanceof TransactionTimeout || sqlState(error) === '57014'

/**
 * Runs `work` between BEGIN and COMMIT on one connection and answers what it returns; ROLLBACK when
 * it throws or returns `rollback(value)`. Where PostgreSQL undid the transaction because of others
 * (40001, 40P01), `work` runs again, at most six times in all with full jitter in between, so it
 * must have no other effects. Not over in 5 s: `TransactionTimeout`.
 */
export async function transaction<T>(
  store: Pick<Store, 'pool'>,
  work: (client: pg.PoolClient) => Promise<T | Rollback<T>>,
  options: { random?: () => number; limitMilliseconds?: number } = {},
): Promise<T> {
  const limit = options.limitMilliseconds ?? DEADLINE
  return retried(() => once(store.pool, work, limit), options.random)
}

/**
 * Does `work` again where PostgreSQL undid it because of others (40001, 40P01): what `transaction`
 * does, for a statement that is a transaction by itself.
 */
export async function retried<T>(
  work: () => Promise<T>,
  random: () => number = Math.random,
): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      const state = sqlState(error)
      if ((state !== '40001' && state !== '40P01') || attempt === attempts) throw error
      await delay(random() * Math.min(10 * 2 ** attempt, 250))
    }
  }
}

async function once<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T | Rollback<T>>,
  limit: number,
): Promise<T> {
  const client = await pool.connect()
  const deadline = new Deadline(limit)
  try {
    // In one trip. The deadline here covers the whole (transaction_timeout needs PostgreSQL 17);
    // statement_timeout ends what the server is doing when our connection is cut.
    const begin = `BEGIN; SET LOCAL statement_timeout = ${limit}`
    await deadline.orSooner(client.query(begin))
    const answer = await deadline.orSooner(work(client))
    const undo = answer instanceof Rollback
    await deadline.orSooner(client.query(undo ? 'ROLLBACK' : 'COMMIT'))
    deadline.clear()
    client.release()
    return undo ? answer.value : answer
  } catch (error) {
    const failure = await undone(client, deadline)
    deadline.clear()
    // A connection whose transaction isn't known to be over is closed, which undoes it.
    client.release(failure)
    throw error
  }
}

/** Sends ROLLBACK; answers why that failed, if it did. */
async function undone(client: pg.PoolClient, deadline: Deadline): Promise<Error | undefined> {
  try {
    await deadline.orSooner(client.query('ROLLBACK'))
    return undefined
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

class Deadline {
  readonly #passed: Promise<never>
  readonly #timer: NodeJS.Timeout

  constructor(milliseconds: number) {
    const { promise, reject } = Promise.withResolvers<never>()
    this.#passed = promise
    // Nobody may be waiting when it passes.
    promise.catch(() => undefined)
    this.#timer = setTimeout(
      () => reject(new TransactionTimeout(`not over after ${milliseconds} ms`)),
      milliseconds,
    )
  }

  /** What `promise` comes to, unless the deadline passes first. */
  orSooner<T>(promise: Promise<T>): Promise<T> {
    return Promise.race([promise, this.#passed])
  }

  clear(): void {
    clearTimeout(this.#timer)
  }
}
