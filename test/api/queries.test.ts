import { describe, expect, it } from 'vitest'
import { useInstallation } from '../support/installation.ts'
import { accepted, createLoadBalancer, RESERVE, type Reservation } from './operations.ts'

const installation = useInstallation({ workers: false })

type Connection<T> = {
  totalCount: number
  nodes: T[]
  pageInfo: {
    hasNextPage: boolean
    hasPreviousPage: boolean
    endCursor: string
    startCursor: string
  }
}
const PAGE = 'pageInfo { hasNextPage hasPreviousPage startCursor endCursor }'

describe('lists', () => {
  it('of load balancers are paged forward and backward, each once, with an exact count', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `paged-${index}`)
    for (const name of names) await createLoadBalancer(installation, { name })
    const query = `query ($first: Int, $after: String, $last: Int, $before: String) {
      loadBalancers(first: $first, after: $after, last: $last, before: $before, filter: { nameContains: "paged-" }) {
        totalCount nodes { name } ${PAGE} } }`
    const page = (variables: object) =>
      installation.api.get<Connection<{ name: string }>>(query, { ...variables })
    const forward: string[] = []
    for (let after: string | undefined; ; ) {
      const { nodes, pageInfo, totalCount } = await page({ first: 3, after })
      expect(totalCount).toBe(7)
      forward.push(...nodes.map(({ name }) => name))
      if (!pageInfo.hasNextPage) break
      after = pageInfo.endCursor
    }
    expect(forward).toEqual(names)
    const last = await page({ last: 3 })
    expect(last.nodes.map(({ name }) => name)).toEqual(names.slice(4))
    expect(last.pageInfo).toMatchObject({ hasPreviousPage: true, hasNextPage: false })
    const before = await page({ last: 3, before: last.pageInfo.startCursor })
    expect(before.nodes.map(({ name }) => name)).toEqual(names.slice(1, 4))
    // Filled from the other end, a page ends at a cursor too, and isn't the whole list.
    const { endCursor } = (await page({ first: 3 })).pageInfo
    const { startCursor } = last.pageInfo
    const begun = await page({ first: 7, before: startCursor })
    expect(begun).toMatchObject({ totalCount: 7, pageInfo: { hasNextPage: true } })
    const ended = await page({ last: 7, after: endCursor })
    expect(ended).toMatchObject({ totalCount: 7, pageInfo: { hasPreviousPage: true } })
  })

  it('of load balancers are filtered by region, address in any spelling, label and phase', async () => {
    const [address] = installation.addresses('us-east-1-a')
    const made = await createLoadBalancer(installation, {
      name: 'filtered',
      labels: [{ key: 'team', value: 'shop' }],
      backends: [{ address }],
    })
    const found = async (filter: object) => {
      const query = `query ($filter: LoadBalancerFilter) { loadBalancers(filter: $filter, first: 100) { nodes { id } } }`
      const { nodes } = await installation.api.get<Connection<{ id: string }>>(query, { filter })
      return nodes.some(({ id }) => id === made.id)
    }
    const spelled = address?.toUpperCase().replace('::', ':0:0:0:')
    expect(await found({ address: spelled, region: ['us-east-1'] })).toBe(true)
    expect(await found({ address: made.addresses[0]?.address })).toBe(true)
    expect(await found({ address: 'fd20:1::99' })).toBe(false)
    expect(await found({ labels: [{ key: 'team', values: ['shop', 'other'] }] })).toBe(true)
    expect(await found({ labels: [{ key: 'team', values: ['other'] }] })).toBe(false)
    expect(await found({ labels: [{ key: 'team' }], phase: ['PENDING'] })).toBe(true)
    expect(await found({ phase: ['ACTIVE'] })).toBe(false)
    expect(await found({ region: ['us-west-1'] })).toBe(false)
  })

  it('with a page that is too large or contradictory are refused', async () => {
    for (const page of ['first: 101', 'first: -1', 'first: 1, last: 1']) {
      const { errors } = await installation.api.ask(`{ loadBalancers(${page}) { totalCount } }`)
      expect(errors?.[0]?.extensions?.code).toBe('BAD_USER_INPUT')
    }
  })

  it('of VPCs show the endpoints of a region', async () => {
    const query = `{ vpcs { totalCount nodes { name projectName endpoints(filter: { region: ["us-east-1"] }) {
      totalCount nodes { address name region { code } } } } } }`
    const { nodes, totalCount } =
      await installation.api.get<
        Connection<{
          name: string
          endpoints: Connection<{ address: string; region: { code: string } }>
        }>
      >(query)
    expect(totalCount).toBe(1)
    expect(nodes[0]?.name).toBe('demo-vpc')
    expect(nodes[0]?.endpoints.totalCount).toBe(4)
    expect(nodes[0]?.endpoints.nodes.map(({ address }) => address)).toEqual(
      installation.addresses('us-east-1'),
    )
  })

  it('of regions tell what their clusters serve', async () => {
    const query = '{ regions { code addressFamilies sessionAffinities acceptsLoadBalancers } }'
    expect(await installation.api.get(query)).toEqual([
      {
        code: 'us-east-1',
        addressFamilies: ['IPV6'],
        sessionAffinities: ['NONE'],
        acceptsLoadBalancers: true,
      },
      {
        code: 'us-west-1',
        addressFamilies: ['IPV4', 'IPV6'],
        sessionAffinities: ['NONE'],
        acceptsLoadBalancers: true,
      },
    ])
  })

  it('of reservations are filtered by whether they are bound', async () => {
    const input = { name: 'free', region: 'us-east-1' }
    const { reservation } = await accepted<{ reservation: Reservation }>(
      installation.api,
      RESERVE,
      input,
    )
    const query = `query ($bound: Boolean) { ipv4Reservations(filter: { bound: $bound }) { nodes { id } } }`
    const of = async (bound: boolean) =>
      (await installation.api.get<Connection<{ id: string }>>(query, { bound })).nodes
    expect(await of(false)).toContainEqual({ id: reservation.id })
    expect(await of(true)).not.toContainEqual({ id: reservation.id })
  })
})

describe('objects', () => {
  it('are found by id and by name, of their own project only', async () => {
    const made = await createLoadBalancer(installation, { name: 'found' })
    const node = 'query ($id: ID!) { node(id: $id) { __typename id } }'
    expect(await installation.api.get(node, { id: made.id })).toEqual({
      __typename: 'LoadBalancer',
      id: made.id,
    })
    expect(await installation.other.get(node, { id: made.id })).toBeNull()
    const named = `{ loadBalancerByName(region: "us-east-1", name: "found") { id } }`
    expect(await installation.api.get(named)).toEqual({ id: made.id })
    expect(await installation.other.get(named)).toBeNull()
  })

  it('of an id that is garbage, of another type or of nothing are null', async () => {
    const made = await createLoadBalancer(installation, { name: 'typed' })
    const uuid = Buffer.from(made.id, 'base64').toString().split(':')[1]
    const ids = [
      'garbage',
      '',
      Buffer.from(`IPv4Reservation:${uuid}`).toString('base64'),
      Buffer.from('LoadBalancer:1').toString('base64'),
      Buffer.from(`LoadBalancer:${crypto.randomUUID()}`).toString('base64'),
    ]
    for (const id of ids) {
      expect(
        await installation.api.get('query ($id: ID!) { loadBalancer(id: $id) { id } }', { id }),
      ).toBeNull()
    }
    const nodes = 'query ($ids: [ID!]!) { nodes(ids: $ids) { id } }'
    expect(await installation.api.get(nodes, { ids })).toEqual(ids.map(() => null))
  })

  it('have their history, newest first', async () => {
    const made = await createLoadBalancer(installation, { name: 'told' })
    const query = `query ($id: ID!) { loadBalancer(id: $id) { events { nodes { reason actor { kind name } objectId generation } } } }`
    const { events } = await installation.api.get<{ events: { nodes: object[] } }>(query, {
      id: made.id,
    })
    expect(events.nodes).toEqual([
      {
        reason: 'LoadBalancerCreated',
        actor: { kind: 'USER', name: 'demo' },
        objectId: made.id,
        generation: 1,
      },
    ])
  })

  it('are not told to a project that nobody knows', async () => {
    const response = await fetch(installation.api.url.replace('/demo/', '/unheard-of/'), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: '{ regions { code } }' }),
    })
    const { errors } = (await response.json()) as { errors: { extensions: { code: string } }[] }
    expect(errors[0]?.extensions.code).toBe('NOT_FOUND')
  })
})

describe('the caller', () => {
  it('is told who they are taken for and what they may do', async () => {
    const query = '{ caller { subject projectName permissions } }'
    expect(await installation.api.get(query)).toMatchObject({
      subject: 'demo',
      projectName: 'demo',
      permissions: expect.arrayContaining(['networking.datumapis.com/loadbalancers.create']),
    })
  })
})
