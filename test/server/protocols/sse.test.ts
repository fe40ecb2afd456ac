/** What graphql-sse's PROTOCOL.md demands of a server in its distinct connections mode. */
import { afterAll, expect, test } from 'vitest'
import { create, useService } from '../service.ts'
import { standing } from '../standing.ts'
import { following } from './following.ts'

const followers = following()
const clock = standing()
const service = useService({ log: followers.log, clock })
followers.over(() => service.store)
afterAll(() => followers.close())

const WATCH = 'subscription { loadBalancers { type loadBalancer { name } } }'
const SETTLED = 'subscription ($id: ID!) { loadBalancerSettled(id: $id) { outcome } }'
const accept = 'text/event-stream'
const authorization = 'Bearer alice'

type Sent = { event: string; data: string }

/** What the server sends, field by field as the specification of server-sent events reads it. */
async function* eventsOf(response: Response): AsyncGenerator<Sent | 'comment'> {
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    let end = text.indexOf('\n\n')
    while (end !== -1) {
      const block = text.slice(0, end)
      text = text.slice(end + 2)
      const fields = block.split('\n').filter((line) => !line.startsWith(':'))
      const value = (name: string) =>
        fields
          .filter((line) => line.split(':')[0] === name)
          .map((line) => line.slice(name.length + 1).replace(/^ /, ''))
          .join('\n')
      if (fields.length === 0) yield 'comment'
      else yield { event: value('event'), data: value('data') }
      end = text.indexOf('\n\n')
    }
  }
}

async function open(
  query: string,
  { as = authorization, method = 'POST', variables = {} }: Record<string, unknown> = {},
) {
  const leaving = new AbortController()
  const post = method === 'POST'
  const parameters = new URLSearchParams({ query, variables: JSON.stringify(variables) })
  const response = await fetch(post ? service.url() : `${service.url()}?${parameters}`, {
    method: String(method),
    headers: {
      ...{ accept, authorization: String(as) },
      ...(post ? { 'content-type': 'application/json' } : {}),
    },
    ...(post ? { body: JSON.stringify({ query, variables }) } : {}),
    signal: leaving.signal,
  })
  const events = eventsOf(response)
  return {
    response,
    leave: () => leaving.abort(),
    /** Comments and all. */
    anything: async () => (await events.next()).value,
    async next(): Promise<Sent | undefined> {
      let { value, done } = await events.next()
      while (value === 'comment') ({ value, done } = await events.next())
      return done === true || value === undefined ? undefined : value
    },
  }
}
const data = (sent: Sent | undefined) => JSON.parse(sent?.data ?? 'null')

test.each(['POST', 'GET'])('results come as next events, by %s', async (method) => {
  const stream = await open(WATCH, { method })
  expect(stream.response.status).toBe(200)
  expect(stream.response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  expect(stream.response.headers.get('cache-control')).toMatch(/no-cache|no-store/)
  let sent = await stream.next()
  while (data(sent).data.loadBalancers.type !== 'SYNCED') sent = await stream.next()
  expect(sent?.event).toBe('next')
  await create(service, `sse-${method.toLowerCase()}`)
  expect(data(await stream.next())).toEqual({
    data: {
      loadBalancers: { type: 'ADDED', loadBalancer: { name: `sse-${method.toLowerCase()}` } },
    },
  })
  stream.leave()
  await followers.nobody()
})

test('a subscription that ends by itself is completed, and so is the response', async () => {
  const stream = await open('subscription { loadBalancer(id: "nonsense") { type } }')
  expect((await stream.next())?.event).toBe('next')
  expect(await stream.next()).toEqual({ event: 'complete', data: '' })
  expect(await stream.next()).toBeUndefined()
})

test('a query is one next event and a complete', async () => {
  const stream = await open('{ caller { subject } }')
  expect(data(await stream.next())).toMatchObject({ data: { caller: { subject: 'alice' } } })
  expect((await stream.next())?.event).toBe('complete')
})

test.each([
  ['is not valid', '{ nothing }'],
  ['can not be parsed', 'subscription {'],
  ['has variables that do not fit', 'subscription ($a: ID!) { loadBalancer(id: $a) { type } }'],
  [
    'costs too much',
    '{ loadBalancers(first: 100) { nodes { events(first: 100) { nodes { changes { path } } } } } }',
  ],
])('what %s is told by a next event of an accepted connection', async (_, query) => {
  const stream = await open(query)
  expect(stream.response.status).toBe(200)
  expect(stream.response.headers.get('content-type')).toMatch(/^text\/event-stream/)
  const sent = await stream.next()
  expect(sent?.event).toBe('next')
  expect(data(sent).errors[0].extensions.code).toBe('BAD_USER_INPUT')
  expect((await stream.next())?.event).toBe('complete')
  expect(await stream.next()).toBeUndefined()
})

test('who may not connect is refused before any stream', async () => {
  const stranger = await open(WATCH, { as: 'Bearer stranger' })
  expect(stranger.response.status).toBe(401)
  const other = await open(WATCH, { as: 'Bearer bob' })
  expect(other.response.status).toBe(403)
})

test('a mutation is not executed by GET', async () => {
  const mutation = 'mutation { deleteLoadBalancer(input: { id: "x" }) { __typename } }'
  const stream = await open(mutation, { method: 'GET' })
  expect(stream.response.status).toBe(405)
})

test.each([
  ['by events of its own', WATCH, 10_000, 'HEARTBEAT'],
  // The usual proxies wait for 60 s.
  ['by comments where it has none, so that no proxy takes it for dead', SETTLED, 12_000, 'comment'],
])('a stream that is quiet is kept alive %s', async (_, query, quiet, sign) => {
  const backends = [{ address: 'fd00:1::1' }]
  const { id } = await create(service, `quiet-${quiet}`, { backends })
  const stream = await open(query, { variables: { id } })
  let sent = await stream.next()
  while (sent !== undefined && !/SYNCED|WAITING/.test(sent.data)) sent = await stream.next()
  await expect.poll(() => clock.dues).toContain(quiet)
  clock.move(quiet)
  const told = await stream.anything()
  expect(told === 'comment' ? told : data(told).data.loadBalancers.type).toBe(sign)
  stream.leave()
  await followers.nobody()
})

test('a client that goes away frees everything within 1 s', async () => {
  const streams = [await open(WATCH), await open(WATCH), await open(WATCH)]
  for (const stream of streams) await stream.next()
  await followers.count(3)
  const begun = performance.now()
  for (const stream of streams) stream.leave()
  await followers.nobody()
  // Five times as long as it may take, since this machine does more than that.
  expect(performance.now() - begun).toBeLessThan(5_000)
})
