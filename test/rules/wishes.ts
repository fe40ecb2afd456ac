import fc from 'fast-check'
import type {
  Capabilities,
  Dialect,
  Endpoint,
  Wanted,
  WantedBackend,
  WantedVip,
} from '../../src/rules/wanted.ts'

export const LOAD_BALANCER = '0190a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b'
export const VIP = '2001:db8:100::1'
export const IPV4_VIP = '203.0.113.7'

export const BACKENDS: Capabilities = {
  dialect: 'backends',
  sessionAffinity: false,
  servesIPv4: false,
}
export const SELECTOR: Capabilities = { ...BACKENDS, dialect: 'selector' }

export const endpoint = (number: number, node = `worker-${number}`): Endpoint => ({
  attachment: { namespace: 'tenant', name: `web-${number}`, uid: `uid-${number}` },
  attachmentRef: `a${number}`,
  node,
  egressKind: 'veth',
})

export const backend = (number: number, change: Partial<WantedBackend> = {}): WantedBackend => ({
  id: `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`,
  address: `fd20:60::${number.toString(16)}`,
  adminState: 'ENABLED',
  unhealthy: false,
  endpoint: endpoint(number),
  nodeTaken: false,
  ...change,
})

export const vip = (change: Partial<WantedVip> = {}): WantedVip => ({
  address: VIP,
  family: 'IPV6',
  heldBy: null,
  ...change,
})

export const ipv4Vip = (change: Partial<WantedVip> = {}): WantedVip =>
  vip({ address: IPV4_VIP, family: 'IPV4', ...change })

export const wanted = (change: Partial<Wanted> = {}): Wanted => ({
  loadBalancer: LOAD_BALANCER,
  instance: 'instance-1',
  vpcRef: '60',
  protocol: 'TCP',
  port: 80,
  sessionAffinity: 'NONE',
  generation: 3,
  rulesGeneration: 2,
  asked: 7,
  placed: true,
  vips: [vip()],
  backends: [backend(1), backend(2)],
  ...change,
})

const anyBackend = (number: number): fc.Arbitrary<WantedBackend> =>
  fc
    .record({
      adminState: fc.constantFrom('ENABLED', 'ENABLED', 'ENABLED', 'STANDBY', 'DISABLED'),
      unhealthy: fc.boolean(),
      nodeTaken: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0),
      ipv4: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
      node: fc.constantFrom('n1', 'n2', 'n3'),
      egressKind: fc.constantFrom('veth', 'tap'),
      known: fc.integer({ min: 0, max: 5 }).map((roll) => roll > 0),
    } as const)
    .map(({ ipv4, node, egressKind, known, ...rest }) =>
      backend(number, {
        ...rest,
        ...(ipv4 ? { address: `10.0.0.${number}` } : {}),
        endpoint: known ? { ...endpoint(number, node), egressKind } : null,
      }),
    )

/** Any wish of one load balancer; each draws from the same few addresses, nodes and ports. */
export const anyWanted: fc.Arbitrary<Wanted> = fc
  .record({
    protocol: fc.constantFrom('TCP', 'UDP'),
    port: fc.constantFrom(80, 443),
    sessionAffinity: fc.constantFrom('NONE', 'CLIENT_IP', 'CLIENT_IP_AND_PROTOCOL'),
    placed: fc.integer({ min: 0, max: 9 }).map((roll) => roll > 0),
    vips: fc
      .subarray([ipv4Vip(), ipv4Vip({ address: '203.0.113.8', heldBy: 'another' })])
      .map((more) => [vip(), ...more]),
    backends: fc
      .shuffledSubarray([1, 2, 3, 4, 5])
      .chain((numbers) => fc.tuple(...numbers.map(anyBackend))),
  } as const)
  .map((change) => wanted(change))

export const anyCapabilities: fc.Arbitrary<Capabilities & { dialect: Dialect }> = fc.record({
  dialect: fc.constantFrom<Dialect[]>('backends', 'selector'),
  sessionAffinity: fc.boolean(),
  servesIPv4: fc.boolean(),
})
