/** What graphql-ws's PROTOCOL.md (graphql-transport-ws) demands of a server, one by one. */
import { afterAll, expect, test } from 'vitest'
import { LIMITS } from '../../../src/server/limits/limits.ts'
import { create, useService } from '../service.ts'
import { following } from './following.ts'
import { openSocket } from './socket.ts'

const followers = following()
const service = useService({
  log: followers.log,
  limits: { ...LIMITS, socketsPerCaller: 3, streamsPerCaller: 3 },
})
followers.over(() => service.store)
afterAll(() => followers.close())

const WATCH = 'subscription { loadBalancers { type loadBalancer { name } } }'
const open = (protocol?: string | null) => openSocket(service.url(), protocol)

test('the subprotocol is agreed on', async () => {
  const socket = await open()
  expect(socket.socket.protocol).toBe('graphql-transport-ws')
  await socket.end()
})

test('a client without the subprotocol is closed with 4406', async () => {
  const socket = await open(null)
  expect((await socket.closed).code).toBe(4406)
})

test('a connection is acknowledged once it is initialised', async () => {
  const socket = await open()
  expect(await socket.init()).toEqual({ type: 'connection_ack' })
  await socket.end()
})

test('a client that does not initialise is closed with 4408 after some seconds', async () => {
  const socket = await open()
  const begun = performance.now()
  expect(await socket.closed).toMatchObject({ code: 4408 })
  expect(performance.now() - begun).toBeGreaterThan(2_500)
})

test('a client that initialises twice is closed with 4429', async () => {
  const socket = await open()
  await socket.init()
  socket.send({ type: 'connection_init' })
  expect((await socket.closed).code).toBe(4429)
})

test('a client that subscribes before it is acknowledged is closed with 4401', async () => {
  const socket = await open()
  socket.subscribe('1', WATCH)
  expect((await socket.closed).code).toBe(4401)
})

test('a client that nobody knows is closed with 4401, and one that may not with 4403', async () => {
  for (const [as, code] of [
    ['stranger', 4401],
    ['bob', 4403],
  ] as const) {
    const socket = await open()
    void socket.init(as)
    expect((await socket.closed).code).toBe(code)
  }
})

test('an id that is in use closes with 4409; one that is over may be used again', async () => {
  const socket = await open()
  await socket.init()
  for (let times = 1; times <= 2; times += 1) {
    socket.subscribe('1', '{ caller { subject } }')
    expect(await socket.next()).toMatchObject({ id: '1', type: 'next' })
    expect(await socket.next()).toEqual({ id: '1', type: 'complete' })
  }
  socket.subscribe('2', WATCH)
  expect(await socket.next()).toMatchObject({ id: '2', type: 'next' })
  socket.subscribe('2', WATCH)
  expect(await socket.closed).toMatchObject({ code: 4409 })
  await followers.nobody()
})

test.each([
  ['no JSON', 'nonsense'],
  ['no object', '"connection_init"'],
  ['nothing', 'null'],
  ['a list', '[]'],
  ['without a type', '{}'],
  ['of a type that there is none', '{"type":"unknown"}'],
  ['of another protocol', '{"type":"start","id":"1","payload":{"query":"{ a }"}}'],
  ['a subscription without an id', '{"type":"subscribe","payload":{"query":"{ a }"}}'],
  ['a subscription with an empty id', '{"type":"subscribe","id":"","payload":{"query":"{ a }"}}'],
  ['a subscription without payload', '{"type":"subscribe","id":"1"}'],
  ['a subscription without a query', '{"type":"subscribe","id":"1","payload":{}}'],
  [
    'variables that are none',
    '{"type":"subscribe","id":"1","payload":{"query":"{ a }","variables":7}}',
  ],
  ['a complete without an id', '{"type":"complete"}'],
  ['an init whose payload is a text', '{"type":"connection_init","payload":"x"}'],
])('a message that is %s closes with 4400', async (_, text) => {
  const socket = await open()
  await socket.init()
  socket.send(text)
  expect(await socket.closed).toMatchObject({ code: 4400, reason: 'Invalid message received' })
})

test('a message that is too large closes with 1009', async () => {
  const socket = await open()
  await socket.init()
  socket.subscribe('1', `{ caller { subject } } # ${'x'.repeat(1_100_000)}`)
  expect((await socket.closed).code).toBe(1009)
})

test('a ping is answered by a pong with the same payload, before and after the init', async () => {
  const socket = await open()
  socket.send({ type: 'ping' })
  expect(await socket.next()).toEqual({ type: 'pong' })
  await socket.init()
  socket.send({ type: 'ping', payload: { at: 7 } })
  expect(await socket.next()).toEqual({ type: 'pong', payload: { at: 7 } })
  socket.send({ type: 'pong' })
  socket.subscribe('1', '{ caller { subject } }')
  expect(await socket.next()).toMatchObject({ type: 'next' })
  await socket.end()
})

test('what can not be executed is one error message and no complete', async () => {
  const socket = await open()
  await socket.init()
  const code = [{ extensions: { code: 'BAD_USER_INPUT' } }]
  socket.subscribe('1', '{ nothing }')
  expect(await socket.next()).toMatchObject({ id: '1', type: 'error', payload: code })
  socket.subscribe('2', '{ caller { subject ')
  expect(await socket.next()).toMatchObject({ id: '2', type: 'error', payload: code })
  socket.send({ id: '3', type: 'subscribe', payload: { query: '{ cursor }', operationName: 'B' } })
  expect(await socket.next()).toMatchObject({ id: '3', type: 'error', payload: code })
  // The ids are free again.
  socket.subscribe('1', '{ caller { subject } }')
  expect(await socket.next()).toMatchObject({ id: '1', type: 'next' })
  expect(await socket.next()).toEqual({ id: '1', type: 'complete' })
  await socket.end()
})

test('a query and a mutation are a next and a complete', async () => {
  const socket = await open()
  await socket.init()
  socket.subscribe('q', '{ caller { subject } }')
  expect(await socket.next()).toMatchObject({
    ...{ id: 'q', type: 'next' },
    payload: { data: { caller: { subject: 'alice' } }, extensions: { cost: { requested: 2 } } },
  })
  expect(await socket.next()).toEqual({ id: 'q', type: 'complete' })
  socket.subscribe('m', 'mutation { deleteLoadBalancer(input: { id: "x" }) { __typename } }')
  expect(await socket.next()).toMatchObject({
    ...{ id: 'm', type: 'next' },
    payload: { data: { deleteLoadBalancer: { __typename: 'NotFound' } } },
  })
  expect(await socket.next()).toEqual({ id: 'm', type: 'complete' })
  await socket.end()
})

test('subscriptions of one socket go on side by side', async () => {
  const socket = await open()
  await socket.init()
  socket.subscribe('a', WATCH)
  socket.subscribe('b', 'subscription { ipv4Reservations { type } }')
  const ids = [(await socket.next()).id, (await socket.next()).id]
  expect(ids.sort()).toEqual(['a', 'b'])
  socket.subscribe('q', '{ caller { subject } }')
  expect((await socket.next()).id).toBe('q')
  await socket.end()
  await followers.nobody()
})

test('complete from the client stops the source, and nothing more is sent', async () => {
  const socket = await open()
  await socket.init()
  socket.subscribe('1', WATCH)
  await socket.next()
  await followers.somebody()
  socket.send({ id: '1', type: 'complete' })
  await followers.nobody()
  await create(service, 'after-complete')
  socket.send({ type: 'ping' })
  expect(await socket.next()).toEqual({ type: 'pong' })
  // One for an id that is not there is ignored.
  socket.send({ id: '7', type: 'complete' })
  socket.send({ type: 'ping' })
  expect(await socket.next()).toEqual({ type: 'pong' })
  await socket.end()
})

test('a subscription that ends by itself is completed', async () => {
  const socket = await open()
  await socket.init()
  socket.subscribe('1', 'subscription { loadBalancer(id: "nonsense") { type } }')
  expect(await socket.next()).toMatchObject({ type: 'next' })
  expect(await socket.next()).toEqual({ id: '1', type: 'complete' })
  await socket.end()
})

test('a socket that is cut frees everything within 1 s', async () => {
  const socket = await open()
  await socket.init()
  for (const id of ['1', '2', '3']) socket.subscribe(id, WATCH)
  await followers.count(3)
  const begun = performance.now()
  socket.socket.terminate()
  await followers.nobody()
  // Five times as long as it may take, since this machine does more than that.
  expect(performance.now() - begun).toBeLessThan(5_000)
})

test('more streams than a caller may have are an error of the one that is too many', async () => {
  const socket = await open()
  await socket.init()
  for (const id of ['1', '2', '3'])
    socket.subscribe(id, 'subscription { ipv4Reservations { type } }')
  for (let count = 0; count < 3; count += 1) expect((await socket.next()).type).toBe('next')
  socket.subscribe('4', WATCH)
  expect(await socket.next()).toMatchObject({
    ...{ id: '4', type: 'error' },
    payload: [{ extensions: { code: 'TOO_MANY_REQUESTS', limit: 'streams' } }],
  })
  socket.send({ id: '1', type: 'complete' })
  await followers.count(2)
  socket.subscribe('4', 'subscription { ipv4Reservations { type } }')
  expect(await socket.next()).toMatchObject({ id: '4', type: 'next' })
  await socket.end()
  await followers.nobody()
})

test('more sockets than a caller may have are closed with 4429; room is made by closing one', async () => {
  const sockets = [await open(), await open(), await open()]
  for (const socket of sockets) expect((await socket.init()).type).toBe('connection_ack')
  const fourth = await open()
  void fourth.init()
  expect(await fourth.closed).toMatchObject({ code: 4429, reason: /sockets/ })
  const other = await openSocket(service.url('beta'))
  expect((await other.init('bob')).type).toBe('connection_ack')
  await other.end()
  await sockets[0]?.end()
  await expect
    .poll(async () => {
      const next = await open()
      const first = await Promise.race([next.init(), next.closed])
      await next.end()
      return 'type' in first ? first.type : first.code
    })
    .toBe('connection_ack')
  for (const socket of sockets) await socket.end()
})
