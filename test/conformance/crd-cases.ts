import type { Json, JsonObject } from '../../dev/kube/json.ts'
import { objectAt, textAt } from '../../dev/kube/json.ts'
import { CLOUD, condition, NETWORK, nameOf } from './client.ts'

/** One object and what an API server makes of it. */
export type Case = {
  name: string
  /** Only in this dialect of NetworkRule. */
  dialect?: 'backends' | 'selector'
  path: string
  object: JsonObject
  /** Applied to the status subresource. */
  status?: boolean
  /** Applied before, in order. */
  before?: JsonObject[]
  /** 'accepted', or the code of the refusal. */
  expected: string
}

const PLURALS: Record<string, string> = {
  NetworkRule: 'networkrules',
  NetworkGateway: 'networkgateways',
  ServiceVIPBinding: 'servicevipbindings',
  BGPAdvertisement: 'bgpadvertisements',
  VPC: 'vpcs',
  VPCAttachment: 'vpcattachments',
}

const collection = (kind: string): string => {
  const group = kind.startsWith('VPC') ? CLOUD : NETWORK
  return `${group}/namespaces/galactic-system/${PLURALS[kind] ?? ''}`
}

/** Where a sample goes. */
export const samplePath = (sample: JsonObject): string =>
  `${collection(textAt(sample, 'kind') ?? '')}/${nameOf(sample)}`

const object = (kind: string, spec: JsonObject | undefined, name: string): JsonObject => ({
  apiVersion: `${kind.startsWith('VPC') ? 'cloud' : 'network'}.datumapis.com/v1alpha1`,
  kind,
  metadata: { name },
  ...(spec === undefined ? {} : { spec }),
})

type Change = Record<string, Json | undefined>

/** `base` with `change` laid over it; undefined takes a field out. */
function changed(base: JsonObject, change: Change): JsonObject {
  const out: JsonObject = { ...base }
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined) delete out[name]
    else out[name] = value
  }
  return out
}

let count = 0
const fresh = (): string => `case-${count++}`

const cases =
  (kind: string, base: JsonObject, dialect?: Case['dialect']) =>
  (expected: string, changes: Record<string, Change>): Case[] =>
    Object.entries(changes).map(([name, change]) => ({
      name: `${kind}: ${name}`,
      ...(dialect === undefined ? {} : { dialect }),
      path: collection(kind),
      object: object(kind, changed(base, change), fresh()),
      expected,
    }))

const statusCases = (
  kind: string,
  spec: JsonObject,
  dialect: Case['dialect'],
  expected: string,
  statuses: Record<string, JsonObject>,
): Case[] =>
  Object.entries(statuses).map(([name, status]) => {
    const bare = object(kind, spec, fresh())
    return {
      name: `${kind} status: ${name}`,
      ...(dialect === undefined ? {} : { dialect }),
      path: collection(kind),
      object: { ...object(kind, undefined, nameOf(bare)), status },
      status: true,
      before: [bare],
      expected,
    }
  })

const common = { vpcRef: '60', vipAddresses: ['2001:db8::1'], protocol: 'tcp', port: 80 }
const listed = (n: number): Json[] =>
  Array.from({ length: n }, (_, i) => ({ address: `fd00::${(i + 1).toString(16)}`, port: 80 }))
const backends = { ...common, vpcAttachmentRef: '61', backends: listed(1) }
const selector = {
  ...common,
  backendSelector: { matchLabels: { 'a.example/b': 'serving' } },
  backendPort: 80,
}

const sharedGood = {
  'as it should be': {},
  'UDP, IPv4': { protocol: 'udp', vipAddresses: ['192.0.2.1'] },
  'one address in two spellings': { vipAddresses: ['2001:db8::1', '2001:DB8:0::1'] },
  'unspecified and multicast': { vipAddresses: ['::', 'ff02::1', '224.0.0.1'] },
  'dotted IPv6': { vipAddresses: ['64:ff9b::1.2.3.4'] },
  'the highest port': { port: 65535 },
  'a long vpcRef': { vpcRef: 'x'.repeat(500) },
}
const sharedBad = {
  'port 0': { port: 0 },
  'port 65536': { port: 65536 },
  'another protocol': { protocol: 'sctp' },
  'capital protocol': { protocol: 'TCP' },
  'no vpcRef': { vpcRef: undefined },
  'empty vpcRef': { vpcRef: '' },
  'no VIP': { vipAddresses: [] },
  'VIPs missing': { vipAddresses: undefined },
  'nine VIPs': { vipAddresses: listed(9).map((one) => textAt(Object(one), 'address') ?? '') },
  'an IPv4-mapped VIP': { vipAddresses: ['::ffff:10.0.0.1'] },
  'an IPv4-mapped VIP in hex': { vipAddresses: ['::ffff:a00:1'] },
  'a zone': { vipAddresses: ['fe80::1%eth0'] },
  'leading zeros': { vipAddresses: ['010.0.0.1'] },
  'too few parts': { vipAddresses: ['10.1'] },
  brackets: { vipAddresses: ['[2001:db8::1]'] },
  'a length': { vipAddresses: ['2001:db8::1/128'] },
  'too long a VIP': { vipAddresses: [`${'0'.repeat(40)}::0001`] },
}
const sharedUntypable = {
  'a port as text': { port: '80' },
  'the same VIP twice': { vipAddresses: ['2001:db8::1', '2001:db8::1'] },
  'an unknown field': { sessionAffinity: 'CLIENT_IP' },
}

const conditionsGood = {
  'a plain type': { conditions: [condition('Accepted')] },
  'a gateway before the type': { conditions: [condition('iad-gateway1/Programmed')] },
  'a dotted node before it': { conditions: [condition('ip-10-0-0-1.ec2.internal/BackendsBound')] },
  'an observed generation': { observedGeneration: 3, conditions: [] },
}
const conditionsBad = {
  'a capital prefix': { conditions: [condition('Node1/Programmed')] },
  'two prefixes': { conditions: [condition('a/b/Programmed')] },
  'another status': { conditions: [condition('Accepted', 'Maybe')] },
  'no reason': { conditions: [{ ...condition('Accepted'), reason: '' }] },
  'a reason with spaces': { conditions: [{ ...condition('Accepted'), reason: 'not so' }] },
  'a time without zone': {
    conditions: [{ ...condition('Accepted'), lastTransitionTime: '2025-01-01T00:00:00' }],
  },
  'a negative generation': { conditions: [{ ...condition('Accepted'), observedGeneration: -1 }] },
  'a message missing': { conditions: [{ type: 'Accepted', status: 'True' }] },
}

const rules = cases('NetworkRule', backends, 'backends')
const selecting = cases('NetworkRule', selector, 'selector')

const vpc = { networks: ['fd20:60::/48', '10.0.0.0/8'] }
const vpcs = cases('VPC', vpc)
const attachment = {
  vpc: { name: 'v1' },
  interface: { name: 'eth0', addresses: ['fd20:60:ff03::100:0/96', '10.0.0.5/32'] },
}
const attachments = cases('VPCAttachment', attachment)
const attachedTo = (change: Change): Change => ({
  interface: changed(objectAt(attachment, 'interface') ?? {}, change),
})
const binding = {
  targetRef: { kind: 'Node', name: 'iad-worker' },
  vipAddress: '2001:db8:6060::1',
  port: 80,
  protocol: 'tcp',
  backendAddress: 'fd20:60:ff03::100:0',
  backendPort: 80,
  egressKind: 'veth',
}
const bindings = cases('ServiceVIPBinding', binding)
const advertisement = {
  routerRef: { name: 'iad-gateway1-tenant' },
  addressFamily: { afi: 'l2vpn', safi: 'evpn' },
  prefixes: ['2001:db8:6060::1/128'],
}
const advertisements = cases('BGPAdvertisement', advertisement)
const gateways = cases('NetworkGateway', { targetRef: { kind: 'Node', name: 'iad-gateway1' } })

const renamed = (base: JsonObject, before: Change, after: Change, name: string): Case => {
  const first = object('VPC', changed(base, before), fresh())
  return {
    name: `VPC: ${name}`,
    path: collection('VPC'),
    object: object('VPC', changed(base, after), nameOf(first)),
    before: [first],
    expected: '422',
  }
}

/** Good and bad objects of every kind; what is in no dialect of its own holds in both. */
export const CASES: Case[] = [
  ...rules('accepted', {
    ...sharedGood,
    '64 backends': { backends: listed(64) },
    'the same backend twice': { backends: [...listed(1), ...listed(1)] },
  }),
  ...rules('422', {
    ...sharedBad,
    'no backend': { backends: [] },
    '65 backends': { backends: listed(65) },
    'a backend without port': { backends: [{ address: 'fd00::1' }] },
    'a backend with port 0': { backends: [{ address: 'fd00::1', port: 0 }] },
    'a backend that is no address': { backends: [{ address: 'web', port: 80 }] },
    'no vpcAttachmentRef': { vpcAttachmentRef: undefined },
  }),
  ...rules('500', { ...sharedUntypable, 'the other dialect': { backendPort: 80 } }),
  ...selecting('accepted', {
    ...sharedGood,
    'an odd operator': {
      backendSelector: { matchExpressions: [{ key: 'a', operator: 'Foo' }] },
    },
    'an impossible label key': { backendSelector: { matchLabels: { '=': 'x' } } },
  }),
  ...selecting('422', {
    ...sharedBad,
    'an empty selector': { backendSelector: {} },
    'no labels in it': { backendSelector: { matchLabels: {} } },
    'no expressions in it': { backendSelector: { matchExpressions: [] } },
    'an expression without operator': { backendSelector: { matchExpressions: [{ key: 'a' }] } },
    'no backendPort': { backendPort: undefined },
    'backendPort 0': { backendPort: 0 },
  }),
  ...selecting('500', { ...sharedUntypable, 'the other dialect': { backends: listed(1) } }),
  ...statusCases('NetworkRule', backends, 'backends', 'accepted', conditionsGood),
  ...statusCases('NetworkRule', selector, 'selector', 'accepted', conditionsGood),
  ...statusCases('NetworkRule', backends, 'backends', '422', conditionsBad),
  ...statusCases('NetworkRule', selector, 'selector', '422', conditionsBad),
  {
    name: 'NetworkRule: no spec at all',
    path: collection('NetworkRule'),
    object: object('NetworkRule', undefined, 'specless'),
    expected: 'accepted',
  },
  {
    name: 'NetworkRule: an empty spec',
    path: collection('NetworkRule'),
    object: object('NetworkRule', {}, 'empty'),
    expected: '422',
  },

  ...vpcs('accepted', {
    'as it should be': {},
    'host bits': { networks: ['fd20:60::1/48', '10.1.2.3/8'] },
    'the same network twice': { networks: ['10.0.0.0/8', '10.0.0.0/8'] },
  }),
  ...vpcs('422', {
    'no networks': { networks: [] },
    '65 networks': { networks: Array.from({ length: 65 }, (_, i) => `10.${i}.0.0/16`) },
    'a bare address': { networks: ['10.0.0.1'] },
    'an IPv4-mapped network': { networks: ['::ffff:10.0.0.0/104'] },
    'too long a length': { networks: ['10.0.0.0/33'] },
    'a zone': { networks: ['fe80::%eth0/64'] },
  }),
  renamed(vpc, {}, { networks: ['10.0.0.0/8', 'fd20:60::/48'] }, 'networks in another order later'),
  renamed(vpc, {}, { networks: ['fd20:60::/48'] }, 'a network taken out later'),
  ...statusCases('VPC', vpc, undefined, 'accepted', {
    'an id': { vpc: '60' },
    'an id outside base62': { vpc: '_-' },
  }),
  ...statusCases('VPC', vpc, undefined, '422', {
    'no id': { observedGeneration: 1 },
    'an empty id': { vpc: '' },
    'too long an id': { vpc: 'x'.repeat(17) },
  }),

  ...attachments('accepted', {
    'as it should be': {},
    'no interface name': attachedTo({ name: undefined }),
    'no addresses': attachedTo({ addresses: undefined }),
    'addresses not canonical, and twice': attachedTo({ addresses: ['FD00::1/64', 'FD00::1/64'] }),
    'every mode': attachedTo({ mode: 'HypervisorDeclared' }),
    'an interfaceRef': { interfaceRef: { name: 'web-0' } },
  }),
  ...attachments('422', {
    'no vpc': { vpc: undefined },
    'an unnamed vpc': { vpc: { name: '' } },
    'no interface': { interface: undefined },
    'a bare address': attachedTo({ addresses: ['10.0.0.5'] }),
    '17 addresses': attachedTo({
      addresses: Array.from({ length: 17 }, (_, i) => `10.0.0.${i}/32`),
    }),
    'another mode': attachedTo({ mode: 'Bridge' }),
    'an unnamed interfaceRef': { interfaceRef: { name: '' } },
  }),
  ...statusCases('VPCAttachment', attachment, undefined, 'accepted', {
    'ids without a node': { vpc: '60', vpcAttachment: '61' },
    everything: {
      vpc: '60',
      vpcAttachment: '61',
      node: 'iad-worker',
      containerID: 'c'.repeat(46),
      podSubnet: 'fd20:60:ff03::100:0/96',
      podName: 'web-0',
    },
  }),
  ...statusCases('VPCAttachment', attachment, undefined, '422', {
    'an empty node': { node: '' },
    'a short containerID': { containerID: 'c' },
    'a subnet that is none': { podSubnet: '10.0.0.1' },
  }),

  ...bindings('accepted', {
    'as it should be': {},
    'no backend': { backendAddress: undefined, backendPort: undefined },
    'an empty backend address': { backendAddress: '' },
    'a VIP in capitals': { vipAddress: '2001:DB8::1' },
  }),
  ...bindings('422', {
    'no target': { targetRef: undefined },
    'an unnamed target': { targetRef: { kind: 'Node', name: '' } },
    'a VIP that is none': { vipAddress: '2001:db8::1/128' },
    'a backend that is none': { backendAddress: 'web' },
    'backendPort 0': { backendPort: 0 },
    'another kind of egress': { egressKind: 'bridge' },
    'no kind of egress': { egressKind: undefined },
  }),

  ...advertisements('accepted', {
    'as it should be': {},
    'figures that are no address': { prefixes: ['2001:DB8::1/999', '999.1.1.1/99'] },
    'a redistribution alone': { prefixes: undefined, redistribute: ['static'] },
    'an interface to originate from': {
      prefixes: undefined,
      originateFrom: { type: 'interface', interfaceName: 'lo' },
    },
    'a vrfID without a function': { vrfID: 60 },
    communities: { communities: ['65000:60', '10.0.0.1:60'] },
  }),
  ...advertisements('422', {
    'nothing to advertise': { prefixes: undefined },
    'an empty list to advertise': { prefixes: [] },
    'the default route': { prefixes: ['::/0'] },
    'dotted IPv6': { prefixes: ['64:ff9b::1.2.3.4/128'] },
    'a bare address': { prefixes: ['2001:db8::1'] },
    'IPv6 over evpn': { addressFamily: { afi: 'ipv6', safi: 'evpn' } },
    'l2vpn unicast': { addressFamily: { afi: 'l2vpn', safi: 'unicast' } },
    'no router': { routerRef: undefined },
    'a kernel with an interface': { originateFrom: { type: 'kernel', interfaceName: 'lo' } },
    'an interface without name': { originateFrom: { type: 'interface' } },
    'a vrfID of 0': { vrfID: 0 },
    'another function': { function: 'End.X' },
    'a community of one number': { communities: ['65000'] },
  }),

  ...gateways('accepted', {
    'as it should be': {},
    'any kind': { targetRef: { kind: 'X', name: 'y' } },
  }),
  ...gateways('422', { 'no target': { targetRef: undefined } }),
]
