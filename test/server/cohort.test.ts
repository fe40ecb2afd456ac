import { setTimeout as delay } from 'node:timers/promises'
import fc from 'fast-check'
import { type ExecutionResult, parse } from 'graphql'
import { isAsyncIterable } from 'graphql-yoga'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type EventLog, openEventLog } from '../../src/domain/events/log.ts'
import { updateLoadBalancer } from '../../src/domain/loadBalancers/update.ts'
import type { Context } from '../../src/schema/context.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { Loaders } from '../../src/schema/loaders.ts'
import { UsedPermissions } from '../../src/server/rights.ts'
import { schema } from '../../src/server/schema.ts'
import { subscribe } from '../../src/server/subscribing.ts'
import { PATIENCE } from '../support/patience.ts'
import { create, useService } from './service.ts'

const service = useService()
let log: EventLog
beforeAll(() => {
  log = openEventLog(service.store)
})
afterAll(() => log.close())

const scope = { project: 'alpha', actor: { kind: 'USER' as const, name: 'bob' } }
const DOCUMENT = parse(`subscription ($id: ID!, $after: LogCursor) {
  loadBalancer(id: $id, after: $after) { type cursor loadBalancer { generation displayName } } }`)
type Event = {
  type: string
  cursor: string
  loadBalancer: { generation: number; displayName: string } | null
}
const reading = () => new UsedPermissions(['loadbalancers.get', 'loadbalancers.list'])
const clock = {
  now: () => new Date(),
  after(ms: number, callback: () => void) {
    const timer = setTimeout(callback, ms)
    return () => clearTimeout(timer)
  },
}

function contextOf(permissions: UsedPermissions): Context {
  const { store } = service
  const caller = { subject: 'bob', email: null, actor: scope.actor }
  const loaders = new Loaders(store, 'alpha')
  return { ...{ store, log, clock, caller, permissions, loaders }, project: 'alpha' }
}

async function open(id: string, after: string | null = null, permissions = reading()) {
  const stream = await subscribe({
    ...{ schema, document: DOCUMENT, variableValues: { id, after } },
    contextValue: contextOf(permissions),
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
    const stream = await open(id, cursor)
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
  const [first, second] = [await open(id), await open(id, null, rights)]
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
