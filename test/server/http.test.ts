import { connect } from 'node:net'
import { describe, expect, test } from 'vitest'
import { startServer } from '../../src/server/server.ts'
import { answerOf, create, field, useService } from './service.ts'

const PORTAL = 'https://portal.example.com'
const service = useService({ corsOrigins: [PORTAL] })
const json = { 'content-type': 'application/json' }
const alice = { ...json, authorization: 'Bearer alice' }
const CALLER = '{ caller { subject email projectName permissions } }'

const post = async (init: RequestInit, url = service.url()) =>
  answerOf(await fetch(url, { method: 'POST', ...init }))

test('both forms of the path lead to the same project', async () => {
  const paths = [
    '/projects/alpha/graphql',
    '/resourcemanager.miloapis.com/v1alpha1/projects/alpha/graphql',
  ]
  for (const path of paths) {
    const answer = await post(
      { headers: alice, body: JSON.stringify({ query: CALLER }) },
      `${service.server.url}${path}`,
    )
    expect(answer.status).toBe(200)
    const caller = field<{ permissions: string[] }>(answer.body)
    expect(caller).toMatchObject({ subject: 'alice', projectName: 'alpha' })
    expect(caller.permissions).toContain('networking.datumapis.com/loadbalancers.create')
  }
})

test('other paths are not found', async () => {
  for (const path of ['/', '/graphql/', '/projects//graphql', '/projects/alpha/graphql/more']) {
    const answer = await post({ headers: alice, body: '{}' }, `${service.server.url}${path}`)
    expect([path, answer.status]).toEqual([path, 404])
  }
})

test('who is not known, may not see the project, or names none, is told so by code', async () => {
  const cases = [
    ['stranger', 'alpha', 401, 'UNAUTHENTICATED'],
    ['bob', 'alpha', 403, 'FORBIDDEN'],
    ['alice', 'nowhere', 404, 'NOT_FOUND'],
    ['bob', 'nowhere', 403, 'FORBIDDEN'],
  ] as const
  for (const [as, project, status, code] of cases) {
    const answer = await service.query(CALLER, {}, { as, project })
    expect([as, project, answer.status]).toEqual([as, project, status])
    expect(answer.body.errors).toMatchObject([{ extensions: { code } }])
    expect(answer.body).not.toHaveProperty('data')
  }
})

describe('an answer in a form that there is not', () => {
  const asking = (accept: string, query: string, init: RequestInit = {}) =>
    post({ headers: { ...alice, accept }, body: JSON.stringify({ query }), ...init })

  test.each([
    'application/json',
    'application/graphql-response+json',
    'multipart/mixed, application/json',
    'image/png',
  ])('is said to be none of a subscription: %s', async (accept) => {
    const query = 'subscription { loadBalancers { type } }'
    const url = `${service.url()}?${new URLSearchParams({ query })}`
    const answers = [
      await asking(accept, query),
      await answerOf(await fetch(url, { headers: { ...alice, accept } })),
    ]
    for (const { status, body } of answers) {
      expect(status).toBe(406)
      expect(body.errors).toEqual([
        {
          message: expect.stringMatching(/text\/event-stream.*websocket/),
          extensions: { code: 'BAD_USER_INPUT' },
        },
      ])
    }
  })

  test('is refused before anything is changed', async () => {
    const made = await create(service, 'acceptable')
    const remove = `mutation { deleteLoadBalancer(input: { id: "${made.id}" }) { __typename } }`
    for (const accept of ['image/png', 'text/html, application/xml']) {
      for (const query of [CALLER, remove, '{ nonsense }']) {
        const { status, body } = await asking(accept, query)
        expect([accept, query, status]).toEqual([accept, query, 406])
        expect(body.errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }])
      }
    }
    const { body } = await service.query(`{ loadBalancer(id: "${made.id}") { name } }`)
    expect(field(body)).toEqual({ name: 'acceptable' })
  })

  test.each(['*/*', 'application/*', 'text/html, */*;q=0.1', ''])(
    'is not asked for by %j',
    async (accept) => {
      expect((await asking(accept, CALLER)).status).toBe(200)
    },
  )
})

test('who may read but not change is refused the change, with what is missing', async () => {
  const reading = await service.query('{ loadBalancers { totalCount } }', {}, { as: 'reader' })
  expect(reading.body.errors).toBeUndefined()
  const { body } = await service.query(
    'mutation { deleteLoadBalancer(input: { id: "x" }) { __typename } }',
    {},
    { as: 'reader' },
  )
  expect(body.errors?.[0]?.extensions.code).toBe('FORBIDDEN')
  expect(body.errors?.[0]?.message).toContain('networking.datumapis.com/loadbalancers.delete')
  expect(body.data).toEqual({ deleteLoadBalancer: null })
})

test('who may see a load balancer sees its history, but not that of the project', async () => {
  const made = await create(service, 'history')
  const one = await service.query(
    'query ($id: ID!) { loadBalancer(id: $id) { events { nodes { reason } } } }',
    { id: made.id },
    { as: 'reader' },
  )
  expect(field(one.body)).toEqual({ events: { nodes: [{ reason: 'LoadBalancerCreated' }] } })
  const all = await service.query('{ events { nodes { reason } } }', {}, { as: 'reader' })
  expect(all.body.errors?.[0]?.extensions.code).toBe('FORBIDDEN')
})

test('mistakes in a query, its variables and its values are BAD_USER_INPUT', async () => {
  const wrong: [string, Record<string, unknown>?][] = [
    ['{ nothing }'],
    ['{ caller { subject '],
    ['query ($n: Int!) { regions { id } loadBalancers(first: $n) { totalCount } }'],
    ['query ($n: Int!) { loadBalancers(first: $n) { totalCount } }', { n: 'many' }],
    ['{ loadBalancers(first: 101) { totalCount } }'],
    ['{ loadBalancers(first: -1) { totalCount } }'],
    ['{ loadBalancers(first: 1, last: 1) { totalCount } }'],
    ['{ loadBalancerByName(region: "us-east-1", name: "A_b") { id } }'],
    ['{ loadBalancers(filter: { address: "010.0.0.1" }) { totalCount } }'],
    ['{ loadBalancers(filter: { address: true }) { totalCount } }'],
    [
      'query ($a: IPAddress) { loadBalancers(filter: { address: $a }) { totalCount } }',
      { a: { b: 1 } },
    ],
    [
      'mutation ($v: Boolean) { createLoadBalancer(input: { name: "a", vpc: "x", region: "y", protocol: { tcp: { port: 1 } }, deletionProtection: $v }) { __typename } }',
      { v: null },
    ],
    [`{ ${'regions { id } '.repeat(2_000)} }`],
    [
      `{ node(id: "x") { ${'... on Backend { loadBalancer { backends { nodes { '.repeat(8)} id ${'} } } } '.repeat(8)} } }`,
    ],
  ]
  for (const [query, variables] of wrong) {
    const { body } = await service.query(query, variables)
    const codes = body.errors?.map(({ extensions }) => extensions.code)
    expect([query.slice(0, 80), new Set(codes)]).toEqual([
      query.slice(0, 80),
      new Set(['BAD_USER_INPUT']),
    ])
  }
})

test('a wrong value in a query comes with what was meant', async () => {
  const { body } = await service.query(
    '{ loadBalancers(filter: { address: "010.0.0.1" }) { totalCount } }',
  )
  expect(body.errors?.[0]?.message).toContain('10.0.0.1')
})

test('an id that is garbled, of another type or a bare UUID names nothing', async () => {
  const made = await create(service, 'ids')
  const uuid = Buffer.from(made.id, 'base64url').toString().split(':')[1]
  for (const id of ['', 'x', 'a'.repeat(5_000), uuid, await service.vpc(), `${made.id}=`]) {
    const { body } = await service.query(
      `query ($id: ID!) { loadBalancer(id: $id) { id } ipv4Reservation(id: $id) { id } }`,
      { id },
    )
    expect(body.errors).toBeUndefined()
    expect(body.data).toEqual({ loadBalancer: null, ipv4Reservation: null })
    const deletion = await service.query(
      `mutation ($id: ID!) { deleteLoadBalancer(input: { id: $id }) {
         __typename ... on NotFound { code missingId } } }`,
      { id },
    )
    expect(field(deletion.body)).toEqual({
      __typename: 'NotFound',
      code: 'NOT_FOUND',
      missingId: id,
    })
  }
  const { body } = await service.query('query ($id: ID!) { node(id: $id) { __typename id } }', {
    id: made.id,
  })
  expect(field(body)).toEqual({ __typename: 'LoadBalancer', id: made.id })
})

test('forms, other media types, lists of queries and bodies that are too large are not executed', async () => {
  const query = 'mutation { deleteLoadBalancer(input: { id: "x" }) { __typename } }'
  const authorization = 'Bearer alice'
  const cases: [number, RequestInit][] = [
    [415, { body: new URLSearchParams({ query }) }],
    [415, { headers: { 'content-type': 'text/plain' }, body: JSON.stringify({ query }) }],
    [415, { headers: { 'content-type': 'application/graphql' }, body: query }],
    [415, { headers: { 'content-type': 'multipart/form-data; boundary=x' }, body: '--x--' }],
    [400, { headers: json, body: 'no json' }],
    [400, { headers: json, body: JSON.stringify([{ query }]) }],
    [400, { headers: json, body: '{}' }],
    [
      413,
      { headers: json, body: JSON.stringify({ query, extensions: { a: 'a'.repeat(1_100_000) } }) },
    ],
  ]
  for (const [status, { headers, ...init }] of cases) {
    const answer = await post({ ...init, headers: { ...headers, authorization } })
    expect([init.body, answer.status]).toEqual([init.body, status])
    const limit = status === 413 ? { limit: 'body' } : {}
    expect(answer.body.errors?.[0]?.extensions).toEqual({ code: 'BAD_USER_INPUT', ...limit })
  }
})

test('GET answers queries and refuses mutations', async () => {
  const get = async (query: string) =>
    answerOf(await fetch(`${service.url()}?${new URLSearchParams({ query })}`, { headers: alice }))
  expect(field((await get(CALLER)).body)).toMatchObject({ subject: 'alice' })
  const refused = await get('mutation { deleteLoadBalancer(input: { id: "x" }) { __typename } }')
  expect(refused.status).toBe(405)
  expect(refused.body.errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT')
  const other = await answerOf(await fetch(service.url(), { method: 'PUT', headers: alice }))
  expect(other.status).toBe(405)
})

test('pages of listed origins may call, others not', async () => {
  const preflight = async (origin: string) =>
    fetch(service.url(), {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
  const allowed = await preflight(PORTAL)
  expect(allowed.status).toBe(204)
  expect(allowed.headers.get('access-control-allow-origin')).toBe(PORTAL)
  expect(allowed.headers.get('access-control-allow-headers')).toContain('authorization')
  const other = await preflight('https://evil.example.com')
  expect(other.headers.get('access-control-allow-origin')).toBeNull()
  expect(other.headers.get('access-control-allow-headers')).toBeNull()
  const answer = await post({
    headers: { ...alice, origin: PORTAL },
    body: JSON.stringify({ query: CALLER }),
  })
  expect(answer.headers.get('access-control-allow-origin')).toBe(PORTAL)
  expect(answer.headers.get('access-control-allow-credentials')).toBeNull()
  expect(answer.headers.get('vary')).toBe('Origin')
})

test('a bug is told by an id that the log has, and by nothing else', async () => {
  const { pool } = service.store
  await pool.query('ALTER TABLE region RENAME TO region_gone')
  try {
    const { body } = await service.query('{ regions { id } }')
    const [error] = body.errors ?? []
    expect(error?.extensions).toEqual({
      code: 'INTERNAL_SERVER_ERROR',
      requestId: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    const id = error?.extensions.requestId ?? ''
    expect(error?.message).toContain(id)
    expect(JSON.stringify(body)).not.toContain('region"')
    expect(service.logged.filter((line) => line.includes(id))).toHaveLength(1)
  } finally {
    await pool.query('ALTER TABLE region_gone RENAME TO region')
  }
})

test('a port that is taken is told in one line', async () => {
  const { store, server } = service
  const again = startServer({ store, host: '127.0.0.1', port: server.port, identify: () => null })
  await expect(again).rejects.toThrow(
    `PORT: expected a port that nothing else listens on, found "${server.port}"`,
  )
})

test('a connection that sends nonsense is closed and hurts nobody', async () => {
  const socket = connect(service.server.port, '127.0.0.1')
  socket.end('nonsense\r\n\r\n')
  const [answer] = await new Promise<Buffer[]>((resolve) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk) => chunks.push(chunk))
    socket.on('close', () => resolve(chunks))
  })
  expect(String(answer)).toContain('400 Bad Request')
  expect((await service.query(CALLER)).status).toBe(200)
})

test('what was never executed is 400 for clients of the later media type, and 200 for the others', async () => {
  const cases: [string, Record<string, unknown>, number][] = [
    ['{ caller { subject } }', {}, 200],
    ['{ caller { subject ', {}, 400],
    ['{ nothing }', {}, 400],
    ['query ($n: Int!) { loadBalancers(first: $n) { totalCount } }', { n: 'many' }, 400],
    ['{ region(code: "x") { id } loadBalancerByName(region: "x", name: "A_") { id } }', {}, 200],
  ]
  for (const [query, variables, status] of cases) {
    for (const later of [true, false]) {
      const accept = later ? 'application/graphql-response+json' : 'application/json'
      const body = JSON.stringify({ query, variables })
      const answer = await post({ headers: { ...alice, accept }, body })
      expect([query, later, answer.status]).toEqual([query, later, later ? status : 200])
      expect(answer.headers.get('content-type')).toContain(accept)
    }
  }
})

test('a query is answered the same by POST and by GET', async () => {
  await create(service, 'same', { backends: [{ address: 'fd00:1::1' }] })
  const query = `query ($name: ResourceName!) {
    loadBalancerByName(region: "us-east-1", name: $name) {
      id labels { key } vpc { name endpoints { totalCount nodes { address name region { code } } } }
      backends { nodes { address health { state } resolved { type status } } }
      healthCheck { enabled probe { __typename port } }
      status { phase conditions { type status reason } }
      events { nodes { reason actor { kind name } object { id } } }
    }
  }`
  const variables = { name: 'same' }
  const posted = await service.query(query, variables)
  expect(posted.body.errors).toBeUndefined()
  expect(field(posted.body)).toMatchObject({ vpc: { endpoints: { totalCount: 4 } } })
  const parameters = new URLSearchParams({ query, variables: JSON.stringify(variables) })
  const got = await answerOf(await fetch(`${service.url()}?${parameters}`, { headers: alice }))
  expect(got.body.data).toEqual(posted.body.data)
})
