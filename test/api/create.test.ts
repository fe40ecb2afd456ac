import { describe, expect, it } from 'vitest'
import { useInstallation } from '../support/installation.ts'
import { CREATE, createLoadBalancer, inputOf, type Refusal } from './operations.ts'

const installation = useInstallation({
  workers: false,
  pools: [
    { name: 'east6', region: 'us-east-1', prefix: '2001:db8:1::/64', skipFirstAndLast: true },
    { name: 'west6', region: 'us-west-1', prefix: '2001:db8:2::/48', allocationPrefixLength: 64 },
    { name: 'west4', region: 'us-west-1', prefix: '203.0.113.0/30' },
  ],
})

const refusalOf = (input: Record<string, unknown>): Promise<Refusal> =>
  installation.api.get<Refusal>(CREATE, { input: inputOf(installation, input) })

describe('a new load balancer', () => {
  it('has its IPv6 address at once, and is pending until it is in effect', async () => {
    const [address] = installation.addresses('us-east-1-a')
    const made = await createLoadBalancer(installation, {
      name: 'at-once',
      backends: [{ address }],
      sessionAffinity: 'CLIENT_IP',
    })
    expect(made).toMatchObject({
      generation: 1,
      protocolName: 'TCP',
      ports: [{ from: 80, to: 80 }],
      sessionAffinity: 'CLIENT_IP',
      status: { phase: 'PENDING', observedGeneration: 0, ready: { status: 'FALSE' } },
      backends: {
        totalCount: 1,
        nodes: [{ address, resolved: { status: 'TRUE', reason: 'Resolved' } }],
      },
    })
    expect(made.addresses).toEqual([
      expect.objectContaining({
        family: 'IPV6',
        address: expect.stringMatching(/^2001:db8:1::[0-9a-f]+$/),
        prefix: `${made.addresses[0]?.address}/128`,
      }),
    ])
  })

  it('has a subnet, and its first usable address, where the pool hands out subnets', async () => {
    const made = await createLoadBalancer(installation, { name: 'subnet', region: 'us-west-1' })
    const [address] = made.addresses
    expect(address?.prefix).toMatch(/^2001:db8:2:[0-9a-f]*:?:\/64$/)
    expect(address?.address).toBe(address?.prefix.replace('/64', '1'))
  })

  it('without backends is idle and in effect: nothing has to happen anywhere', async () => {
    const made = await createLoadBalancer(installation, { name: 'idle' })
    expect(made.status).toMatchObject({
      phase: 'IDLE',
      observedGeneration: 1,
      ready: { status: 'FALSE', reason: 'NoBackends' },
    })
  })

  it('takes UDP', async () => {
    const made = await createLoadBalancer(installation, {
      name: 'udp',
      protocol: { udp: { port: 53 } },
    })
    expect(made).toMatchObject({ protocolName: 'UDP', ports: [{ from: 53, to: 53 }] })
  })

  it('is the same again for the same idempotency key and input, and refused for another input', async () => {
    const input = { name: 'keyed', idempotencyKey: 'key-1' }
    const first = await createLoadBalancer(installation, input)
    const again = await createLoadBalancer(installation, input)
    expect(again.id).toBe(first.id)
    expect(await refusalOf({ ...input, displayName: 'other' })).toMatchObject({
      __typename: 'IdempotencyKeyReused',
    })
  })

  it('is one where a second caller would exceed the quota at the same time', async () => {
    const { store } = installation
    const region = await store.prisma.region.findUniqueOrThrow({ where: { code: 'us-west-1' } })
    const limit = await store.prisma.loadBalancer.count({
      where: { regionId: region.id, project: 'other' },
    })
    await store.prisma.quota.create({
      data: {
        project: 'other',
        resource: 'networking.datumapis.com/loadbalancers',
        regionId: region.id,
        limit: limit + 1,
      },
    })
    const input = {
      vpc: installation.vpc('other'),
      region: 'us-west-1',
      protocol: { tcp: { port: 1 } },
    }
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        installation.other.get<{ __typename: string }>(CREATE, {
          input: { ...input, name: `twin-${index}` },
        }),
      ),
    )
    expect(answers.map(({ __typename }) => __typename).sort()).toEqual([
      'CreateLoadBalancerPayload',
      ...Array.from({ length: 7 }, () => 'QuotaExceeded'),
    ])
  })
})

describe('bad input', () => {
  it('an address that the VPC does not know is accepted, unresolved and in no cluster', async () => {
    const made = await createLoadBalancer(installation, {
      name: 'unknown',
      backends: [{ address: 'fd20:1::dead' }],
    })
    expect(made.backends.nodes).toEqual([
      expect.objectContaining({
        address: 'fd20:1::dead',
        resolved: expect.objectContaining({ status: 'FALSE', reason: 'AddressUnknown' }),
        serving: false,
      }),
    ])
    expect(
      await installation.store.prisma.placement.count({
        where: { loadBalancer: { name: 'unknown' } },
      }),
    ).toBe(0)
  })

  it('a backend that is known in another region is refused', async () => {
    const [address] = installation.addresses('us-west-1-a')
    expect(await refusalOf({ name: 'elsewhere', backends: [{ address }] })).toMatchObject({
      __typename: 'BackendsOutsideRegion',
      message: expect.stringContaining(address ?? ''),
    })
  })

  it('one backend given twice is refused, also in two spellings', async () => {
    const backends = [
      { address: 'fd20:1::1' },
      { address: 'FD20:1:0::1' },
      { address: 'fd20:1::1' },
    ]
    const refusal = await refusalOf({ name: 'twice', backends })
    expect(refusal).toMatchObject({ __typename: 'ValidationFailed' })
    expect(refusal.issues?.map(({ code, path }) => [code, path.join('.')])).toEqual([
      ['DUPLICATE', 'backends.1.address'],
      ['DUPLICATE', 'backends.2.address'],
    ])
  })

  it.each([0, 65_536, -1])('port %i is refused', async (port) => {
    const refusal = await refusalOf({ name: 'port', protocol: { tcp: { port } } })
    expect(refusal.issues).toEqual([
      expect.objectContaining({ code: 'INVALID_PORT', path: ['protocol', 'tcp', 'port'] }),
    ])
  })

  it.each([
    ['A_b', 'a-b'],
    ['-a', 'a'],
    ['a-', 'a'],
    ['1a', null],
  ])('the name %s is refused', async (name, suggestion) => {
    const refusal = await refusalOf({ name })
    expect(refusal.issues).toEqual([
      expect.objectContaining({ code: 'INVALID_NAME', path: ['name'] }),
    ])
    if (suggestion !== null) expect(refusal.issues?.[0]?.suggestion).toBe(suggestion)
  })

  it.each([
    ['010.0.0.1', '10.0.0.1'],
    ['10.1', null],
    ['fe80::1%eth0', null],
    ['[2001:db8::1]', '2001:db8::1'],
    ['::ffff:10.0.0.1', '10.0.0.1'],
    ['0x0a.0.0.1', null],
    ['167772161', null],
  ])('the address %s is refused', async (address, suggestion) => {
    const refusal = await refusalOf({ name: 'address', backends: [{ address }] })
    expect(refusal.issues).toEqual([
      expect.objectContaining({ code: 'INVALID_ADDRESS', path: ['backends', '0', 'address'] }),
    ])
    if (suggestion !== null) expect(refusal.issues?.[0]?.suggestion).toBe(suggestion)
  })

  it('everything that is wrong is told at once, scalars and all', async () => {
    const refusal = await refusalOf({
      name: 'A_b',
      protocol: { udp: { port: 0 } },
      backends: [
        { address: '010.0.0.1' },
        { address: '::' },
        { address: 'fd20:1::1' },
        { address: 'fd20:1:0::1' },
      ],
      labels: [
        { key: 'a', value: '1' },
        { key: 'a', value: '2' },
      ],
      healthCheck: { timeoutSeconds: 30, intervalSeconds: 10, rise: 0 },
    })
    expect(refusal.issues?.map(({ path }) => path.join('.')).sort()).toEqual([
      'backends.0.address',
      'backends.1.address',
      'backends.3.address',
      'healthCheck.rise',
      'healthCheck.timeoutSeconds',
      'labels.1.key',
      'name',
      'protocol.udp.port',
    ])
  })

  it('an unknown region is not found', async () => {
    expect(await refusalOf({ name: 'nowhere', region: 'moon-1' })).toMatchObject({
      __typename: 'NotFound',
      path: ['region'],
    })
  })

  it('a name that is taken is refused, with the name', async () => {
    await createLoadBalancer(installation, { name: 'taken' })
    const query = CREATE.replace('__typename', '__typename ... on NameTaken { takenName }')
    const refusal = await installation.api.get(query, {
      input: inputOf(installation, { name: 'taken' }),
    })
    expect(refusal).toMatchObject({ __typename: 'NameTaken', takenName: 'taken', path: ['name'] })
  })

  it("another project's VPC is not found, in the words for one that does not exist", async () => {
    const foreign = await refusalOf({ name: 'foreign', vpc: installation.vpc('other') })
    const absent = await refusalOf({ name: 'foreign', vpc: 'bm90aGluZw==' })
    expect(foreign).toMatchObject({ __typename: 'NotFound', path: ['vpc'] })
    expect({ ...absent }).toEqual({ ...foreign })
  })

  it('an exhausted pool is told, and nothing is left of the attempt', async () => {
    const { store } = installation
    const pool = await store.prisma.addressPool.findUniqueOrThrow({ where: { name: 'east6' } })
    await store.prisma.addressPool.update({ where: { id: pool.id }, data: { state: 'DISABLED' } })
    expect(await refusalOf({ name: 'exhausted' })).toMatchObject({
      __typename: 'PoolExhausted',
      retryable: true,
    })
    await store.prisma.addressPool.update({ where: { id: pool.id }, data: { state: 'ACTIVE' } })
    await createLoadBalancer(installation, { name: 'exhausted' })
  })

  it('a project that is not released is refused before anything else', async () => {
    await installation.store.prisma.project.update({
      where: { name: 'other' },
      data: { released: false },
    })
    const refusal = await installation.other.get<Refusal>(CREATE, {
      input: inputOf(installation, { name: 'A_b' }),
    })
    expect(refusal).toMatchObject({ __typename: 'NotReleased' })
    await installation.store.prisma.project.update({
      where: { name: 'other' },
      data: { released: true },
    })
  })
})
