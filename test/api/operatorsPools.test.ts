import { beforeAll, describe, expect, test } from 'vitest'
import { useInstallation } from '../support/installation.ts'
import {
  accepted,
  CREATE,
  createLoadBalancer,
  DELETE,
  inputOf,
  RELEASE,
  RESERVE,
} from './operations.ts'
import { poolCalled, tell } from './operators.ts'

const installation = useInstallation({
  workers: false,
  pools: [{ name: 'small4', region: 'us-east-1', prefix: '198.51.100.0/30' }],
})
const update = (input: Record<string, unknown>) =>
  tell(installation.operators, 'updateAddressPool', input)
const create = (input: Record<string, unknown>) =>
  tell(installation.operators, 'createAddressPool', { region: 'us-west-1', ...input })
/** The VIP that the next load balancer in the west gets; null: none is left. */
const vipOfNext = async (name: string): Promise<string | null> => {
  const input = inputOf(installation, { name, region: 'us-west-1' })
  const answer = await installation.api.get<{
    __typename: string
    loadBalancer?: { addresses: { address: string }[] }
  }>(CREATE, { input })
  if (answer.__typename === 'PoolExhausted') return null
  return answer.loadBalancer?.addresses[0]?.address ?? JSON.stringify(answer)
}
const vips = async (name: string, count: number) => {
  const found: (string | null)[] = []
  for (let index = 0; index < count; index += 1) found.push(await vipOfNext(`${name}-${index}`))
  return found
}
const poolOf = async (name: string, prefix: string, more: object = {}) => {
  const { pool } = await create({ name, prefix, ...more })
  if (pool === undefined) throw new Error(`no pool ${name}`)
  return pool
}
/** Only one pool of the west is active at a time. */
const only = async (name: string) => {
  const { nodes } = await installation.operators.get<{ nodes: { id: string; name: string }[] }>(
    '{ addressPools(region: "us-west-1", first: 100) { nodes { id name } } }',
  )
  for (const pool of nodes) {
    await update({ id: pool.id, state: pool.name === name ? 'ACTIVE' : 'DISABLED' })
  }
}

beforeAll(async () => {
  for (const resource of ['loadbalancers', 'rulespervpc']) {
    await tell(installation.operators, 'setQuota', {
      project: 'demo',
      resource: `networking.datumapis.com/${resource}`,
      region: 'us-west-1',
      limit: null,
    })
  }
})

describe('pools', () => {
  test('are made, counted in texts and listed by region', async () => {
    const pool = await poolOf('huge', '2001:db8:a::/64', { skipFirstAndLast: true })
    expect(pool).toMatchObject({ size: '281474976710655', used: '0', state: 'ACTIVE' })
    await createLoadBalancer(installation, { name: 'in-huge', region: 'us-west-1' })
    expect(await poolCalled(installation.operators, 'huge')).toMatchObject({ used: '1', held: '0' })
    const east = await installation.operators.get<{ totalCount: number }>(
      '{ addressPools(region: "us-east-1") { totalCount nodes { name } } }',
    )
    expect(east).toEqual({ totalCount: 1, nodes: [{ name: 'small4' }] })
  })

  test('are refused with a name, prefix or region that will not do', async () => {
    await poolOf('taken', '2001:db8:b::/64')
    expect(await create({ name: 'taken', prefix: '2001:db8:c::/64' })).toMatchObject({
      __typename: 'NameTaken',
      takenName: 'taken',
    })
    expect(await create({ name: 'inside', prefix: '2001:db8:b::/80' })).toMatchObject({
      __typename: 'PoolOverlap',
      poolName: 'taken',
      prefix: '2001:db8:b::/64',
    })
    const wrong = {
      name: 'No',
      prefix: '2001:db8::1/64',
      excluded: ['10.0.0.1/8'],
      coolDownSeconds: -1,
    }
    const told = await create(wrong)
    expect(told.issues?.map(({ path }) => path.join('.'))).toEqual([
      'name',
      'prefix',
      'excluded.0',
      'coolDownSeconds',
    ])
    expect(await create({ name: 'x', prefix: '2001:db8:d::/64', region: 'nowhere' })).toMatchObject(
      { __typename: 'NotFound', path: ['region'] },
    )
    expect(await create({ name: 'x', prefix: '10.0.0.0/8' })).toMatchObject({
      issues: [{ path: ['prefix'] }],
    })
  })

  test('that are disabled hand out nothing, and keep what they handed out', async () => {
    const pool = await poolOf('resting', '2001:db8:e::/120')
    await only('resting')
    const [vip] = await vips('resting', 1)
    expect(vip).toMatch(/^2001:db8:e::/)
    await update({ id: pool.id, state: 'DISABLED' })
    expect(await vipOfNext('no-pool')).toBeNull()
    expect(await poolCalled(installation.operators, 'resting')).toMatchObject({ used: '1' })
  })

  test('grow without anybody being moved, to both sides', async () => {
    const pool = await poolOf('growing', '2001:db8:f::10/124')
    await only('growing')
    const before = await vips('grow', 16)
    expect(new Set(before).size).toBe(16)
    expect(await vipOfNext('full')).toBeNull()
    const { pool: grown } = await update({ id: pool.id, prefix: '2001:db8:f::/123' })
    expect(grown).toMatchObject({ prefix: '2001:db8:f::/123', size: '32', used: '16' })
    const after = await vips('grown', 16)
    expect(new Set([...before, ...after]).size).toBe(32)
    expect(await vipOfNext('full-again')).toBeNull()
    await update({ id: pool.id, prefix: '2001:db8:f::/122' })
    const more = await vips('more', 32)
    expect(new Set([...before, ...after, ...more]).size).toBe(64)
    expect(more).not.toContain(null)
  })

  test('shrink only where nobody has an address that would leave', async () => {
    const pool = await poolOf('shrinking', '2001:db8:10::/120')
    await only('shrinking')
    const given = await vips('shrink', 3)
    const refused = await update({ id: pool.id, prefix: '2001:db8:10::80/121' })
    expect(refused).toMatchObject({ __typename: 'PoolInUse', path: ['prefix'] })
    expect(refused.holders?.length).toBeGreaterThan(0)
    expect(given).toEqual(expect.arrayContaining(refused.holders ?? []))
    const { pool: shrunk } = await update({ id: pool.id, prefix: '2001:db8:10::/121' })
    expect(shrunk).toMatchObject({ size: '128', used: '3' })
    const more = await vips('shrunk', 4)
    expect(new Set([...given, ...more]).size).toBe(7)
    expect(await update({ id: pool.id, prefix: '10.0.0.0/24' })).toMatchObject({
      issues: [{ code: 'INVALID_PREFIX', path: ['prefix'] }],
    })
    expect(await update({ id: pool.id, prefix: '2001:db8:b::/120' })).toMatchObject({
      __typename: 'PoolInUse',
    })
  })

  test('that shrink to their upper half go on there', async () => {
    const pool = await poolOf('upper', '2001:db8:11::/120')
    await update({ id: pool.id, prefix: '2001:db8:11::80/121' })
    await only('upper')
    const given = await vips('upper', 20)
    expect(given.every((vip) => vip !== null && /^2001:db8:11::[89a-f].$/.test(vip))).toBe(true)
    expect(new Set(given).size).toBe(20)
    expect(await update({ id: pool.id, prefix: '2001:db8:b::/64' })).toMatchObject({
      __typename: 'PoolInUse',
    })
  })

  test('may not grow into another one', async () => {
    const pool = await poolOf('neighbour', '2001:db8:12:1::/64')
    await poolOf('beside', '2001:db8:12::/64')
    expect(await update({ id: pool.id, prefix: '2001:db8:12::/48' })).toMatchObject({
      __typename: 'PoolOverlap',
      poolName: 'beside',
    })
  })

  test('never hand out what is excluded, and do again once it is let in', async () => {
    const pool = await poolOf('excluding', '2001:db8:13::/124')
    await update({ id: pool.id, excluded: ['2001:db8:13::/125'] })
    await only('excluding')
    const upper = await vips('excluded', 8)
    expect(upper.every((vip) => vip !== null && /::[89a-f]$/.test(vip))).toBe(true)
    expect(await vipOfNext('none')).toBeNull()
    expect(await update({ id: pool.id, excluded: ['2001:db8:13::8/125'] })).toMatchObject({
      __typename: 'PoolInUse',
      path: ['excluded'],
    })
    const { pool: open } = await update({ id: pool.id, excluded: [] })
    expect(open).toMatchObject({ size: '16', excluded: [] })
    const lower = await vips('let-in', 8)
    expect(lower.every((vip) => vip !== null && /::[0-7]?$/.test(vip))).toBe(true)
  })

  test('of IPv4 grow, and shrink but for addresses that are reserved', async () => {
    const { id } = await poolCalled(installation.operators, 'small4')
    const reserve = (name: string) =>
      accepted<{ reservation: { id: string; address: string } }>(installation.api, RESERVE, {
        name,
        region: 'us-east-1',
      })
    const first = await reserve('first')
    expect(await update({ id, prefix: '198.51.100.0/29' })).toMatchObject({
      pool: { size: '8', used: '1' },
    })
    await update({ id, excluded: ['198.51.100.1/32', '198.51.100.2/31'] })
    const second = await reserve('second')
    expect(second.reservation.address).toBe('198.51.100.4')
    expect(await update({ id, prefix: '198.51.100.0/30' })).toMatchObject({
      __typename: 'PoolInUse',
      holders: ['198.51.100.4'],
    })
    await accepted(installation.api, RELEASE, { id: second.reservation.id })
    expect(await poolCalled(installation.operators, 'small4')).toMatchObject({
      used: '1',
      coolingDown: '1',
    })
    expect(await update({ id, prefix: '198.51.100.0/30' })).toMatchObject({ pool: { size: '1' } })
    expect(await tell(installation.operators, 'deleteAddressPool', { id })).toMatchObject({
      __typename: 'PoolInUse',
      path: ['id'],
      holders: [first.reservation.address],
    })
  })

  test('cool down for as long as they say', async () => {
    const pool = await poolOf('cooling', '2001:db8:14::/128', { coolDownSeconds: 0 })
    await only('cooling')
    const input = inputOf(installation, { name: 'one', region: 'us-west-1' })
    const { loadBalancer } = await accepted(installation.api, CREATE, input)
    await accepted(installation.api, DELETE, { id: loadBalancer.id })
    expect(await vipOfNext('two')).toBe('2001:db8:14::')
    expect(await update({ id: pool.id, coolDownSeconds: 9_999_999 })).toMatchObject({
      issues: [{ path: ['coolDownSeconds'] }],
    })
    expect(await update({ id: pool.id, coolDownSeconds: 60 })).toMatchObject({
      pool: { coolDownSeconds: 60 },
    })
  })

  test('are deleted once nobody has an address of them', async () => {
    const { operators, api } = installation
    const pool = await poolOf('leaving', '2001:db8:15::/120')
    await only('leaving')
    const input = inputOf(installation, { name: 'stays', region: 'us-west-1' })
    const { loadBalancer } = await accepted(api, CREATE, input)
    const { id } = pool
    expect(await tell(operators, 'deleteAddressPool', { id })).toMatchObject({
      __typename: 'PoolInUse',
      holders: [loadBalancer.addresses[0]?.address],
    })
    await accepted(api, DELETE, { id: loadBalancer.id })
    expect(await tell(operators, 'deleteAddressPool', { id })).toMatchObject({
      __typename: 'DeleteAddressPoolPayload',
      pool: { name: 'leaving' },
    })
    expect(await tell(operators, 'deleteAddressPool', { id })).toMatchObject({
      __typename: 'NotFound',
      missingId: id,
    })
    expect(await update({ id, state: 'ACTIVE' })).toMatchObject({
      __typename: 'NotFound',
      missingId: id,
    })
  })

  test('never hand out an IPv4 address that a cluster may still carry, not to whom it was taken from either', async () => {
    const { store, api } = installation
    await poolOf('held4', '203.0.113.9/32', { coolDownSeconds: 600 })
    const input = { name: 'returned', region: 'us-west-1' }
    const { reservation } = await accepted<{ reservation: { id: string; address: string } }>(
      api,
      RESERVE,
      input,
    )
    await accepted(api, RELEASE, { id: reservation.id })
    const [cluster] = await store.prisma.cluster.findMany()
    const hold = {
      clusterId: cluster?.id ?? '',
      vip: reservation.address,
      loadBalancerId: '00000000-0000-7000-8000-000000000002',
      ruleName: 'lb-of-nobody',
    }
    await store.prisma.hold.create({ data: hold })
    expect(await poolCalled(installation.operators, 'held4')).toMatchObject({ held: '1' })
    expect(await api.get(RESERVE, { input })).toMatchObject({ __typename: 'PoolExhausted' })
    await store.prisma.hold.deleteMany({ where: { vip: reservation.address } })
    expect(await poolCalled(installation.operators, 'held4')).toMatchObject({ coolingDown: '1' })
    await accepted(api, RESERVE, input)
  })

  test('never hand out an address that a cluster may still carry, neither a new one nor a returned one', async () => {
    const { store, operators } = installation
    await poolOf('held', '2001:db8:16::/127', { coolDownSeconds: 0 })
    await only('held')
    const [cluster] = await store.prisma.cluster.findMany()
    const hold = { clusterId: cluster?.id ?? '', ruleName: 'lb-of-nobody' }
    const unknown = '00000000-0000-7000-8000-000000000001'
    await store.prisma.hold.create({
      data: { ...hold, vip: '2001:db8:16::', loadBalancerId: unknown },
    })
    expect(await vips('held', 2)).toEqual(['2001:db8:16::1', null])
    expect(await poolCalled(operators, 'held')).toMatchObject({ used: '1', held: '1' })
    await store.prisma.hold.updateMany({
      where: { loadBalancerId: unknown },
      data: { goneAt: new Date() },
    })
    expect(await vipOfNext('released')).toBe('2001:db8:16::')
  })
})
