import { describe, expect, it } from 'vitest'
import { useInstallation } from '../support/installation.ts'
import {
  accepted,
  BIND,
  CREATE,
  createLoadBalancer,
  inputOf,
  type LoadBalancer,
  RESERVE,
  type Refusal,
  type Reservation,
  SET_BACKENDS,
  SHOW,
  SHOW_RESERVATION,
  UPDATE,
} from './operations.ts'
import { tell } from './operators.ts'

const installation = useInstallation({ workers: false })

const reserve = async (name: string) => {
  const input = { name, region: 'us-west-1' }
  return (await accepted<{ reservation: Reservation }>(installation.api, RESERVE, input))
    .reservation
}
const kinds = (answers: { __typename: string }[]) =>
  answers.map(({ __typename }) => __typename).sort()

describe('callers at the same time', () => {
  it('who change rivals on one port all succeed, without a deadlock', async () => {
    const addresses = installation.addresses('us-east-1')
    const lbs = await Promise.all(
      ['x', 'y', 'z'].map((name) =>
        createLoadBalancer(installation, {
          name: `rival-${name}`,
          protocol: { tcp: { port: 90 } },
        }),
      ),
    )
    const before = await deadlocks()
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(
        lbs.map(({ id }) =>
          accepted(installation.api, SET_BACKENDS, {
            loadBalancer: id,
            backends: addresses.slice(round % 2).map((address) => ({ address })),
          }),
        ),
      )
    }
    expect(await deadlocks()).toBe(before)
  })

  it('who bind to one VPC get no further than its limit', async () => {
    const { store } = installation
    const region = await store.prisma.region.findUniqueOrThrow({ where: { code: 'us-west-1' } })
    const lbs = await Promise.all(
      [1, 2, 3, 4].map((name) =>
        createLoadBalancer(installation, { name: `bound-${name}`, region: 'us-west-1' }),
      ),
    )
    const reservations = await Promise.all([1, 2, 3, 4].map((name) => reserve(`limited-${name}`)))
    const key = {
      project: 'demo',
      resource: 'networking.datumapis.com/rulespervpc',
      regionId: region.id,
    }
    await store.prisma.quota.create({ data: { ...key, limit: 5 } })
    const answers = await Promise.all(
      lbs.map(({ id }, index) =>
        installation.api.get<Refusal>(BIND, {
          input: { loadBalancer: id, reservation: reservations[index]?.id },
        }),
      ),
    )
    await store.prisma.quota.delete({ where: { project_resource_regionId: key } })
    expect(kinds(answers)).toEqual([
      'BindIPv4ReservationPayload',
      'QuotaExceeded',
      'QuotaExceeded',
      'QuotaExceeded',
    ])
  })

  it('who bind one reservation leave it with one of them', async () => {
    const reservation = await reserve('wanted')
    const lbs = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((name) =>
        createLoadBalancer(installation, { name: `wants-${name}`, region: 'us-west-1' }),
      ),
    )
    const answers = await Promise.all(
      lbs.map(({ id }) =>
        installation.api.get<Refusal>(BIND, {
          input: { loadBalancer: id, reservation: reservation.id },
        }),
      ),
    )
    expect(kinds(answers)).toEqual([
      'BindIPv4ReservationPayload',
      ...Array.from({ length: 5 }, () => 'ReservationInUse'),
    ])
    const now = await installation.api.get<Reservation>(SHOW_RESERVATION, { id: reservation.id })
    expect(now.bindings).toHaveLength(1)
    const holder = await installation.api.get<LoadBalancer>(SHOW, {
      id: now.bindings[0]?.loadBalancer.id,
    })
    expect(holder.addresses.map(({ address }) => address)).toContain(reservation.address)
  })

  it('who create and rename to one name leave it to one of them', async () => {
    const others = await Promise.all(
      [1, 2, 3].map((name) => createLoadBalancer(installation, { name: `renamed-${name}` })),
    )
    const answers = await Promise.all([
      ...others.map(({ id }) =>
        installation.api.get<Refusal>(UPDATE, { input: { id, name: 'the-name' } }),
      ),
      ...[1, 2, 3].map(() =>
        installation.api.get<Refusal>(CREATE, {
          input: inputOf(installation, { name: 'the-name' }),
        }),
      ),
    ])
    expect(kinds(answers).filter((kind) => kind === 'NameTaken')).toHaveLength(5)
  })
})

describe('rubbish', () => {
  it.each([
    ['U+0000', 'a\u0000b'],
    ['half of a surrogate pair', 'a\ud800b'],
  ])("with %s is refused wherever it stands, and is nobody's fault", async (_, text) => {
    const refusal = await installation.api.get<Refusal>(CREATE, {
      input: inputOf(installation, {
        name: 'fine',
        displayName: text,
        labels: [{ key: 'k', value: text }],
      }),
    })
    expect(refusal.issues?.map(({ path }) => path.join('.'))).toEqual(
      expect.arrayContaining(['displayName', 'labels.0.value']),
    )
    expect(
      await installation.api.get<Refusal>(CREATE, {
        input: inputOf(installation, { name: 'fine', region: text, vpc: text }),
      }),
    ).toMatchObject({ __typename: 'NotFound' })
    const queries = [
      'query ($text: String!) { loadBalancers(filter: { nameContains: $text }) { totalCount } }',
      'query ($text: String!) { loadBalancers(filter: { region: [$text] }) { totalCount } }',
      'query ($text: String!) { loadBalancers(filter: { labels: [{ key: $text }] }) { totalCount } }',
      'query ($text: String!) { quotas(region: $text) { used } }',
      'query ($text: String!) { loadBalancerByName(region: $text, name: "a") { id } }',
      'query ($text: String!) { ipv4ReservationByName(region: $text, name: "a") { id } }',
      'query ($text: String!) { vpcByName(name: $text) { id } }',
      'query ($text: String!) { vpcs(filter: { nameContains: $text }) { totalCount } }',
      'query ($text: String!) { vpcs { nodes { endpoints(filter: { nameContains: $text }) { totalCount } } } }',
      'query ($text: String!) { ipv4Reservations(filter: { nameContains: $text }) { totalCount } }',
      'query ($text: String!) { events(filter: { reason: [$text] }) { nodes { id } } }',
    ]
    for (const query of queries) {
      const { errors } = await installation.api.ask(query, { text })
      expect([query, errors?.[0]?.extensions?.code]).toEqual([query, 'BAD_USER_INPUT'])
    }
  })

  it.each(['a\u0000b', 'a\ud800b'])(
    "that operators send (%j) is nobody's fault either",
    async (text) => {
      const queries = [
        'query ($text: String!) { clusters(region: $text) { totalCount } }',
        'query ($text: String!) { addressPools(region: $text) { totalCount } }',
        'query ($text: String!) { loadBalancers(filter: { project: [$text] }) { totalCount } }',
        'query ($text: String!) { ipv4Reservations(filter: { project: [$text] }) { totalCount } }',
        'query ($text: String!) { region(code: $text) { id } }',
      ]
      for (const query of queries) {
        const { errors } = await installation.operators.ask(query, { text })
        expect([query, errors?.[0]?.extensions?.code]).toEqual([query, 'BAD_USER_INPUT'])
      }
      const resource = 'networking.datumapis.com/loadbalancers'
      const cluster = { name: 'rubbish', region: 'us-east-1', context: 'rubbish' }
      const pool = { name: 'rubbish', region: 'us-east-1', prefix: 'fd99::/64' }
      const asked: [string, Record<string, unknown>, string][] = [
        [
          'createRegion',
          { code: 'rubbish', displayName: text, cityCode: 'IAD' },
          'ValidationFailed',
        ],
        ['registerCluster', { ...cluster, context: text }, 'ValidationFailed'],
        ['registerCluster', { ...cluster, region: text }, 'NotFound'],
        ['createAddressPool', { ...pool, region: text }, 'NotFound'],
        ['setQuota', { project: text, resource, region: 'us-east-1' }, 'NotFound'],
        ['setQuota', { project: 'demo', resource, region: text }, 'NotFound'],
        ['setQuota', { project: 'demo', resource: text, region: 'us-east-1' }, 'ValidationFailed'],
        ['setProjectRelease', { project: text, released: true }, 'ValidationFailed'],
        ['reportReachability', { vantage: text, results: [] }, 'ValidationFailed'],
      ]
      for (const [mutation, input, refusal] of asked) {
        const { __typename } = await tell(installation.operators, mutation, input)
        expect([mutation, input, __typename]).toEqual([mutation, input, refusal])
      }
      const reservation = { name: 'rubbish', region: text, idempotencyKey: text }
      expect(await installation.api.get<Refusal>(RESERVE, { input: reservation })).toMatchObject({
        __typename: 'NotFound',
        path: ['region'],
      })
    },
  )

  it('as a cursor, or one of another order, is refused wherever it is given', async () => {
    await createLoadBalancer(installation, { name: 'paged' })
    const query = `query ($after: String, $orderBy: LoadBalancerOrder) {
      loadBalancers(first: 1, after: $after, orderBy: $orderBy) { nodes { id } pageInfo { endCursor } } }`
    const byName = await installation.api.get<{ pageInfo: { endCursor: string } }>(query, {
      orderBy: { field: 'NAME' },
    })
    const made = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const id = crypto.randomUUID()
    for (const after of [
      byName.pageInfo.endCursor,
      'rubbish',
      '',
      made({}),
      made(['lb.created_at', 'not a time', id]),
      made(['lb.created_at', '2026-13-41 99:00:00+00', id]),
      made(['lb.created_at', 'a\u0000', 'b']),
    ]) {
      const page = await installation.api.ask(query, { after })
      expect([after, page.errors?.[0]?.extensions?.code]).toEqual([after, 'BAD_USER_INPUT'])
    }
    const others = [
      '{ loadBalancers { nodes { backends(after: "rubbish") { totalCount } } } }',
      '{ events(filter: { since: "rubbish" }) { nodes { id } } }',
      '{ vpcs(after: "rubbish") { totalCount } }',
      '{ vpcs { nodes { endpoints(after: "rubbish") { totalCount } } } }',
      '{ ipv4Reservations(after: "rubbish") { totalCount } }',
    ]
    for (const other of others) {
      const { errors } = await installation.api.ask(other)
      expect([other, errors?.[0]?.extensions?.code]).toEqual([other, 'BAD_USER_INPUT'])
    }
  })
})

/** How often PostgreSQL had to break a deadlock in this database; its numbers may lag by a second. */
async function deadlocks(): Promise<number> {
  const { rows } = await installation.store.pool.query<{ deadlocks: number }>(
    'SELECT pg_stat_force_next_flush(), deadlocks FROM pg_stat_database WHERE datname = current_database()',
  )
  return rows[0]?.deadlocks ?? -1
}
