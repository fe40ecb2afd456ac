import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { appendEvent, SYSTEM } from '../../src/domain/events/append.ts'
import { CursorLost, readCursor } from '../../src/domain/events/cursor.ts'
import { type EventLog, openEventLog } from '../../src/domain/events/log.ts'
import { removeOld } from '../../src/domain/retention.ts'
import { useDatabase } from '../support/database.ts'
import { PATIENCE } from '../support/patience.ts'

const database = useDatabase()
let store: Store

beforeAll(() => {
  store = openStore({ connectionString: database.url })
})
afterAll(() => store.close())

const append = (version: number) =>
  appendEvent(store.pool, {
    project: 'demo',
    objectKind: 'LoadBalancer',
    objectId: crypto.randomUUID(),
    version,
    generation: 1,
    reason: 'LoadBalancerCreated',
    message: 'made',
    actor: SYSTEM,
  })

/**
 * A cursor after all that was appended: the head waits for older transactions, those of other databases
 * of the server, too.
 */
async function headAfterAll(log: EventLog): Promise<string> {
  const { rows } = await store.pool.query<{ xid: string }>(
    'SELECT pg_current_xact_id()::text AS xid',
  )
  const now = BigInt(rows[0]?.xid ?? 0)
  const xidOf = (cursor: string) => BigInt(readCursor(cursor)?.xid ?? 0)
  await expect.poll(async () => xidOf(await log.head()) > now).toBe(true)
  return log.head()
}

describe('the log of changes', () => {
  it('lets go of what was kept long enough, and says so to whoever stood before it', async () => {
    const log = openEventLog(store)
    const signal = AbortSignal.timeout(PATIENCE)
    const before = await log.head()
    await append(1)
    const between = await headAfterAll(log)
    await append(2)
    await store.pool.query(`UPDATE event SET at = at - interval '91 days' WHERE version = 1`)
    expect(await removeOld(store, { eventDays: 90 })).toBe(1)
    await expect(log.follow(before, signal)[Symbol.asyncIterator]().next()).rejects.toThrow(
      CursorLost,
    )
    const next = await log.follow(between, signal)[Symbol.asyncIterator]().next()
    expect(next.value?.events.map(({ version }: { version: number }) => version)).toEqual([2])
    log.close()
  })

  it('says so too to whoever began before it, and read on only now', async () => {
    const log = openEventLog(store)
    const before = await headAfterAll(log)
    await append(3)
    const follower = log.follow(before, AbortSignal.timeout(PATIENCE))
    await follower.next()
    await append(4)
    await headAfterAll(log)
    await store.pool.query(`UPDATE event SET at = at - interval '91 days' WHERE version IN (3, 4)`)
    expect(await removeOld(store, { eventDays: 90 })).toBe(2)
    await expect(follower.next()).rejects.toThrow(CursorLost)
    log.close()
  })

  it('tells nothing twice and leaves nothing out, though an older transaction commits last', async () => {
    const log = openEventLog(store)
    const ended = new AbortController()
    const head = await headAfterAll(log)
    const slow = await store.pool.connect()
    await slow.query('BEGIN')
    await slow.query(
      `SELECT append_event('demo', 'LoadBalancer', gen_random_uuid(), 10, 1, 'X', 'x', 'SYSTEM', 's', '[]', NULL)`,
    )
    await append(11)
    const seen: number[] = []
    const reading = (async () => {
      for await (const { events } of log.follow(head, ended.signal)) {
        seen.push(...events.map(({ version }) => version))
        if (seen.length === 3) return
      }
    })()
    await append(12)
    log.hint()
    await slow.query('COMMIT')
    slow.release()
    await reading
    expect(seen.sort()).toEqual([10, 11, 12])
    ended.abort()
    log.close()
  })

  it('is another one once its epoch was renewed, also to whoever follows it', async () => {
    const log = openEventLog(store)
    const iterator = log
      .follow(await headAfterAll(log), AbortSignal.timeout(PATIENCE))
      [Symbol.asyncIterator]()
    // Heard from now on: it may be told before the statement here is answered.
    const lost = expect(iterator.next()).rejects.toThrow(CursorLost)
    await store.pool.query('UPDATE store SET log_epoch = gen_random_uuid()')
    await lost
    log.close()
  })
})

describe('idempotency keys', () => {
  it('are kept for a day', async () => {
    await store.pool.query(
      `INSERT INTO idempotency_key (project, mutation, key, input_hash, object_id, created_at)
       SELECT 'demo', 'createLoadBalancer', hours::text, '', gen_random_uuid(), clock_timestamp() - make_interval(hours => hours)
       FROM unnest(ARRAY[1, 23, 25, 1000]) AS hours`,
    )
    expect(await removeOld(store, { eventDays: 90 })).toBe(2)
    const kept = await store.prisma.idempotencyKey.findMany({ orderBy: { key: 'asc' } })
    expect(kept.map(({ key }) => key)).toEqual(['1', '23'])
  })
})
