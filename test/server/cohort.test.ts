import { setTimeout as delay } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { type ExecutionResult, parse } from 'graphql'
import { isAsyncIterable } from 'graphql-yoga'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { type EventLog, openEventLog } from '../../src/domain/events/log.ts'
import { updateLoadBalancer } from '../../src/domain/loadBalancers/update.ts'
import { oneLoadBalancer } from '../../src/resolvers/streams/objects.ts'
import { watch } from '../../src/resolvers/streams/watch.ts'
import type { Clock, Context } from '../../src/schema/context.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { Loaders } from '../../src/schema/loaders.ts'
import { UsedPermissions } from '../../src/server/rights.ts'
import { schema } from '../../src/server/schema.ts'
import { subscribe } from '../../src/server/subscribing.ts'
import { PATIENCE } from '../support/patience.ts'
import { create, field, useService } from './service.ts'
import { standing } from './standing.ts'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

const service = useService()
let log: EventLog
beforeAll(() => {
  log = openEventLog(service.store)
})
afterAll(() => log.close())

const scope = { project: 'alpha', actor: { kind: 'USER' as const, name: 'bob' } }
const DOCUMENT = parse(`subscription ($id: ID!, $after: LogCursor) {
  loadBalancer(id: $id, after: $after) { type cursor
    loadBalancer { generation displayName addresses { ipv4Reservation { name } } } } }`)
type Event = {
  type: string
  cursor: string
  loadBalancer: { generation: number; displayName: string } | null
}
type Watcher = { permissions?: UsedPermissions; clock?: Clock }
const reading = () => new UsedPermissions(['loadbalancers.get', 'loadbalancers.list'])
const realTime: Clock = {
  now: () => new Date(),
  after(ms: number, callback: () => void) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

function contextOf({ permissions = reading(), clock = realTime }: Watcher): Context {
  const { store } = service
  const caller = { subject: 'bob', email: null, actor: scope.actor }
  const loaders = new Loaders(store, 'alpha')
  return { ...{ store, log, clock, caller, permissions, loaders }, project: 'alpha' }
}

async function open(id: string, watcher: Watcher = {}, after: string | null = null) {
  const stream = await subscribe({
    ...{ schema, document: DOCUMENT, variableValues: { id, after } },
    contextValue: contextOf(watcher),
  })
  if (!isAsyncIterable(stream)) throw new Error(JSON.stringify(stream))
  const results = stream[Symbol.asyncIterator]()
  return {
    async next(): Promise<Event | undefined> {
      const { done, value } = await results.next()
      return done === true ? undefined : eventIn(value)
    },
    end: () => results.return?.(undefined),
  }
}

type Stream = Awaited<ReturnType<typeof open>>

/** Some who know all that there is, and wait for more together. */
async function together(id: string, watchers: Watcher[]): Promise<Stream[]> {
  const streams: Stream[] = []
  for (const watcher of watchers) {
    const stream = await open(id, watcher)
    expect((await stream.next())?.type).toBe('ADDED')
    expect((await stream.next())?.type).toBe('SYNCED')
    streams.push(stream)
  }
  const waiting = Promise.all(streams.map((stream) => stream.next()))
  await rename(id, 'Together')
  expect((await waiting).map((event) => event?.type)).toEqual(streams.map(() => 'MODIFIED'))
  return streams
}

const end = (streams: Stream[]) => Promise.all(streams.map((stream) => stream.end()))

function eventIn({ data, errors }: ExecutionResult): Event {
  if (errors !== undefined) throw new Error(JSON.stringify(errors))
  return data?.['loadBalancer'] as Event
}

async function rename(id: string, displayName: string): Promise<void> {
  const uuid = decodeId(id)?.uuid ?? ''
  const changed = await updateLoadBalancer(service.store, scope, { id: uuid, displayName })
  expect(changed).toMatchObject({ loadBalancer: { displayName } })
}

/** How one reads: how long (ms) it takes over each event, in turn, and after how many it leaves and comes back. */
type Habits = { pauses: number[]; stays: number }
const habits = fc.record({
  pauses: fc.array(fc.constantFrom(0, 0, 0, 1, 3, 20), { minLength: 1, maxLength: 5 }),
  stays: fc.constantFrom(2, 5, 20, 1_000),
})

/** Reads until it is shown the last; answers what was wrong with what it was told. */
async function read(id: string, { pauses, stays }: Habits, last: string): Promise<string[]> {
  const wrong: string[] = []
  let cursor: string | null = null
  for (let taken = 0; ; ) {
    const stream = await open(id, {}, cursor)
    let generation = 0
    for (let here = 0; here < stays; here += 1, taken += 1) {
      const event = await stream.next()
      if (event === undefined) return [...wrong, 'the stream ended']
      cursor = event.cursor
      const shown = event.loadBalancer
      if (shown !== null) {
        if (shown.generation <= generation)
          wrong.push(`${shown.generation} after ${generation}: ${event.type}`)
        generation = shown.generation
      }
      if (shown?.displayName === last) {
        await stream.end()
        return wrong
      }
      const pause = pauses[taken % pauses.length] ?? 0
      if (pause > 0) await delay(pause)
    }
    await stream.end()
  }
}

test('however each reads who watches a load balancer with others, they are told only what is newer, and all end with the last', async () => {
  let number = 0
  await fc.assert(
    fc.asyncProperty(fc.array(habits, { minLength: 2, maxLength: 8 }), async (readers) => {
      number += 1
      const { id } = await create(service, `together-${number}`)
      const reading = Promise.all(readers.map((each) => read(id, each, 'the last')))
      for (let change = 0; change < 15; change += 1) {
        await rename(id, `number ${change}`)
        if (change % 4 === 0) await delay(5)
      }
      await rename(id, 'the last')
      expect((await reading).flat()).toEqual([])
    }),
    { numRuns: 8 },
  )
})

test('whoever lost a right goes on with what they may see, and the others are told as before', async () => {
  const { id } = await create(service, 'parted')
  const rights = reading()
  const [first, second] = [await open(id), await open(id, { permissions: rights })]
  for (const stream of [first, second]) {
    expect((await stream.next())?.type).toBe('ADDED')
    expect((await stream.next())?.type).toBe('SYNCED')
  }
  const both = [first.next(), second.next()]
  rights.become(new Set(['loadbalancers.get']))
  await rename(id, 'Parted')
  for (const event of await Promise.all(both)) {
    expect(event).toMatchObject({ type: 'MODIFIED', loadBalancer: { displayName: 'Parted' } })
  }
  await Promise.all([first.end(), second.end()])
})

test(
  'whoever began what others were told with may go, and these are told on',
  async () => {
    const { id } = await create(service, 'outlasting')
    const streams = await Promise.all(Array.from({ length: 3 }, () => open(id)))
    const [first, ...others] = streams
    for (const stream of streams) {
      expect((await stream.next())?.type).toBe('ADDED')
      expect((await stream.next())?.type).toBe('SYNCED')
    }
    const waiting = streams.map((stream) => stream.next())
    await first?.end()
    expect(await waiting[0]).toBeUndefined()
    await rename(id, 'On')
    for (const event of await Promise.all(waiting.slice(1))) {
      expect(event).toMatchObject({ type: 'MODIFIED', loadBalancer: { displayName: 'On' } })
    }
    await Promise.all(others.map((stream) => stream.end()))
  },
  PATIENCE,
)

test('whoever waits while their rights become others is told with the others that it is quiet', async () => {
  const { id } = await create(service, 'quiet')
  const clock = standing()
  const permissions = reading()
  const streams = await together(id, [{ clock }, { clock, permissions }])
  const waiting = Promise.all(streams.map((stream) => stream.next()))
  await expect.poll(() => clock.dues).toEqual([10_000])
  permissions.become(new Set(['loadbalancers.get']))
  clock.move(10_000)
  expect((await waiting).map((event) => event?.type)).toEqual(['HEARTBEAT', 'HEARTBEAT'])
  await end(streams)
})

test('a stream that was not ready for what others were told outlasts the absence of the store', async () => {
  const { id } = await create(service, 'outlasting-absence')
  const clock = standing()
  const streams = await together(id, [{ clock }, { clock }])
  const [ready, slow] = streams
  const told = ready?.next()
  await rename(id, 'Missed')
  expect((await told)?.type).toBe('MODIFIED')
  const failed = Promise.withResolvers<void>()
  const away = vi.spyOn(service.store.pool, 'query').mockImplementation(() => {
    failed.resolve()
    return Promise.reject(new Error('the store is away'))
  })
  onTestFinished(() => away.mockRestore())
  const next = slow?.next()
  await failed.promise
  away.mockRestore()
  expect(await next).toMatchObject({ type: 'MODIFIED', loadBalancer: { displayName: 'Missed' } })
  await end(streams)
})

test('all who were not ready for what one was told read it once', async () => {
  const { id } = await create(service, 'behind')
  const streams = await together(
    id,
    Array.from({ length: 20 }, () => ({})),
  )
  const [ready, ...slow] = streams
  const told = ready?.next()
  await rename(id, 'Missed')
  await told
  const queries = vi.spyOn(service.store.pool, 'query')
  onTestFinished(() => queries.mockRestore())
  for (const event of await Promise.all(slow.map((stream) => stream.next()))) {
    expect(event).toMatchObject({ type: 'MODIFIED', loadBalancer: { displayName: 'Missed' } })
  }
  // The log is looked at now and then besides.
  expect(queries.mock.calls.length).toBeLessThan(slow.length / 2)
  await end(streams)
})

test('a right that only what all were told took is one that each of them used', async () => {
  const { id } = await create(service, 'bound')
  const seeing = () => ({
    permissions: new UsedPermissions(['loadbalancers.get', 'ipv4reservations.get']),
  })
  const watchers = [seeing(), seeing(), seeing()]
  const without = new Set(['loadbalancers.get'])
  const missing = () => watchers.map(({ permissions }) => permissions.missingFrom(without))
  const streams = await together(id, watchers)
  expect(missing()).toEqual([undefined, undefined, undefined])
  const waiting = Promise.all(streams.map((stream) => stream.next()))
  const mutate = async (mutation: string, input: Record<string, unknown>) => {
    const type = `${mutation[0]?.toUpperCase()}${mutation.slice(1)}`
    const { body } = await service.query(
      `mutation ($input: ${type}Input!) { ${mutation}(input: $input) {
         __typename ... on ${type}Payload { reservation { id } } } }`,
      { input },
    )
    return field<{ __typename: string; reservation?: { id: string } }>(body)
  }
  const made = await mutate('createIPv4Reservation', { name: 'bound', region: 'us-east-1' })
  await mutate('bindIPv4Reservation', { reservation: made.reservation?.id, loadBalancer: id })
  for (const event of await waiting) expect(JSON.stringify(event)).toContain('bound')
  expect(missing()).toEqual(Array(3).fill('ipv4reservations.get'))
  await end(streams)
})

test('a stream that goes on from others, one after the other, holds none of them', async () => {
  const { id } = await create(service, 'going-on')
  const contexts: WeakRef<Context>[] = []
  const another = () => {
    const made = contextOf({})
    contexts.push(new WeakRef(made))
    return made
  }
  const watched = oneLoadBalancer(contextOf({}), decodeId(id)?.uuid ?? '')
  let stream = watch(another(), watched, null)
  for (const type of ['ADDED', 'SYNCED']) expect((await stream.next()).value?.type).toBe(type)
  for (let times = 0; times < 10; times += 1) {
    const known = stream.standing()
    if (known === undefined) throw new Error('it knows all that there is')
    const before = stream
    stream = before.from(known, another())
    await before.return(undefined)
  }
  const left = async () => {
    // What a weak reference was asked for stays until the turn is over.
    await new Promise(setImmediate)
    collect()
    return contexts.filter((context) => context.deref() !== undefined).length
  }
  // Its own, and what the loop may still have at hand.
  await expect.poll(left).toBeLessThanOrEqual(2)
  await stream.return(undefined)
})
