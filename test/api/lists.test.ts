import { isInputObjectType } from 'graphql'
import { beforeAll, describe, expect, test } from 'vitest'
import { schema } from '../../src/server/schema.ts'
import { create, field, useService } from '../server/service.ts'
import { statementsOf } from '../support/statements.ts'

const service = useService()

type Connection = {
  totalCount: number
  nodes: { id: string; name: string }[]
  edges: { cursor: string }[]
  pageInfo: Record<'hasNextPage' | 'hasPreviousPage', boolean> &
    Record<'startCursor' | 'endCursor', string | null>
}
type Made = { id: string; name: string; addresses: { address: string }[] }

const get = async <T>(query: string, variables: Record<string, unknown> = {}): Promise<T> =>
  field<T>((await service.query(query, variables)).body)
const ids: Record<string, string> = {}
const vips: Record<string, string> = {}

async function make(name: string, input: Record<string, unknown> = {}): Promise<void> {
  const made = await create(service, name, input, 'id name addresses { address }')
  const [address] = (made as Made).addresses
  ids[name] = made.id
  vips[name] = address?.address ?? ''
}

async function reserve(name: string, more: Record<string, unknown> = {}): Promise<void> {
  const { reservation } = await get<{ reservation: { id: string; address: string } }>(
    `mutation ($input: CreateIPv4ReservationInput!) { createIPv4Reservation(input: $input) {
       ... on CreateIPv4ReservationPayload { reservation { id address } } } }`,
    { input: { name, region: 'us-east-1', ...more } },
  )
  ids[name] = reservation.id
  vips[name] = reservation.address
}

describe('what a list costs', () => {
  /** All that a page of the portal shows. */
  const QUERY = `query ($first: Int!, $contains: String!) { loadBalancers(first: $first, filter: { nameContains: $contains }) {
    totalCount pageInfo { hasNextPage endCursor } nodes {
    id name displayName protocolName ports { from to } sessionAffinity region { code displayName } vpc { id name }
    labels { key value } addresses { address family ipv4Reservation { id name state }
      status { provisioned { status reason } advertised { status reason } reachable { status reason } } }
    backends(first: 100) { totalCount nodes { id address serving health { state reason } resolved { status reason } } }
    status { phase ready { status reason } conditions { type status reason message } backendCounts { total serving } } } } }`
  const statements = async (first: number, contains = 'costs-') => {
    const answers: Connection[] = []
    const sent = await statementsOf(async () => {
      answers.push(await get<Connection>(QUERY, { first, contains }))
    })
    expect(answers[0]?.nodes).toHaveLength(first)
    return sent.statements
  }

  beforeAll(async () => {
    const limit = { project: 'alpha', resource: 'networking.datumapis.com/loadbalancers' }
    const { id } = await service.store.prisma.region.findFirstOrThrow()
    await service.store.prisma.quota.create({ data: { ...limit, regionId: id, limit: null } })
    for (const name of ['bound-1', 'bound-2']) await reserve(name)
    const backends = [1, 2, 3, 4, 8, 9].map((number) => ({ address: `fd00:1::${number}` }))
    for (let number = 0; number < 50; number += 1) {
      const bound = ids[`bound-${number + 1}`]
      await make(`costs-${number}`, {
        protocol: { tcp: { port: 2_000 + number } },
        backends,
        ipv4Reservations: bound === undefined ? [] : [bound],
      })
    }
  })

  test('50 load balancers with backends, addresses and status take at most 6 statements', async () => {
    await statements(50)
    const sent = await statements(50)
    expect(sent.length, sent.join('\n')).toBeLessThanOrEqual(6)
    expect(sent.length).toBeGreaterThan(2)
  })

  test('no statement is sent once for each of many', async () => {
    const sent = await statements(50)
    expect(sent.toSorted()).toEqual([...new Set(sent)].sort())
  })

  test('objects that are read one after the other would be counted', async () => {
    const one = `query ($id: ID!) { loadBalancer(id: $id) { id } }`
    const { statements: sent } = await statementsOf(async () => {
      for (let number = 0; number < 7; number += 1) await get(one, { id: ids[`costs-${number}`] })
    })
    expect(sent.length).toBeGreaterThanOrEqual(7)
    expect(new Set(sent).size).toBeLessThan(7)
  })
})

describe('a list', () => {
  const QUERY = `query ($first: Int, $after: String, $last: Int, $before: String, $orderBy: LoadBalancerOrder) {
    loadBalancers(first: $first, after: $after, last: $last, before: $before, orderBy: $orderBy, filter: { nameContains: "row-" }) {
      totalCount nodes { id name } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`
  const page = (variables: Record<string, unknown>) => get<Connection>(QUERY, variables)
  const names = ({ nodes }: Connection) => nodes.map(({ name }) => name)
  const rename = (from: string, displayName: string) =>
    get(
      `mutation ($input: UpdateLoadBalancerInput!) { updateLoadBalancer(input: $input) { __typename } }`,
      { input: { id: ids[from], displayName } },
    )
  const remove = (name: string) =>
    get(
      `mutation ($id: ID!) { deleteLoadBalancer(input: { id: $id }) { ... on DeleteLoadBalancerPayload { loadBalancer { id } } } }`,
      { id: ids[name] },
    )
  /** All pages from one end. */
  async function all(orderBy: object | null, size: number, from: 'first' | 'last') {
    const found: string[] = []
    for (let cursor: string | null = null; ; ) {
      const there: Connection = await page(
        from === 'first'
          ? { first: size, after: cursor, orderBy }
          : { last: size, before: cursor, orderBy },
      )
      expect(there.totalCount).toBe(7)
      expect([there.edges[0]?.cursor, there.edges.at(-1)?.cursor]).toEqual([
        there.pageInfo.startCursor,
        there.pageInfo.endCursor,
      ])
      if (from === 'first') found.push(...names(there))
      else found.unshift(...names(there))
      if (!there.pageInfo[from === 'first' ? 'hasNextPage' : 'hasPreviousPage']) return found
      cursor = there.pageInfo[from === 'first' ? 'endCursor' : 'startCursor']
    }
  }

  beforeAll(async () => {
    for (const letter of ['d', 'b', 'g', 'a', 'f', 'c', 'e']) await make(`row-${letter}`)
    for (const letter of ['c', 'a', 'g']) await rename(`row-${letter}`, 'changed')
  })

  const rows = (letters: string) => [...letters].map((letter) => `row-${letter}`)
  test.each([
    [null, rows('dbgafce')],
    [{ field: 'CREATED_AT' }, rows('dbgafce')],
    [{ field: 'CREATED_AT', direction: 'DESC' }, rows('ecfagbd')],
    [{ field: 'NAME', direction: 'ASC' }, rows('abcdefg')],
    [{ field: 'NAME', direction: 'DESC' }, rows('gfedcba')],
    [{ field: 'UPDATED_AT', direction: 'ASC' }, rows('dbfecag')],
    [{ field: 'UPDATED_AT', direction: 'DESC' }, rows('gacefbd')],
  ])(
    'ordered by %j is the same from both ends, whatever the size of its pages',
    async (orderBy, expected) => {
      for (const size of [1, 3, 7, 100]) {
        expect(await all(orderBy, size, 'first')).toEqual(expected)
        expect(await all(orderBy, size, 'last')).toEqual(expected)
      }
    },
  )

  test('goes on where it was while rows come and go, in both directions', async () => {
    const orderBy = { field: 'NAME', direction: 'ASC' }
    const first = await page({ first: 3, orderBy })
    expect(names(first)).toEqual(rows('abc'))
    // The row at which the cursor stands goes, and others come before and after it.
    await remove('row-c')
    for (const name of ['row-aa', 'row-dd']) await make(name)
    const second = await page({ first: 3, after: first.pageInfo.endCursor, orderBy })
    expect(names(second)).toEqual(['row-d', 'row-dd', 'row-e'])
    expect(second).toMatchObject({
      totalCount: 8,
      pageInfo: { hasNextPage: true, hasPreviousPage: true },
    })
    await remove('row-d')
    await make('row-cc')
    const back = await page({ last: 3, before: second.pageInfo.startCursor, orderBy })
    expect(names(back)).toEqual(['row-aa', 'row-b', 'row-cc'])
    const last = await page({ first: 3, after: second.pageInfo.endCursor, orderBy })
    expect(names(last)).toEqual(rows('fg'))
    expect(last).toMatchObject({ totalCount: 8, pageInfo: { hasNextPage: false } })
  })
})

describe('a filter', () => {
  let vpcId = ''
  beforeAll(async () => {
    vpcId = await service.vpc()
    await reserve('bound', { labels: [{ key: 'team', value: 'shop' }] })
    await reserve('free')
    await make('chosen-a', {
      labels: [
        { key: 'team', value: 'shop' },
        { key: 'tier', value: '' },
      ],
      backends: [
        { address: 'fd00:1::1' },
        { address: 'fd00:1::ab', adminState: 'DISABLED' },
        { address: '10.1.2.3', adminState: 'STANDBY' },
      ],
      protocol: { udp: { port: 53 } },
      ipv4Reservations: [ids['bound']],
    })
    await make('chosen-b', { labels: [{ key: 'team', value: 'other' }] })
  })

  const [a, b] = ['chosen-a', 'chosen-b']
  const base = { nameContains: 'chosen-' }
  /** What is asked, and the names that it finds: among load balancers called chosen-… */
  const loadBalancers: [Record<string, () => unknown>, string[]][] = [
    [{}, [a, b]],
    [{ ids: () => [ids[a], ids['bound'], 'bm90aGluZw=='] }, [a]],
    [{ ids: () => [] }, []],
    [{ nameContains: () => 'hosen-b' }, [b]],
    [{ nameContains: () => 'chosen_' }, []],
    [{ region: () => ['us-east-1', 'moon-1'] }, [a, b]],
    [{ region: () => ['moon-1'] }, []],
    [{ vpc: () => [vpcId] }, [a, b]],
    [{ vpc: () => [ids[a]] }, []],
    [{ phase: () => ['IDLE', 'FAILED'] }, [b]],
    [{ phase: () => ['PENDING'] }, [a]],
    [{ labels: () => [{ key: 'team' }] }, [a, b]],
    [{ labels: () => [{ key: 'team', values: ['shop', 'none'] }] }, [a]],
    [{ labels: () => [{ key: 'team' }, { key: 'tier', values: [''] }] }, [a]],
    [{ labels: () => [{ key: 'team', values: [] }] }, []],
    [{ address: () => vips[a] }, [a]],
    [{ address: () => vips['bound'] }, [a]],
    [{ address: () => vips['free'] }, []],
    [{ address: () => 'FD00:0001:0:0:0:0:0:00AB' }, [a]],
    [{ address: () => '10.1.2.3' }, [a]],
    [{ address: () => spelledOut(vips[b] ?? '') }, [b]],
  ]
  const given = (asked: Record<string, () => unknown>) =>
    Object.fromEntries(Object.entries(asked).map(([key, value]) => [key, value()]))
  const found = async (query: string, filter: object) => {
    const { nodes, totalCount } = await get<Connection>(query, { filter })
    expect(totalCount).toBe(nodes.length)
    return nodes.map(({ name }) => name)
  }
  const fieldsOf = (type: string) => {
    const input = schema.getType(type)
    if (!isInputObjectType(input)) throw new Error(`no input ${type}`)
    return Object.keys(input.getFields()).sort()
  }
  const tried = (rows: [Record<string, unknown>, unknown][]) =>
    [...new Set(rows.flatMap(([asked]) => Object.keys(asked)))].sort()

  test('of load balancers finds those that match all of it, in any spelling of an address', async () => {
    const query = `query ($filter: LoadBalancerFilter) { loadBalancers(filter: $filter) { totalCount nodes { name } } }`
    for (const [asked, names] of loadBalancers) {
      const filter = { ...base, ...given(asked) }
      expect([filter, await found(query, filter)]).toEqual([filter, names])
    }
    expect(tried(loadBalancers)).toEqual(fieldsOf('LoadBalancerFilter'))
    for (const [address, meant] of [
      ['::ffff:10.1.2.3', '10.1.2.3'],
      ['fd00:1::0.0.0.171', 'fd00:1::ab'],
    ]) {
      const { body } = await service.query(query, { filter: { address } })
      expect(body.errors?.[0]?.message).toContain(`Did you mean "${meant}"?`)
    }
  })

  test('of backends finds those that match all of it', async () => {
    const rows: [Record<string, () => unknown>, string[]][] = [
      [{}, ['fd00:1::1', 'fd00:1::ab', '10.1.2.3']],
      [{ address: () => 'FD00:1:0::AB' }, ['fd00:1::ab']],
      [{ adminState: () => ['STANDBY', 'DISABLED'] }, ['fd00:1::ab', '10.1.2.3']],
      [{ health: () => ['NOT_CHECKED'] }, ['fd00:1::1', 'fd00:1::ab', '10.1.2.3']],
      [{ health: () => ['HEALTHY'] }, []],
      [{ serving: () => true }, []],
      [{ serving: () => false, adminState: () => ['ENABLED'] }, ['fd00:1::1']],
    ]
    const query = `query ($id: ID!, $filter: BackendFilter) { loadBalancer(id: $id) {
      backends(filter: $filter) { totalCount nodes { address } } } }`
    for (const [asked, addresses] of rows) {
      const filter = given(asked)
      const { backends } = await get<{
        backends: { totalCount: number; nodes: { address: string }[] }
      }>(query, { id: ids[a], filter })
      expect([filter, backends.nodes.map(({ address }) => address)]).toEqual([filter, addresses])
      expect(backends.totalCount).toBe(addresses.length)
    }
    expect(tried(rows)).toEqual(fieldsOf('BackendFilter'))
  })

  test('of reservations finds those that match all of it', async () => {
    const rows: [Record<string, () => unknown>, string[]][] = [
      [{ ids: () => [ids['bound'], ids['free']] }, ['bound', 'free']],
      [{ ids: () => [ids[a]] }, []],
      [{ nameContains: () => 'fre' }, ['free']],
      [{ region: () => ['moon-1'] }, []],
      [{ address: () => vips['free'] }, ['free']],
      [{ state: () => ['RESERVED'], nameContains: () => 'fre' }, ['free']],
      [{ bound: () => true, labels: () => [{ key: 'team' }] }, ['bound']],
      [{ bound: () => false, labels: () => [{ key: 'team', values: ['shop'] }] }, []],
    ]
    const query = `query ($filter: IPv4ReservationFilter) { ipv4Reservations(filter: $filter) { totalCount nodes { name } } }`
    for (const [asked, names] of rows) {
      const filter = given(asked)
      expect([filter, await found(query, filter)]).toEqual([filter, names])
    }
    expect(tried(rows)).toEqual(fieldsOf('IPv4ReservationFilter'))
  })

  test('of VPCs, endpoints and events finds those that match all of it', async () => {
    const vpcs = `query ($filter: VpcFilter) { vpcs(filter: $filter) { totalCount nodes { name } } }`
    expect(await found(vpcs, { nameContains: 'ai' })).toEqual(['main'])
    expect(await found(vpcs, { nameContains: 'x' })).toEqual([])
    expect(fieldsOf('VpcFilter')).toEqual(['nameContains'])
    const endpoints: [Record<string, () => unknown>, string[]][] = [
      [{ address: () => 'FD00:1:0::3' }, ['machine-3']],
      [{ nameContains: () => '-4', region: () => ['us-east-1'] }, ['machine-4']],
      [{ region: () => ['moon-1'] }, []],
    ]
    for (const [asked, names] of endpoints) {
      const filter = given(asked)
      const { endpoints: connection } = await get<{ endpoints: Connection }>(
        `query ($filter: EndpointFilter) { vpcByName(name: "main") { endpoints(filter: $filter) { totalCount nodes { name } } } }`,
        { filter },
      )
      expect([filter, connection.nodes.map(({ name }) => name)]).toEqual([filter, names])
      expect(connection.totalCount).toBe(names.length)
    }
    expect(tried(endpoints)).toEqual(fieldsOf('EndpointFilter'))
    const since = await get<string>('{ cursor }')
    await make('chosen-later')
    const events: [Record<string, () => unknown>, string[]][] = [
      [{ objectId: () => ids['chosen-later'] }, ['LoadBalancerCreated']],
      [{ objectId: () => 'bm90aGluZw==' }, []],
      [{ since: () => since, reason: () => ['LoadBalancerCreated'] }, ['LoadBalancerCreated']],
      [{ since: () => since, reason: () => ['LoadBalancerDeleted'] }, []],
    ]
    for (const [asked, reasons] of events) {
      const filter = given(asked)
      const { nodes } = await get<{ nodes: { reason: string }[] }>(
        'query ($filter: EventFilter) { events(filter: $filter) { nodes { reason } } }',
        { filter },
      )
      expect([filter, nodes.map(({ reason }) => reason)]).toEqual([filter, reasons])
    }
    expect(tried(events)).toEqual(fieldsOf('EventFilter'))
  })
})

/** An IPv6 address without `::` and with all its zeros, in capitals. */
function spelledOut(address: string): string {
  const [left = '', right = ''] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const missing = 8 - groups(left).length - groups(right).length
  return [...groups(left), ...Array<string>(missing).fill('0'), ...groups(right)]
    .map((group) => group.padStart(4, '0').toUpperCase())
    .join(':')
}
