import { describe, expect, test } from 'vitest'
import { globalId } from '../../src/schema/ids.ts'
import { create, field, useService } from './service.ts'
import { subscribe, TRANSPORTS } from './streams.ts'

type Event = {
  type: string
  cursor: string
  id: string | null
  loadBalancer: { name: string; displayName: string | null; generation: number } | null
}
const WATCH = `subscription ($filter: LoadBalancerFilter, $after: LogCursor) {
  loadBalancers(filter: $filter, after: $after) {
    type cursor at id loadBalancer { name displayName generation }
  }
}`
const WATCH_ONE = `subscription ($id: ID!, $after: LogCursor) {
  loadBalancer(id: $id, after: $after) {
    type cursor at id loadBalancer { name displayName generation }
  }
}`
const service = useService()

const named = (prefix: string) => ({ filter: { nameContains: prefix } })
const show = (event: Event | undefined) =>
  event && [event.type, event.loadBalancer?.name ?? null, event.loadBalancer?.displayName ?? null]

async function change(id: string, input: Record<string, unknown>) {
  const { body } = await service.query(
    `mutation ($input: UpdateLoadBalancerInput!) { updateLoadBalancer(input: $input) {
       __typename ... on UserError { message } } }`,
    { input: { id, ...input } },
  )
  expect(field(body)).toEqual({ __typename: 'UpdateLoadBalancerPayload' })
}

async function remove(id: string) {
  const { body } = await service.query(
    `mutation ($id: ID!) { deleteLoadBalancer(input: { id: $id }) { __typename } }`,
    { id },
  )
  expect(field(body)).toEqual({ __typename: 'DeleteLoadBalancerPayload' })
}

describe.each(TRANSPORTS)('over %s', (transport) => {
  const watch = (variables: Record<string, unknown>, query = WATCH) =>
    subscribe<Event>(service, transport, query, variables)

  test('a stream begins with what is there and goes on with every change', async () => {
    const made = await create(service, `${transport}-life-a`)
    const stream = watch(named(`${transport}-life`))
    expect(show(await stream.next())).toEqual(['ADDED', `${transport}-life-a`, null])
    expect(show(await stream.next())).toEqual(['SYNCED', null, null])
    await create(service, `${transport}-other`)
    await create(service, `${transport}-life-b`)
    expect(show(await stream.next())).toEqual(['ADDED', `${transport}-life-b`, null])
    await change(made.id, { displayName: 'One' })
    expect(show(await stream.next())).toEqual(['MODIFIED', `${transport}-life-a`, 'One'])
    await change(made.id, { name: `${transport}-gone-a` })
    expect(show(await stream.next())).toEqual(['LEFT', `${transport}-gone-a`, 'One'])
    await change(made.id, { name: `${transport}-life-a`, displayName: 'Two' })
    expect(show(await stream.next())).toEqual(['ADDED', `${transport}-life-a`, 'Two'])
    await remove(made.id)
    // Nothing serves it, so it may be gone before anybody saw it go.
    let event = await stream.next()
    if (event?.type === 'MODIFIED') event = await stream.next()
    expect(show(event)).toEqual(['DELETED', `${transport}-life-a`, 'Two'])
    expect(event?.id).toBe(made.id)
    await stream.end()
  })

  test('a stream that goes on from a cursor misses nothing and begins with no snapshot', async () => {
    const kept = await create(service, `${transport}-resume-a`)
    const gone = await create(service, `${transport}-resume-b`)
    const first = watch(named(`${transport}-resume`))
    await first.next()
    await first.next()
    const synced = await first.next()
    expect(synced?.type).toBe('SYNCED')
    await first.end()
    await change(kept.id, { displayName: 'Meanwhile' })
    await remove(gone.id)
    await create(service, `${transport}-resume-c`)
    const again = watch({ ...named(`${transport}-resume`), after: synced?.cursor })
    const events = [await again.next(), await again.next(), await again.next(), await again.next()]
    // What happened to different objects may be told in any order.
    const [end, ...told] = events.map(show).toReversed()
    expect(told.toSorted()).toEqual([
      ['ADDED', `${transport}-resume-a`, 'Meanwhile'],
      ['ADDED', `${transport}-resume-c`, null],
      ['DELETED', `${transport}-resume-b`, null],
    ])
    expect(end).toEqual(['SYNCED', null, null])
    await again.end()
  })

  test('a part of a snapshot can not be taken for the whole: its cursor is answered with RESYNC', async () => {
    await create(service, `${transport}-part-a`)
    await create(service, `${transport}-part-b`)
    const first = watch(named(`${transport}-part`))
    const added = await first.next()
    await first.end()
    const again = watch({ ...named(`${transport}-part`), after: added?.cursor })
    const types = [await again.next(), await again.next(), await again.next(), await again.next()]
    expect(types.map((event) => event?.type)).toEqual(['RESYNC', 'ADDED', 'ADDED', 'SYNCED'])
    await again.end()
  })

  test('a cursor that is none of ours is answered with RESYNC and everything anew', async () => {
    await create(service, `${transport}-lost`)
    const stream = watch({ ...named(`${transport}-lost`), after: 'bm9uZQ' })
    const seen: (string | undefined)[] = []
    while (seen.at(-1) !== 'ADDED') seen.push((await stream.next())?.type)
    expect(seen.slice(-2)).toEqual(['RESYNC', 'ADDED'])
    expect((await stream.next())?.type).toBe('SYNCED')
    await stream.end()
  })

  test('the stream of one load balancer ends with it', async () => {
    const made = await create(service, `${transport}-one`)
    const stream = watch({ id: made.id }, WATCH_ONE)
    expect(show(await stream.next())).toEqual(['ADDED', `${transport}-one`, null])
    const synced = await stream.next()
    expect(synced?.type).toBe('SYNCED')
    await remove(made.id)
    const types: (string | undefined)[] = []
    while (types.at(-1) !== 'DELETED') types.push((await stream.next())?.type)
    expect(await stream.next()).toBeUndefined()
    // Whoever was away meanwhile is told the same.
    const late = watch({ id: made.id, after: synced?.cursor }, WATCH_ONE)
    expect(show(await late.next())).toEqual(['DELETED', `${transport}-one`, null])
    expect(await late.next()).toBeUndefined()
  })

  test('the stream of what is not there ends at once', async () => {
    for (const id of ['nonsense', await service.vpc()]) {
      const stream = watch({ id }, WATCH_ONE)
      expect((await stream.next())?.type).toBe('SYNCED')
      expect(await stream.next()).toBeUndefined()
    }
  })

  test('a reader that is slow gets the latest state, no version twice and none after a newer', async () => {
    const made = await create(service, `${transport}-slow`)
    const stream = watch({ id: made.id }, WATCH_ONE)
    await stream.next()
    await stream.next()
    for (let round = 1; round <= 30; round += 1) await change(made.id, { displayName: `${round}` })
    const generations: number[] = []
    while (generations.at(-1) !== 31) {
      generations.push((await stream.next())?.loadBalancer?.generation ?? 0)
    }
    expect(generations).toEqual([...new Set(generations)].sort((a, b) => a - b))
    await stream.end()
  })

  test('waiting tells what is missing, and how it came out', async () => {
    const settled = `subscription ($id: ID!, $generation: Int, $timeoutSeconds: Int) {
      loadBalancerSettled(id: $id, generation: $generation, timeoutSeconds: $timeoutSeconds) {
        outcome generation unmet { type status } loadBalancer { name }
      }
    }`
    const wait = (variables: Record<string, unknown>) =>
      subscribe<{ outcome: string; generation: number; unmet: { type: string }[] }>(
        service,
        transport,
        settled,
        variables,
      )
    const served = await create(service, `${transport}-wait`, {
      backends: [{ address: 'fd00:1::1' }],
      protocol: { tcp: { port: transport === 'sse' ? 444 : 445 } },
    })
    const superseded = wait({ id: served.id })
    const waiting = await superseded.next()
    expect(waiting).toMatchObject({ outcome: 'WAITING', generation: 1 })
    expect(waiting?.unmet.map(({ type }) => type)).toEqual(['Ready', 'Provisioned'])
    await change(served.id, { protocol: { tcp: { port: transport === 'sse' ? 446 : 447 } } })
    let last = await superseded.next()
    while (last?.outcome === 'WAITING') last = await superseded.next()
    expect(last).toMatchObject({ outcome: 'SUPERSEDED', generation: 1 })
    expect(await superseded.next()).toBeUndefined()

    const late = wait({ id: served.id, timeoutSeconds: 0 })
    let outcome = (await late.next())?.outcome
    while (outcome === 'WAITING') outcome = (await late.next())?.outcome
    expect(outcome).toBe('TIMED_OUT')

    // Without backends nothing has to be done anywhere.
    const idle = await create(service, `${transport}-wait-idle`)
    expect(await wait({ id: idle.id }).next()).toMatchObject({
      outcome: 'SETTLED',
      unmet: [{ type: 'Ready' }],
    })
    await remove(idle.id)
    for (const timeoutSeconds of [0, 60]) {
      expect(await wait({ id: idle.id, timeoutSeconds }).next()).toMatchObject({
        outcome: 'DELETED',
      })
    }
  })

  test('waiting for what never was, or was of another project, is refused in the same words', async () => {
    const wait = (id: string, project: string) =>
      subscribe(
        service,
        transport,
        'subscription ($id: ID!) { loadBalancerSettled(id: $id, timeoutSeconds: 0) { outcome } }',
        { id },
        project === 'alpha' ? 'alice' : 'bob',
        project,
      )
    const gone = await create(service, `${transport}-wait-gone`)
    await remove(gone.id)
    const never = globalId('LoadBalancer', crypto.randomUUID())
    for (const [id, project] of [
      ['nonsense', 'alpha'],
      [never, 'alpha'],
      [gone.id, 'beta'],
    ] as const) {
      const refused = wait(id, project).next()
      await expect(refused).rejects.toThrow('There is no load balancer of that id')
      await expect(refused).rejects.toThrow('BAD_USER_INPUT')
    }
  })

  test('backends are told one by one: that come, that change, that go', async () => {
    type Told = {
      type: string
      cursor: string
      backend: { address: string; adminState: string } | null
      counts: { total: number; disabled: number } | null
    }
    const made = await create(service, `${transport}-backends`, {
      protocol: { udp: { port: transport === 'sse' ? 53 : 54 } },
      backends: [{ address: 'fd00:1::1' }, { address: 'fd00:1::2' }],
    })
    const follow = (after?: string) =>
      subscribe<Told>(
        service,
        transport,
        `subscription ($id: ID!, $after: LogCursor) { backendHealth(loadBalancer: $id, after: $after) {
           type cursor backend { address adminState } counts { total disabled } } }`,
        { id: made.id, after },
      )
    let stream = follow()
    let position = ''
    const told = async () => {
      const { type, cursor = '', backend, counts } = (await stream.next()) ?? {}
      position = cursor
      return [type, backend?.address, backend?.adminState, counts?.total, counts?.disabled]
    }
    const none = [undefined, undefined, undefined, undefined]
    expect(await told()).toEqual(['ADDED', 'fd00:1::1', 'ENABLED', 2, 0])
    expect(await told()).toEqual(['ADDED', 'fd00:1::2', 'ENABLED', 2, 0])
    expect(await told()).toEqual(['SYNCED', ...none])
    const mutate = async (mutation: string, backends: string) => {
      const { body } = await service.query(
        `mutation ($id: ID!) { ${mutation}(input: { loadBalancer: $id, ${backends} }) { __typename } }`,
        { id: made.id },
      )
      expect(field(body)).toEqual({ __typename: expect.stringMatching(/Payload$/) })
    }
    await mutate('updateBackends', 'backends: [{ address: "fd00:1::2", adminState: DISABLED }]')
    expect(await told()).toEqual(['MODIFIED', 'fd00:1::2', 'DISABLED', 2, 1])
    await mutate('addBackends', 'backends: [{ address: "fd00:1::3" }]')
    expect(await told()).toEqual(['ADDED', 'fd00:1::3', 'ENABLED', 3, 1])
    await mutate('removeBackends', 'addresses: ["fd00:1::1"]')
    expect(await told()).toEqual(['DELETED', 'fd00:1::1', 'ENABLED', 2, 1])

    // What went while the client was away can't be told one by one: it is to forget what it has.
    await stream.end()
    await mutate('removeBackends', 'addresses: ["fd00:1::2"]')
    stream = follow(position)
    expect(await told()).toEqual(['RESYNC', ...none])
    expect(await told()).toEqual(['ADDED', 'fd00:1::3', 'ENABLED', 1, 0])
    expect(await told()).toEqual(['SYNCED', ...none])
    await stream.end()
    stream = follow(position)
    expect(await told()).toEqual(['SYNCED', ...none])
    await mutate('removeBackends', 'addresses: ["fd00:1::3"]')
    expect(await told()).toEqual(['RESYNC', ...none])
    expect(await told()).toEqual(['SYNCED', ...none])
    await stream.end()
  })

  test('reservations are told with their load balancer, and as they were last', async () => {
    type Told = {
      type: string
      id: string | null
      reservation: { name: string; state: string; bindings: unknown[] } | null
    }
    const stream = subscribe<Told>(
      service,
      transport,
      `subscription ($filter: IPv4ReservationFilter) { ipv4Reservations(filter: $filter) {
         type id reservation { name state bindings { state loadBalancer { name } } } } }`,
      named(`${transport}-held`),
    )
    expect((await stream.next())?.type).toBe('SYNCED')
    const mutate = async (mutation: string, input: Record<string, unknown>) => {
      const type = `${mutation[0]?.toUpperCase()}${mutation.slice(1)}Input!`
      const { body } = await service.query(
        `mutation ($input: ${type}) { ${mutation}(input: $input) { __typename } }`,
        { input },
      )
      expect(field(body)).toEqual({ __typename: expect.stringMatching(/Payload$/) })
    }
    await mutate('createIPv4Reservation', { name: `${transport}-held`, region: 'us-east-1' })
    const added = await stream.next()
    expect(added).toMatchObject({ type: 'ADDED', reservation: { state: 'RESERVED', bindings: [] } })
    const holder = await create(service, `${transport}-holder`)
    const both = { reservation: added?.id, loadBalancer: holder.id }
    await mutate('bindIPv4Reservation', both)
    let event = await stream.next()
    expect(event).toMatchObject({
      type: 'MODIFIED',
      reservation: { bindings: [{ loadBalancer: { name: `${transport}-holder` } }] },
    })
    await mutate('unbindIPv4Reservation', both)
    while (event?.reservation?.state !== 'RESERVED') event = await stream.next()
    await mutate('deleteIPv4Reservation', { id: added?.id })
    while (event?.type === 'MODIFIED') event = await stream.next()
    expect(event).toMatchObject({
      type: 'DELETED',
      id: added?.id,
      reservation: { name: `${transport}-held` },
    })
    await stream.end()
  })

  test('the log is told as it grows, and from a cursor on', async () => {
    const log = `subscription ($filter: EventFilter, $after: LogCursor) {
      events(filter: $filter, after: $after) { type cursor event { reason object { id } objectId } }
    }`
    const made = await create(service, `${transport}-log`)
    const filter = { objectId: made.id }
    type Told = { type: string; cursor: string; event: { reason: string; object: unknown } | null }
    const stream = subscribe<Told>(service, transport, log, { filter })
    let synced = await stream.next()
    // While anybody else's transaction is open, the log is told from a point before this one's.
    while (synced?.type === 'ADDED') synced = await stream.next()
    expect(synced?.type).toBe('SYNCED')
    await change(made.id, { displayName: 'Changed' })
    const updated = await stream.next()
    expect(updated).toMatchObject({ type: 'ADDED', event: { object: { id: made.id } } })
    await stream.end()
    const again = subscribe<Told>(service, transport, log, { filter, after: synced?.cursor })
    expect((await again.next())?.event).toEqual(updated?.event)
    expect((await again.next())?.type).toBe('SYNCED')
    await again.end()
  })

  test('who may not watch is told so', async () => {
    const watching = `subscription { ipv4Reservations { type } }`
    const stream = subscribe(service, transport, watching, {}, 'reader')
    await expect(stream.next()).rejects.toThrow(/FORBIDDEN/)
    await stream.end()
  })
})
