import { describe, expect, test } from 'vitest'
import { globalId } from '../../src/schema/ids.ts'
import { useInstallation } from '../support/installation.ts'
import { PATIENCE } from '../support/patience.ts'
import { accepted, CREATE, createLoadBalancer, inputOf, RESERVE } from './operations.ts'
import { clusterCalled, poolCalled, tell } from './operators.ts'

const installation = useInstallation({ workers: false })
const LISTED =
  'nodes { id name projectName placements { cluster { name } asked applied dueSince } }'

const created = async (project: 'api' | 'other', name: string) => {
  const of = project === 'api' ? 'demo' : 'other'
  const [address] = installation.addresses('us-east-1-a', of)
  const api = installation[project]
  const input = inputOf(installation, { name, vpc: installation.vpc(of), backends: [{ address }] })
  return (await accepted(api, CREATE, input)).loadBalancer
}

describe('the path of operators', () => {
  test('lists load balancers of all projects, and those of one, or of one cluster', async () => {
    const mine = await created('api', 'scope-demo')
    const others = await created('other', 'scope-other')
    const list = (filter: object) =>
      installation.operators.get<{ nodes: { id: string }[] }>(
        `query ($filter: LoadBalancerFilter) { loadBalancers(first: 100, filter: $filter) { ${LISTED} } }`,
        { filter: { nameContains: 'scope-', ...filter } },
      )
    const ids = async (filter: object) => (await list(filter)).nodes.map(({ id }) => id)
    expect(await ids({})).toEqual([mine.id, others.id])
    expect(await ids({ project: ['other'] })).toEqual([others.id])
    expect(await ids({ cluster: 'us-east-1-a' })).toEqual([mine.id, others.id])
    expect(await ids({ cluster: 'us-east-1-b' })).toEqual([])
    expect((await list({ project: ['demo'] })).nodes).toMatchObject([
      { placements: [{ cluster: { name: 'us-east-1-a' }, asked: 1, applied: 0 }] },
    ])
  })

  test('lists reservations, VPCs and events of all projects', async () => {
    for (const project of ['api', 'other'] as const) {
      await accepted(installation[project], RESERVE, { name: 'everywhere', region: 'us-west-1' })
    }
    const { data } = await installation.operators.ask(`{
      both: ipv4Reservations { nodes { projectName } }
      one: ipv4Reservations(filter: { project: ["other"] }) { nodes { projectName } }
      vpcs { nodes { name projectName endpoints(first: 1) { nodes { cluster node } } } }
      events(first: 2) { nodes { reason object { ... on IPv4Reservation { projectName } } } } }`)
    expect(data).toEqual({
      both: { nodes: [{ projectName: 'demo' }, { projectName: 'other' }] },
      one: { nodes: [{ projectName: 'other' }] },
      vpcs: {
        nodes: ['demo', 'other'].map((project) => ({
          name: `${project}-vpc`,
          projectName: project,
          endpoints: {
            nodes: [{ cluster: 'us-east-1-a', node: expect.stringContaining('us-east-1-a') }],
          },
        })),
      },
      events: {
        nodes: ['other', 'demo'].map((projectName) => ({
          reason: 'IPv4ReservationCreated',
          object: { projectName },
        })),
      },
    })
  })

  test('is about no project', async () => {
    expect(await installation.operators.get('{ caller { projectName } }')).toEqual({
      projectName: null,
    })
  })

  test.each([
    '{ vpcByName(name: "demo-vpc") { id } }',
    '{ loadBalancerByName(region: "us-east-1", name: "x") { id } }',
    '{ ipv4ReservationByName(region: "us-east-1", name: "x") { id } }',
    '{ quotas { used } }',
    'mutation { deleteLoadBalancer(input: { id: "x" }) { __typename } }',
    'mutation { addBackends(input: { loadBalancer: "x", backends: [] }) { __typename } }',
    'mutation { createIPv4Reservation(input: { name: "x", region: "us-east-1" }) { __typename } }',
    'mutation { deleteIPv4Reservation(input: { id: "x" }) { __typename } }',
    'mutation { unbindIPv4Reservation(input: { reservation: "x", loadBalancer: "x" }) { __typename } }',
  ])('takes nothing that needs a project: %s', async (query) => {
    const { errors } = await installation.operators.ask(query)
    expect(errors?.map(({ extensions }) => extensions?.code)).toEqual(['BAD_USER_INPUT'])
    expect(errors?.[0]?.message).toContain('/projects/<project>/graphql')
  })

  test.each(['sse', 'ws'] as const)(
    'streams what happens in all projects over %s',
    async (over) => {
      const ended = new AbortController()
      const seen: string[] = []
      const stream = installation.operators.stream<{ type: string; event: { reason: string } }>(
        'subscription { events(filter: { reason: ["LoadBalancerCreated"] }) { type event { reason object { ... on LoadBalancer { projectName } } } } }',
        {},
        { over, signal: AbortSignal.any([ended.signal, AbortSignal.timeout(PATIENCE)]) },
      )
      for await (const { type, event } of stream) {
        if (type === 'SYNCED') {
          await created('api', `streamed-${over}`)
          await created('other', `streamed-${over}`)
        }
        if (type !== 'ADDED') continue
        seen.push((event as unknown as { object: { projectName: string } }).object.projectName)
        if (seen.length === 2) ended.abort()
      }
      expect(seen).toEqual(['demo', 'other'])
    },
  )

  test('streams the load balancers that are placed in a cluster', async () => {
    const ended = new AbortController()
    const stream = installation.operators.stream<{ type: string; loadBalancer: { name: string } }>(
      'subscription { loadBalancers(filter: { cluster: "us-east-1-b" }) { type loadBalancer { name } } }',
      {},
      { over: 'ws', signal: AbortSignal.any([ended.signal, AbortSignal.timeout(PATIENCE)]) },
    )
    for await (const { type, loadBalancer } of stream) {
      if (type === 'SYNCED') {
        await created('api', 'elsewhere')
        const [address] = installation.addresses('us-east-1-b')
        await createLoadBalancer(installation, { name: 'in-b', backends: [{ address }] })
      }
      if (type !== 'ADDED') continue
      expect(loadBalancer.name).toBe('in-b')
      ended.abort()
    }
    expect(ended.signal.aborted).toBe(true)
  })

  test('is shut to whoever is no operator, and what tenants are served knows nothing of it', async () => {
    const { errors } = await installation.api.ask('{ clusters { totalCount } }')
    expect(errors?.[0]?.message).toContain('Cannot query field "clusters"')
    const types = await installation.api.get<{ types: { name: string }[] }>(
      '{ __schema { types { name } } }',
    )
    expect(types.types.map(({ name }) => name)).not.toContain('Cluster')
    const { id } = await clusterCalled(installation.operators, 'us-east-1-a')
    const query = 'query ($id: ID!) { node(id: $id) { id } }'
    expect(await installation.api.get(query, { id })).toBeNull()
    expect(await installation.operators.get(query, { id })).toEqual({ id })
    const pool = await poolCalled(installation.operators, 'east6')
    expect(await installation.api.get(query, { id: pool.id })).toBeNull()
    expect(await installation.operators.get(query, { id: pool.id })).toEqual({ id: pool.id })
    expect(
      await installation.operators.get(query, {
        id: globalId('Cluster', '00000000-0000-0000-0000-000000000000'),
      }),
    ).toBeNull()
  })
})

describe('regions', () => {
  test('are made once, and told what is wrong', async () => {
    const input = { code: 'eu-north-1', displayName: 'North', cityCode: 'ARN' }
    const { operators } = installation
    expect(await tell(operators, 'createRegion', input)).toMatchObject({
      __typename: 'CreateRegionPayload',
      region: input,
    })
    expect(await tell(operators, 'createRegion', input)).toMatchObject({
      __typename: 'NameTaken',
      takenName: 'eu-north-1',
      path: ['code'],
    })
    const wrong = { code: 'No', displayName: '', cityCode: 'arn' }
    const { issues } = await tell(operators, 'createRegion', wrong)
    expect(issues?.map(({ path }) => path)).toEqual([['code'], ['cityCode'], ['displayName']])
  })
})

describe('projects', () => {
  test('are known once one is released, and are listed with their quotas', async () => {
    const { operators } = installation
    const told = await tell(operators, 'setProjectRelease', { project: 'third', released: true })
    expect(told).toMatchObject({
      __typename: 'SetProjectReleasePayload',
      project: { name: 'third', released: true },
    })
    const query =
      '{ projects(first: 2) { totalCount nodes { name released } pageInfo { hasNextPage endCursor } } }'
    const first = await operators.get<{ pageInfo: { endCursor: string } }>(query)
    expect(first).toMatchObject({
      totalCount: 3,
      nodes: [{ name: 'demo' }, { name: 'other' }],
      pageInfo: { hasNextPage: true },
    })
    const next = await operators.get(
      'query ($after: String) { projects(after: $after) { nodes { name quotas { resource region used limit } } } }',
      { after: first.pageInfo.endCursor },
    )
    expect(next).toMatchObject({ nodes: [{ name: 'third' }] })
  })

  test('with a name that no path can hold are refused', async () => {
    const told = await tell(installation.operators, 'setProjectRelease', {
      project: 'A/b',
      released: true,
    })
    expect(told).toMatchObject({ __typename: 'ValidationFailed', path: ['project'] })
  })

  test('that are closed have their changes refused until they are opened again', async () => {
    const { operators, other } = installation
    const input = inputOf(installation, { name: 'closed', vpc: installation.vpc('other') })
    await tell(operators, 'setProjectRelease', { project: 'other', released: false })
    expect(await other.get(CREATE, { input })).toMatchObject({ __typename: 'NotReleased' })
    await tell(operators, 'setProjectRelease', { project: 'other', released: true })
    await accepted(other, CREATE, input)
  })
})

describe('quotas', () => {
  const loadbalancers = 'networking.datumapis.com/loadbalancers'

  test('tell what is used, counted from what exists, and what operators set', async () => {
    const { operators, api } = installation
    const shown = (project: typeof api, region?: string) =>
      project.get<{ resource: string; region: string; used: number; limit: number | null }[]>(
        'query ($region: String) { quotas(region: $region) { resource region used limit } }',
        { region },
      )
    const before = await shown(api, 'us-west-1')
    expect(before.map(({ resource, limit }) => [resource.replace(/.*\//, ''), limit])).toEqual([
      ['loadbalancers', 50],
      ['ipv4reservations', 10],
      ['rulespervpc', 64],
      ['backends', 64],
    ])
    const backends = installation.addresses('us-west-1').map((address) => ({ address }))
    const made = await createLoadBalancer(installation, {
      name: 'counted',
      region: 'us-west-1',
      backends,
    })
    const used = async () => (await shown(api, 'us-west-1')).map((quota) => quota.used)
    const [lbs = 0, reserved = 0, rules = 0] = before.map((quota) => quota.used)
    expect(await used()).toEqual([lbs + 1, reserved, rules + 1, backends.length])
    expect(made.name).toBe('counted')
    expect((await shown(api)).length % 4).toBe(0)
    expect(await shown(api, 'nowhere')).toEqual([])
    const set = { project: 'demo', resource: loadbalancers, region: 'us-west-1', limit: lbs + 1 }
    expect(await tell(operators, 'setQuota', set)).toMatchObject({
      __typename: 'SetQuotaPayload',
      quota: { resource: loadbalancers, region: 'us-west-1', used: lbs + 1, limit: lbs + 1 },
    })
    const again = inputOf(installation, { name: 'too-many', region: 'us-west-1' })
    expect(
      await api.get(
        `mutation ($input: CreateLoadBalancerInput!) { createLoadBalancer(input: $input) { __typename ... on QuotaExceeded { resource limit used } } }`,
        { input: again },
      ),
    ).toEqual({
      __typename: 'QuotaExceeded',
      resource: loadbalancers,
      limit: lbs + 1,
      used: lbs + 1,
    })
    await tell(operators, 'setQuota', { ...set, limit: null })
    expect((await shown(api, 'us-west-1'))[0]?.limit).toBeNull()
  })

  test('of unknown projects, regions or resources, and those that are fixed, are refused', async () => {
    const { operators } = installation
    const set = (input: object) =>
      tell(operators, 'setQuota', {
        project: 'demo',
        resource: loadbalancers,
        region: 'us-east-1',
        limit: 1,
        ...input,
      })
    expect(await set({ project: 'nobody' })).toMatchObject({
      __typename: 'NotFound',
      path: ['project'],
    })
    expect(await set({ region: 'nowhere' })).toMatchObject({
      __typename: 'NotFound',
      path: ['region'],
    })
    expect(await set({ resource: 'loadbalancers' })).toMatchObject({
      __typename: 'ValidationFailed',
      issues: [{ code: 'UNKNOWN_RESOURCE', path: ['resource'], suggestion: loadbalancers }],
    })
    expect(await set({ limit: -1, region: null })).toMatchObject({
      issues: [{ code: 'REGION_REQUIRED' }, { code: 'OUT_OF_RANGE', path: ['limit'] }],
    })
    expect(await set({ resource: 'networking.datumapis.com/backends' })).toMatchObject({
      __typename: 'Refused',
      code: 'QUOTA_FIXED',
    })
  })
})

describe('reports of reachability', () => {
  const at = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString()
  const result = (change: object) => ({
    address: '2001:db8:1::1',
    port: 80,
    reachable: true,
    at: at(-10),
    ...change,
  })
  const report = (results: object[], vantage = 'paris') =>
    tell(installation.operators, 'reportReachability', { vantage, results })

  test('are kept, the newest of each address and port, whatever order they come in', async () => {
    expect(await report([result({}), result({ port: 81 })])).toMatchObject({ accepted: 2 })
    const older = result({ at: at(-60), reachable: false })
    const newer = result({ port: 81, at: at(-1), reachable: false, message: 'refused' })
    expect(await report([older, newer])).toMatchObject({ accepted: 1 })
    const { store } = installation
    const kept = await store.prisma.reachability.findMany({ orderBy: { port: 'asc' } })
    expect(kept).toMatchObject([
      { vantage: 'paris', address: '2001:db8:1::1', port: 80, reachable: true },
      { port: 81, reachable: false, message: 'refused' },
    ])
  })

  test('with anything wrong are refused as a whole', async () => {
    const told = await report(
      [result({ address: '010.0.0.1' }), result({ port: 0 }), result({ at: at(3_600) })],
      '',
    )
    expect(told.issues?.map(({ path }) => path.join('.'))).toEqual([
      'results.0.address',
      'results.1.port',
      'vantage',
      'results.2.at',
    ])
    const many = Array.from({ length: 1_001 }, (_, index) => result({ port: index + 1 }))
    expect((await report(many)).issues).toMatchObject([{ code: 'TOO_MANY', path: ['results'] }])
  })
})
