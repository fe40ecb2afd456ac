import { getIntrospectionQuery } from 'graphql'
import { expect, test } from 'vitest'
import { LIMITS } from '../../src/server/limits/limits.ts'
import { answerOf, create, type Service, useService } from './service.ts'
import { subscribe, TRANSPORTS } from './streams.ts'

const service = useService()
/** Two streams and two sockets for each caller, and a small budget that doesn't refill while a test runs. */
const small = useService({
  limits: {
    ...LIMITS,
    socketsPerCaller: 2,
    streamsPerCaller: 2,
    budget: { most: 5_000, perSecond: 0.5 },
  },
})

/** The one error of an answer: its code and the limit that it names. */
async function refusal(
  query: string,
  variables: Record<string, unknown> = {},
  of: Service = service,
): Promise<{ code: string; limit?: string; message: string }> {
  const { body } = await of.query(query, variables)
  const [error] = body.errors ?? []
  if (error === undefined) throw new Error(`accepted: ${JSON.stringify(body).slice(0, 200)}`)
  expect(body).not.toHaveProperty('data')
  return { ...error.extensions, message: error.message }
}

const refused = (limit: string) => ({ code: 'BAD_USER_INPUT', limit })

test('a document may have 4,000 tokens', async () => {
  const ofTokens = (tokens: number) => `{ a(b: [${'1 '.repeat(tokens - 12)}]) { c } }`
  const most = await refusal(ofTokens(4_000))
  // It is not valid for another reason.
  expect(most.limit).toBeUndefined()
  expect(await refusal(ofTokens(4_001))).toMatchObject(refused('tokens'))
})

test('an operation may go 20 fields deep', async () => {
  const nested = (times: number) =>
    `{ events(first: 1) { nodes { ${'object { ... on LoadBalancer { events(first: 1) { nodes { '.repeat(times)} id ${'} } } } '.repeat(times)} } } }`
  expect((await service.query(nested(5))).body.errors).toBeUndefined()
  expect(await refusal(nested(6))).toMatchObject(refused('depth'))
})

test('a document may have 100 aliases', async () => {
  const aliases = (count: number) =>
    `{ ${Array.from({ length: count }, (_, index) => `a${index}: cursor`).join(' ')} }`
  expect((await service.query(aliases(100))).body.errors).toBeUndefined()
  expect(await refusal(aliases(101))).toMatchObject(refused('aliases'))
})

test('a selection may name a field 20 times', async () => {
  const repeats = (count: number) => `{ ${'caller { subject } '.repeat(count)} }`
  expect((await service.query(repeats(20))).body.errors).toBeUndefined()
  expect(await refusal(repeats(21))).toMatchObject(refused('repeats'))
})

test('an operation may cost 50,000, whether its document or its variables say so', async () => {
  const query = `query ($first: Int) { loadBalancers(first: $first) { nodes {
    backends(first: 100) { nodes { id } } events(first: 100) { nodes { object { id } changes { path } } } } } }`
  const { body } = await service.query(query, { first: 10 })
  expect(body.errors).toBeUndefined()
  expect(body.extensions?.cost?.requested).toBe(2 + 10 * (1 + 1 + 100 + 1 + 100 * (1 + 1 + 8)))
  expect(await refusal(query, { first: 100 })).toMatchObject({
    ...refused('cost'),
    cost: { requested: 110_302, available: 50_000 },
  })
})

test('what the portal lists costs far less than it may', async () => {
  const { body } =
    await service.query(`{ loadBalancers(first: 100) { totalCount pageInfo { hasNextPage } nodes {
    id name protocolName ports { from to } region { code } vpc { id name } labels { key value }
    addresses { address family ipv4Reservation { id name }
      status { provisioned { status reason } advertised { status reason } reachable { status reason } } }
    backends(first: 100) { nodes { id address health { state reason } resolved { status reason } } }
    status { phase conditions { type status reason } backendCounts { total serving } } } } }`)
  expect(body.errors).toBeUndefined()
  expect(body.extensions?.cost?.requested).toBeLessThan(50_000)
})

test('a page may have 100 objects, and 100 ids may be asked for', async () => {
  for (const query of [
    '{ loadBalancers(first: 101) { totalCount } }',
    '{ vpcs(last: 101) { totalCount } }',
    '{ events(first: 101) { nodes { id } } }',
    `{ nodes(ids: ${JSON.stringify(Array(101).fill('x'))}) { id } }`,
  ]) {
    const { body } = await service.query(query)
    expect(body.errors?.[0]?.extensions).toEqual(refused('page'))
    expect(body.errors?.[0]?.message).toMatch(/100/)
  }
})

test('the schema may be asked about itself unless it is configured otherwise', async () => {
  const { body } = await service.query(getIntrospectionQuery({ inputValueDeprecation: true }))
  expect(body.errors).toBeUndefined()
})

test('documents that are made to be slow are refused or answered fast', async () => {
  const fragments = (count: number, body: (next: string) => string) =>
    `{ loadBalancers { ...F0 } } ${Array.from(
      { length: count },
      (_, index) =>
        `fragment F${index} on LoadBalancerConnection { ${index === count - 1 ? 'totalCount' : body(`...F${index + 1}`)} }`,
    ).join(' ')}`
  const wide = Array.from({ length: 90 }, (_, index) => `a${index}: loadBalancers { totalCount }`)
  const documents = [
    fragments(100, (next) => `${next} ${next}`),
    fragments(60, (next) => `nodes { vpc { id } } ${next}`),
    `{ ${'loadBalancers { nodes { id } } '.repeat(500)} }`,
    `{ ${'caller { subject } '.repeat(900)} }`,
    `{ ${wide.join(' ')} }`,
    `{ ${'x '.repeat(3_900)} }`,
    `query { ${'caller @skip(if: false) { subject } '.repeat(300)} }`,
    `{ regions { id } ${'...F '.repeat(1_900)} } fragment F on Query { cursor }`,
    `{ a(b: ${'['.repeat(1_900)}${']'.repeat(1_900)}) }`,
  ]
  const took: [number, string][] = []
  for (const document of documents) {
    const begun = performance.now()
    await service.query(document)
    took.push([Math.round(performance.now() - begun), document.slice(0, 60)])
  }
  // Ten times what the slowest of them takes on a machine that does nothing else.
  expect(took.filter(([ms]) => ms > 2_000)).toEqual([])
})

test('the answer tells what it cost and what the project may still spend', async () => {
  const queries = [
    '{ caller { subject } }',
    '{ caller { subject } loadBalancers(first: 10) { nodes { id } } }',
  ] as const
  // Reading them for the first time may cost something, too.
  for (const query of queries) await small.query(query)
  const one = await small.query(queries[0])
  const two = await small.query(queries[1])
  expect(one.body.extensions?.cost?.requested).toBe(2)
  expect(two.body.extensions?.cost?.requested).toBe(13)
  const left = [one, two].map(({ body }) => body.extensions?.cost?.available ?? 0)
  expect((left[0] ?? 0) - (left[1] ?? 0)).toBe(13)
})

test('a project that has spent its budget is told when it may come again; others are served', async () => {
  const query = '{ loadBalancers(first: 100) { nodes { vpc { id } } } }'
  let answer = await small.query(query)
  for (let tries = 0; answer.status === 200 && tries < 100; tries += 1) {
    answer = await small.query(query)
  }
  expect(answer.status).toBe(429)
  expect(answer.body.errors?.[0]?.extensions).toEqual({
    code: 'TOO_MANY_REQUESTS',
    limit: 'budget',
  })
  expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
  // Whatever they ask, and however.
  const wrong = await small.query('{ nothing }')
  expect(wrong.status).toBe(429)
  for (const transport of TRANSPORTS) {
    const stream = subscribe(small, transport, 'subscription { loadBalancers { type } }')
    await expect(stream.next()).rejects.toSatisfy((error) =>
      /TOO_MANY_REQUESTS|429|Too Many/.test(JSON.stringify(error) + String(error)),
    )
    await stream.end()
  }
  const other = await small.query('{ caller { subject } }', {}, { as: 'bob', project: 'beta' })
  expect(other.status).toBe(200)
})

test.each(TRANSPORTS)(
  'a caller may have two streams over %s where two are configured',
  async (transport) => {
    const watching = 'subscription { loadBalancers { type } }'
    const open = () => subscribe<{ type: string }>(small, transport, watching, {}, 'bob', 'beta')
    const streams = [open(), open()]
    for (const stream of streams) expect((await stream.next())?.type).toBe('SYNCED')
    const third = open()
    await expect(third.next()).rejects.toBeDefined()
    await third.end()
    const raw = await fetch(small.url('beta'), {
      method: 'POST',
      headers: {
        ...{ accept: 'text/event-stream', 'content-type': 'application/json' },
        authorization: 'Bearer bob',
      },
      body: JSON.stringify({ query: watching }),
    })
    expect((await answerOf(raw)).body.errors).toMatchObject([
      { extensions: { code: 'TOO_MANY_REQUESTS', limit: 'streams' } },
    ])
    expect(raw.status).toBe(429)
    await streams[0]?.end()
    // As soon as one is closed there is room again.
    await expect
      .poll(async () => {
        const next = open()
        const type = await next.next().then(
          (event) => event?.type,
          () => 'refused',
        )
        await next.end()
        return type
      })
      .toBe('SYNCED')
    await streams[1]?.end()
  },
)

test('what is refused says which limit it is, for machines too', async () => {
  const made = await create(service, 'limits')
  expect(made.id).toBeDefined()
  const answer = await service.query(
    '{ loadBalancers(first: 100) { nodes { events(first: 100) { nodes { object { ... on LoadBalancer { events(first: 100) { nodes { id } } } } } } } } }',
  )
  expect(answer.body.errors?.[0]?.message).toMatch(/costs \d+; one may cost at most 50000/)
})
