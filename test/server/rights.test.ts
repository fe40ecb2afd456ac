import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Permission } from '../../src/schema/context.ts'
import { unavailable } from '../../src/schema/failures.ts'
import { type Caller, permissionIds } from '../../src/server/caller.ts'
import { create, useService } from './service.ts'
import { standing } from './standing.ts'
import { subscribe, TRANSPORTS } from './streams.ts'

const clock = standing()
const ALL: Permission[] = [
  'loadbalancers.get',
  'loadbalancers.list',
  'loadbalancers.create',
  'ipv4reservations.get',
]

/** Whom the token stands for just now. */
let caller: Caller | null | Error = null
const callerWith = (permissions: Permission[], expiresAt?: number): Caller => ({
  subject: 'alice',
  email: null,
  actor: { kind: 'USER', name: 'alice' },
  projects: new Map([['alpha', permissionIds(permissions)]]),
  ...(expiresAt === undefined ? {} : { expiresAt }),
})
const service = useService({
  clock,
  identify: () => {
    if (caller instanceof Error) throw caller
    return caller
  },
})
beforeEach(() => {
  caller = callerWith(ALL)
})

const WATCH = 'subscription { loadBalancers { type loadBalancer { name } } }'
type Event = { type: string; loadBalancer: { name: string } | null }
let made = 0

describe.each(TRANSPORTS)('over %s', (transport) => {
  let stream: ReturnType<typeof subscribe<Event>>
  afterEach(() => stream.end())

  const open = async () => {
    stream = subscribe<Event>(service, transport, WATCH)
    let event = await stream.next()
    while (event?.type !== 'SYNCED') event = await stream.next()
  }
  /** Something happens, and is told. */
  const isTold = async () => {
    made += 1
    const name = `rights-${made}`
    await create(service, name)
    let event = await stream.next()
    while (event?.type === 'HEARTBEAT') event = await stream.next()
    expect(event).toMatchObject({ type: 'ADDED', loadBalancer: { name } })
  }
  /** How it ends: the code, of an error event or of the socket's closing. */
  const ended = async (): Promise<unknown> => {
    try {
      for (let event = await stream.next(); event !== undefined; ) event = await stream.next()
      return 'completed'
    } catch (error) {
      if (error instanceof Error) return JSON.parse(error.message)[0].extensions.code
      return (error as { code: number }).code
    }
  }
  const UNAUTHENTICATED = transport === 'sse' ? 'UNAUTHENTICATED' : 4401
  const FORBIDDEN = transport === 'sse' ? 'FORBIDDEN' : 4403

  test('a stream ends when its token expires', async () => {
    caller = callerWith(ALL, clock.now().getTime() + 45_000)
    await open()
    clock.move(30_000)
    await isTold()
    await expect.poll(() => clock.dues).toContain(15_000)
    caller = null
    clock.move(15_000)
    expect(await ended()).toBe(UNAUTHENTICATED)
  })

  test('nothing is told after the token has expired, even if nobody looked since', async () => {
    caller = callerWith(ALL, clock.now().getTime() + 20_000)
    await open()
    clock.skip(20_001)
    caller = callerWith(ALL)
    await create(service, `late-${transport}`)
    const name = `late-${transport}`
    let event: Event | undefined
    const told: string[] = []
    const ending = (async () => {
      while (true) {
        event = await stream.next()
        if (event?.loadBalancer) told.push(event.loadBalancer.name)
      }
    })()
    await expect(ending).rejects.toBeDefined()
    expect(told).not.toContain(name)
  })

  test('a stream ends within 30 s of the right to it', async () => {
    await open()
    clock.move(29_999)
    caller = callerWith(['loadbalancers.get'])
    clock.move(1)
    expect(await ended()).toBe(FORBIDDEN)
  })

  test('a stream ends within 30 s of when its caller may not see the project any more', async () => {
    await open()
    caller = { ...callerWith([]), projects: new Map([['beta', permissionIds(ALL)]]) }
    clock.move(30_000)
    expect(await ended()).toBe(FORBIDDEN)
  })

  test('a stream ends within 30 s of when its token is withdrawn', async () => {
    await open()
    caller = null
    clock.move(30_000)
    expect(await ended()).toBe(UNAUTHENTICATED)
  })

  test('a right that the stream never used may go', async () => {
    await open()
    caller = callerWith(['loadbalancers.list'])
    clock.move(30_000)
    caller = callerWith(ALL)
    await isTold()
    clock.move(30_000)
    await isTold()
  })

  test('rights that can not be checked hold for a minute more', async () => {
    await open()
    caller = unavailable('The identity provider does not answer.')
    for (let checks = 1; checks <= 2; checks += 1) {
      await expect.poll(() => clock.dues).toContain(30_000)
      clock.move(30_000)
    }
    await expect.poll(() => clock.dues).toContain(30_000)
    caller = callerWith(ALL)
    await isTold()
    caller = unavailable('The identity provider does not answer.')
    clock.move(30_000)
    expect(await ended()).toBe(UNAUTHENTICATED)
  })
})
