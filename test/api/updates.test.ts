import { isInputObjectType } from 'graphql'
import { beforeAll, describe, expect, test } from 'vitest'
import { operatorSchema } from '../../src/server/schema.ts'
import { useInstallation } from '../support/installation.ts'
import {
  ADD_BACKENDS,
  accepted,
  createLoadBalancer,
  RESERVE,
  type Refusal,
  type Reservation,
  SET_BACKENDS,
  UPDATE,
  UPDATE_BACKENDS,
  UPDATE_RESERVATION,
} from './operations.ts'
import { tell } from './operators.ts'

const installation = useInstallation({ workers: false })
let port = 5_000

beforeAll(() =>
  tell(installation.operators, 'setQuota', {
    project: 'demo',
    resource: 'networking.datumapis.com/ipv4reservations',
    region: 'us-east-1',
    limit: null,
  }),
)

type Shown = Record<string, unknown> & { id: string; generation: number }

/** Everything of a load balancer that a client may send back. */
const FIELDS = `id generation name displayName description labels { key value } sessionAffinity deletionProtection
  protocolName ports { from }
  healthCheck { enabled intervalSeconds timeoutSeconds rise fall minimumHealthyPercent probe { __typename port
    ... on HttpProbe { scheme host path expectedStatuses { from to } verifyCertificate } } }
  addresses { address } backends { nodes { id address name adminState health { state since } createdAt } }`
const show = (id: string) =>
  installation.api.get<Shown>(`query ($id: ID!) { loadBalancer(id: $id) { ${FIELDS} } }`, { id })
const RESERVATION =
  'id generation name displayName description labels { key value } deletionProtection'
const showReservation = (id: string) =>
  installation.api.get<Shown>(`query ($id: ID!) { ipv4Reservation(id: $id) { ${RESERVATION} } }`, {
    id,
  })

/** With every field set to something that isn't its default. */
const SET = {
  displayName: 'Web',
  description: 'Serves pages.',
  labels: [{ key: 'team', value: 'web' }],
  sessionAffinity: 'CLIENT_IP',
  healthCheck: {
    ...{ intervalSeconds: 20, timeoutSeconds: 3, rise: 4, fall: 5, minimumHealthyPercent: 30 },
    probe: { http: { port: 8_080, path: '/ready', host: 'web', scheme: 'HTTPS' } },
  },
  deletionProtection: true,
}
const RESERVED = {
  displayName: 'Web',
  description: 'For pages.',
  labels: SET.labels,
  deletionProtection: true,
}

async function create(input: object = SET): Promise<string> {
  port += 1
  const [address] = installation.addresses('us-east-1-a')
  const made = await createLoadBalancer(installation, {
    ...{ name: `updated-${port}`, protocol: { tcp: { port } }, backends: [{ address }] },
    ...input,
  })
  return made.id
}

async function reserve(name: string): Promise<string> {
  const input = { name, region: 'us-east-1', ...RESERVED }
  return (await accepted<{ reservation: Reservation }>(installation.api, RESERVE, input))
    .reservation.id
}

const events = () => installation.store.prisma.event.count()
const fieldsOf = (type: string): string[] => {
  const input = operatorSchema.getType(type)
  if (!isInputObjectType(input)) throw new Error(`no input ${type}`)
  return Object.keys(input.getFields())
}

/** What each field may be changed to, and how that shows. */
const CHANGES: Record<string, [value: unknown, shown: object]> = {
  name: ['renamed', { name: 'renamed' }],
  displayName: ['Shop', { displayName: 'Shop' }],
  description: ['', { description: '' }],
  labels: [[], { labels: [] }],
  protocol: [{ udp: { port: 53 } }, { protocolName: 'UDP', ports: [{ from: 53 }] }],
  sessionAffinity: ['CLIENT_IP_AND_PROTOCOL', { sessionAffinity: 'CLIENT_IP_AND_PROTOCOL' }],
  healthCheck: [{ rise: 1 }, { healthCheck: expect.objectContaining({ rise: 1, fall: 5 }) }],
  deletionProtection: [false, { deletionProtection: false }],
}
const DEFAULTS: Record<string, unknown> = {
  displayName: null,
  description: null,
  labels: [],
  sessionAffinity: 'NONE',
  deletionProtection: false,
  healthCheck: {
    ...{ enabled: true, intervalSeconds: 10, timeoutSeconds: 5, rise: 2, fall: 3 },
    ...{ minimumHealthyPercent: 0, probe: { __typename: 'TcpProbe', port: null } },
  },
}
const OTHERS = ['id', 'reset', 'expectedGeneration', 'validateOnly']
const memberOf = (field: string) => field.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase()

describe.each([
  ['UpdateLoadBalancerInput', UPDATE, () => create(), show],
  [
    'UpdateIPv4ReservationInput',
    UPDATE_RESERVATION,
    () => reserve(`kept-${++port}`),
    showReservation,
  ],
] as const)('%s', (type, operation, make, shown) => {
  const fields = fieldsOf(type).filter((field) => !OTHERS.includes(field))
  const update = (id: string, input: object) =>
    accepted(installation.api, operation, { id, ...input })

  test('keeps what is absent or null, and that is no change', async () => {
    const id = await make()
    const [before, counted] = [await shown(id), await events()]
    await update(id, {})
    await update(id, Object.fromEntries(fields.map((field) => [field, null])))
    expect(await shown(id)).toEqual(before)
    expect(await events()).toBe(counted)
  })

  test('changes one field and keeps the others, once', async () => {
    expect(Object.keys(CHANGES)).toEqual(expect.arrayContaining(fields))
    for (const field of fields) {
      const [value, changed] = CHANGES[field] ?? []
      const id = await make()
      const [before, counted] = [await shown(id), await events()]
      const input = { [field]: field === 'name' ? `${value}-${++port}` : value }
      await update(id, input)
      const told = field === 'name' ? input : changed
      expect(await shown(id)).toEqual({ ...before, ...told, generation: before.generation + 1 })
      await update(id, input)
      expect((await shown(id)).generation).toBe(before.generation + 1)
      expect(await events()).toBe(counted + 1)
    }
  })

  test('resets what it is told to, once', async () => {
    for (const field of fields.filter((one) => one in DEFAULTS)) {
      const id = await make()
      const before = await shown(id)
      for (const _ of [1, 2]) await update(id, { reset: [memberOf(field)] })
      expect(await shown(id)).toEqual({
        ...before,
        [field]: DEFAULTS[field],
        generation: before.generation + 1,
      })
    }
  })

  test('refuses what expects another generation, with the present one, and changes nothing', async () => {
    const id = await make()
    const { generation } = await shown(id)
    await update(id, { displayName: 'first', expectedGeneration: generation })
    const query = `mutation ($input: ${type}!) { answer: ${type.replace(/^U/, 'u').replace('Input', '')}(input: $input) {
      ... on GenerationConflict { expectedGeneration currentGeneration } } }`
    const input = { id, displayName: 'second', expectedGeneration: generation }
    expect(await installation.api.get(query, { input })).toEqual({
      expectedGeneration: generation,
      currentGeneration: generation + 1,
    })
    expect((await shown(id))['displayName']).toBe('first')
  })
})

test('a host of a health check that would be refused now keeps nothing else from being changed', async () => {
  const id = await create()
  await installation.store.pool.query(
    `UPDATE load_balancer SET health_check = jsonb_set(health_check, '{probe,host}', '"[::1"')`,
  )
  await accepted(installation.api, UPDATE, { id, displayName: 'Shop' })
  expect(await show(id)).toMatchObject({
    displayName: 'Shop',
    healthCheck: { probe: { host: '[::1' } },
  })
  const told = await installation.api.get<{ __typename: string }>(UPDATE, {
    input: { id, healthCheck: { rise: 3 } },
  })
  expect(told.__typename).toBe('ValidationFailed')
})

describe('a client that sends back what it read', () => {
  test('changes nothing: no field, no backend, no generation, no event', async () => {
    const id = await create()
    const addresses = ['FD20:1:0::00AA', 'fd20:1::bb', '10.0.0.7']
    const backends = addresses.map((address, index) => ({ address, name: `b${index}` }))
    await accepted(installation.api, ADD_BACKENDS, { loadBalancer: id, backends })
    const [before, counted] = [await show(id), await events()]
    const { nodes } = before['backends'] as { nodes: Record<string, unknown>[] }
    const { probe, ...healthCheck } = before['healthCheck'] as { probe: Record<string, unknown> }
    const { __typename: _, ...http } = probe
    const [first] = before['ports'] as { from: number }[]
    const { name, displayName, description, labels, sessionAffinity, deletionProtection } = before
    await accepted(installation.api, UPDATE, {
      ...{ id, name, displayName, description, labels, sessionAffinity, deletionProtection },
      protocol: { tcp: { port: first?.from } },
      healthCheck: { ...healthCheck, probe: { http } },
    })
    const sent = nodes.map((node) => ({
      address: node['address'],
      name: node['name'],
      adminState: node['adminState'],
    }))
    await accepted(installation.api, SET_BACKENDS, { loadBalancer: id, backends: sent })
    await accepted(installation.api, ADD_BACKENDS, { loadBalancer: id, backends: sent })
    await accepted(installation.api, UPDATE_BACKENDS, { loadBalancer: id, backends: sent })
    // Neither as literals of the document, in another order.
    const literal = `mutation ($id: ID!) { updateLoadBalancer(input: { id: $id, labels: [{ value: "web", key: "team" }]
      healthCheck: { probe: { http: { path: "/ready", scheme: HTTPS, port: 8080, host: "web" } } } }) { __typename } }`
    expect(await installation.api.get(literal, { id })).toEqual({
      __typename: 'UpdateLoadBalancerPayload',
    })
    expect(await show(id)).toEqual(before)
    expect(await events()).toBe(counted)
  })
})

describe('backends that are set', () => {
  test('by two at once who expect the same generation are those of one, and the other is told the number', async () => {
    const id = await create({})
    const answers = await Promise.all(
      ['fd20:1::1a', 'fd20:1::1b'].map((address) =>
        installation.api.get<Refusal>(
          SET_BACKENDS.replace(
            '__typename',
            '__typename ... on GenerationConflict { currentGeneration }',
          ),
          { input: { loadBalancer: id, backends: [{ address }], expectedGeneration: 1 } },
        ),
      ),
    )
    const lost = answers.find(({ __typename }) => __typename === 'GenerationConflict')
    const won = answers.find(({ __typename }) => __typename === 'SetBackendsPayload')
    expect(lost).toMatchObject({ currentGeneration: 2 })
    expect(won).toMatchObject({ loadBalancer: { generation: 2, backends: { totalCount: 1 } } })
    expect(await show(id)).toMatchObject({ generation: 2 })
  })

  test('keep identity, health and age where they stay, whatever else changes', async () => {
    const id = await create({})
    await installation.store.pool.query(
      `UPDATE backend SET health_state = 'UNHEALTHY', health_since = '2026-01-01' WHERE load_balancer_id = (
         SELECT id FROM load_balancer ORDER BY created_at DESC LIMIT 1)`,
    )
    const before = (await show(id))['backends'] as { nodes: Record<string, unknown>[] }
    const [stays] = before.nodes
    const backends = [{ address: 'fd20:1::1c' }, { address: stays?.['address'], name: 'named' }]
    await accepted(installation.api, SET_BACKENDS, { loadBalancer: id, backends })
    const after = (await show(id))['backends'] as { nodes: Record<string, unknown>[] }
    expect(after.nodes).toHaveLength(2)
    expect(after.nodes).toContainEqual({ ...stays, name: 'named' })
    expect(stays).toMatchObject({ health: { state: 'UNHEALTHY' } })
  })
})
