import pg from 'pg'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { identifyLoopback } from '../../dev/start/identity.ts'
import { openStore, type Store } from '../../src/db/client.ts'
import { type RunningServer, startServer } from '../../src/server/server.ts'
import { type Answer, type Api, apiAt } from '../support/api.ts'
import { useInstallation } from '../support/installation.ts'
import {
  accepted,
  BIND,
  CREATE,
  createLoadBalancer,
  inputOf,
  RESERVE,
  type Refusal,
  type Reservation,
  SET_BACKENDS,
  SHOW,
  SHOW_RESERVATION,
  UPDATE,
} from './operations.ts'
import { tell } from './operators.ts'

const CROWD = 50
const installation = useInstallation({ workers: false })

/** As production runs it, and just started: it has read nothing yet. */
let store: Store
let server: RunningServer
let api: Api
beforeAll(async () => {
  const { connectionString = '' } = installation.store.pool.options
  store = openStore({ connectionString })
  const identify = identifyLoopback(['demo'])
  const logger = pino({ level: 'silent' })
  server = await startServer({ store, identify, logger, host: '127.0.0.1', port: 0 })
  api = apiAt(server.url, 'demo')
})
afterAll(async () => {
  await server.close()
  await store.close()
})

const crowd = <T>(one: (number: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: CROWD }, (_, number) => one(number)))
const counted = (answers: Refusal[]) => {
  const kinds: Record<string, number> = {}
  for (const { __typename: kind } of answers) kinds[kind] = (kinds[kind] ?? 0) + 1
  return kinds
}
const region = 'us-west-1'

test('fifty who bind one reservation, each to another load balancer, leave it with one of them', async () => {
  const lbs = await crowd((number) =>
    createLoadBalancer(installation, { name: `wants-${number}`, region }),
  )
  const input = { name: 'wanted', region }
  const { reservation } = await accepted<{ reservation: Reservation }>(
    installation.api,
    RESERVE,
    input,
  )
  const answers = await crowd((number) =>
    api.get<Refusal>(BIND, {
      input: { loadBalancer: lbs[number]?.id, reservation: reservation.id },
    }),
  )
  expect(counted(answers)).toEqual({
    BindIPv4ReservationPayload: 1,
    ReservationInUse: CROWD - 1,
  })
  const now = await api.get<Reservation>(SHOW_RESERVATION, { id: reservation.id })
  expect(now.bindings).toHaveLength(1)
})

test('fifty who change one load balancer at the same time all succeed, one after another', async () => {
  const addresses = installation.addresses('us-east-1')
  const { id } = await createLoadBalancer(installation, { name: 'popular' })
  const answers = await crowd((number) =>
    number % 2 === 0
      ? api.get<Refusal>(UPDATE, { input: { id, displayName: `by ${number}` } })
      : api.get<Refusal>(SET_BACKENDS, {
          input: {
            loadBalancer: id,
            backends: [{ address: addresses[number % 4], name: `by-${number}` }],
          },
        }),
  )
  expect(counted(answers)).toEqual({
    UpdateLoadBalancerPayload: CROWD / 2,
    SetBackendsPayload: CROWD / 2,
  })
  const { generation } = await api.get<{ generation: number }>(SHOW, { id })
  expect(generation).toBe(1 + CROWD)
})

test('a hundred who create at a quota of 20 make exactly twenty', async () => {
  const resource = 'networking.datumapis.com/loadbalancers'
  const set = (limit: number | null, of = resource) =>
    tell(installation.operators, 'setQuota', { project: 'demo', resource: of, region, limit })
  const used = async () => {
    const query = `{ quotas(region: "${region}") { resource used } }`
    const quotas = await api.get<{ resource: string; used: number }[]>(query)
    return quotas.find((quota) => quota.resource === resource)?.used ?? 0
  }
  await set(null, 'networking.datumapis.com/rulespervpc')
  const before = await used()
  await set(before + 20)
  const inputs = Array.from({ length: 100 }, (_, number) =>
    inputOf(installation, { name: `limited-${number}`, region }),
  )
  // Half of them by another process, which has a line of its own.
  const answers = await Promise.all(
    inputs.map((input, number) =>
      (number % 2 === 0 ? api : installation.api).get<Refusal>(CREATE, { input }),
    ),
  )
  expect(counted(answers)).toEqual({ CreateLoadBalancerPayload: 20, QuotaExceeded: 80 })
  expect(await used()).toBe(before + 20)
  await set(null)
})

test('who waits for what somebody keeps locked is told to come again, and holds up no reader', async () => {
  const { id } = await createLoadBalancer(installation, { name: 'locked' })
  // Like a process of another version: it has none of our deadlines.
  const other = new pg.Client({ connectionString: store.pool.options.connectionString })
  await other.connect()
  await other.query("BEGIN; SELECT FROM project WHERE name = 'demo' FOR UPDATE")
  const send = (query: string, input: object) =>
    fetch(api.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables: { input } }),
    })
  const waiting = Promise.all([
    send(CREATE, inputOf(installation, { name: 'waits' })),
    send(UPDATE, { id, displayName: 'waits' }),
  ])
  expect(await api.get(SHOW, { id })).toMatchObject({ displayName: null })
  for (const response of await waiting) {
    expect(response.headers.get('retry-after')).toBe('5')
    const { errors }: Answer = await response.json()
    expect(errors).toMatchObject([
      {
        message: expect.stringMatching(/too long/),
        extensions: { code: 'INTERNAL_SERVER_ERROR' },
      },
    ])
  }
  await other.end()
  await accepted(api, UPDATE, { id, displayName: 'has waited' })
})
