import { setImmediate as turn } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { appendEvent, SYSTEM } from '../../src/domain/events/append.ts'
import type { Interest, LogBatch } from '../../src/domain/events/batch.ts'
import { openEventLog } from '../../src/domain/events/log.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let store: Store
beforeAll(() => {
  store = openStore({ connectionString: database.url })
})
afterAll(() => store.close())

const append = (project = 'demo', objectId: string = crypto.randomUUID()) =>
  appendEvent(store.pool, {
    ...{ project, objectKind: 'LoadBalancer', objectId },
    ...{ version: 1, generation: 1, reason: 'LoadBalancerCreated', message: 'made', actor: SYSTEM },
  })

/** A log of its own, and the queries that it sends. */
function open() {
  const queries = vi.spyOn(store.pool, 'query')
  const log = openEventLog(store)
  const ended = new AbortController()
  onTestFinished(() => {
    ended.abort()
    log.close()
    queries.mockRestore()
  })
  return {
    log,
    ended,
    queries,
    reads: () => queries.mock.calls.filter(([query]) => Object(query).name === 'read-log').length,
    answered: async () => {
      await Promise.all(queries.mock.results.map(({ value }) => value))
      await turn()
    },
  }
}

test('those who wait for news ask no more than one at a time, however many hints come', async () => {
  const { log, ended, reads, answered } = open()
  const followed = log.follow(await log.head(), ended.signal)[Symbol.asyncIterator]()
  const next = followed.next()
  await expect.poll(reads).toBeGreaterThan(0)
  // It found nothing, and waits.
  await answered()
  const before = reads()
  for (let hints = 0; hints < 100; hints += 1) log.hint()
  await answered()
  await answered()
  // One, one more for what the first may have missed, and what the log asks by itself now and then.
  expect(reads() - before).toBeGreaterThan(0)
  expect(reads() - before).toBeLessThan(10)
  ended.abort()
  expect((await next).done).toBe(true)
})

test('those who came at different times to a quiet log are served by one query, and miss nothing', async () => {
  const { log, ended, reads, answered } = open()
  const followers = []
  for (let number = 0; number < 10; number += 1) {
    // Each finds another head.
    await store.pool.query('SELECT pg_current_xact_id()')
    followers.push(log.follow(await log.head(), ended.signal))
  }
  const nexts = followers.map((follower) => follower.next())
  await expect.poll(reads).toBeGreaterThanOrEqual(followers.length)
  await answered()
  await answered()
  const before = reads()
  log.hint()
  await answered()
  await answered()
  // Theirs, and what the log asks by itself meanwhile.
  expect(reads() - before).toBeLessThan(followers.length / 2)
  await append()
  log.hint()
  for (const { value } of await Promise.all(nexts)) expect(value?.events).toHaveLength(1)
})

test('whoever is told that nothing is new is told how far the log was read', async () => {
  const { log, ended } = open()
  const head = await log.head()
  const follower = log.follow(head, ended.signal)
  let cursor = head
  while (cursor === head) {
    await store.pool.query('SELECT pg_current_xact_id()')
    const next = follower.next()
    follower.nudge()
    const { value } = await next
    expect(value?.events).toEqual([])
    cursor = value?.cursor ?? head
  }
  await append()
  const again = log.follow(cursor, ended.signal)
  expect((await again.next()).value?.events).toHaveLength(1)
})

test('a follower passes by what it is not told of, and knows how far', async () => {
  const { log, ended, answered } = open()
  const head = await log.head()
  const [objectId, other] = [crypto.randomUUID(), crypto.randomUUID()]
  const follow = (interest: Interest) => log.follow(head, ended.signal, interest)
  const ofOne = follow({ project: 'demo', objectId })
  const ofProject = follow({ project: 'demo' })
  const ofAll = follow({ project: null })
  const told = async ({ value }: IteratorResult<LogBatch, undefined>) =>
    value?.events.map((event) => event.objectId)
  const nexts = [ofOne.next(), ofProject.next()] as const
  for (const [project, id] of [
    ['another', crypto.randomUUID()] as const,
    ['demo', other] as const,
  ]) {
    await append(project, id)
    log.hint()
    expect(await told(await ofAll.next())).toEqual([id])
  }
  expect(await told(await nexts[1])).toEqual([other])
  await answered()
  ofOne.nudge()
  const { value } = await nexts[0]
  expect(value?.events).toEqual([])
  await append('demo', objectId)
  log.hint()
  expect(await told(await ofOne.next())).toEqual([objectId])
  // From where it was told to be, nothing of the past comes again.
  const again = log.follow(value?.cursor ?? '', ended.signal)
  expect(await told(await again.next())).toEqual([objectId])
})

/** The store goes away: reads of the log begin, and fail once they are let. */
async function goneAway() {
  const { log, ended, queries } = open()
  const head = await log.head()
  const ask = store.pool.query.bind(store.pool)
  const begun = Promise.withResolvers<void>()
  const failing = Promise.withResolvers<void>()
  queries.mockRestore()
  const away = vi.spyOn(store.pool, 'query').mockImplementation((query: unknown) => {
    if (Object(query).name !== 'read-log') return Reflect.apply(ask, store.pool, [query])
    begun.resolve()
    return failing.promise.then(() => Promise.reject(new Error('the store is away')))
  })
  onTestFinished(() => away.mockRestore())
  // Before it tries again, time would have to pass.
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const follower = log.follow(head, ended.signal)
  const next = follower.next()
  await begun.promise
  return { head, follower, next, end: () => ended.abort(), fail: () => failing.resolve() }
}

test('a follower that is ended while the store is away ends at once', async () => {
  const { next, end, fail } = await goneAway()
  fail()
  await turn()
  end()
  expect((await next).done).toBe(true)
})

test('a follower that begins while the store is away has begun when it is back', async () => {
  const { log, ended, queries } = open()
  const head = await log.head()
  await append()
  const failed = Promise.withResolvers<void>()
  queries.mockImplementation(() => {
    failed.resolve()
    return Promise.reject(new Error('the store is away'))
  })
  const next = log.follow(head, ended.signal).next()
  await failed.promise
  queries.mockRestore()
  expect((await next).value?.events).toHaveLength(1)
})

test('a follower that is ended while it reads from a store that goes away ends at once', async () => {
  const { next, end, fail } = await goneAway()
  end()
  fail()
  expect((await next).done).toBe(true)
})

test('a follower that is nudged while it reads from a store that goes away answers at once', async () => {
  const { head, follower, next, fail } = await goneAway()
  follower.nudge()
  fail()
  expect((await next).value).toEqual({ events: [], cursor: head })
})
