import { builder } from './builder.ts'

/** A protocol with one port, as the union's members show it. */
export type ProtocolShape = { kind: 'TCP' | 'UDP'; port: number }

const IANA = { TCP: 6, UDP: 17 } as const

export const PortRange = builder.objectRef<{ from: number; to: number }>('PortRange')

PortRange.implement({
  description: 'Ports that follow one another.',
  fields: (t) => ({
    from: t.expose('from', { type: 'Port', description: 'The first port.' }),
    to: t.expose('to', {
      type: 'Port',
      description: 'The last port; equal to `from` for one port.',
    }),
  }),
})

/** The ports of a protocol, for `ports` everywhere. */
export const portsOf = ({ port }: ProtocolShape) => [{ from: port, to: port }]

const IpProtocol = builder.interfaceRef<ProtocolShape>('IpProtocol')

IpProtocol.implement({
  description: 'What every protocol of a load balancer tells, also those to come.',
  fields: (t) => ({
    number: t.int({
      description: "The protocol's number as IANA assigned it: 6 for TCP, 17 for UDP.",
      resolve: ({ kind }) => IANA[kind],
    }),
    name: t.exposeString('kind', { description: "The protocol's name, e.g. `TCP`." }),
    ports: t.field({
      type: [PortRange],
      description: 'The ports that are balanced. Empty for protocols without ports.',
      resolve: portsOf,
    }),
  }),
})

const member = (name: 'TcpProtocol' | 'UdpProtocol', description: string) =>
  builder.objectRef<ProtocolShape>(name).implement({
    description,
    interfaces: [IpProtocol],
    fields: (t) => ({
      port: t.expose('port', {
        type: 'Port',
        nullable: true,
        description:
          'The port that clients connect to and backends listen on, where it is exactly one; null otherwise.',
      }),
    }),
  })

const TcpProtocol = member('TcpProtocol', 'Balances TCP connections.')
const UdpProtocol = member('UdpProtocol', 'Balances UDP packets.')

export const LoadBalancerProtocol = builder.unionType('LoadBalancerProtocol', {
  description:
    'What a load balancer balances. Members are added when protocols are; clients that must not notice read `protocolName` and `ports` of the load balancer instead.',
  types: [TcpProtocol, UdpProtocol],
  resolveType: ({ kind }) => (kind === 'TCP' ? TcpProtocol : UdpProtocol),
})

const port =
  'The port that clients connect to and every backend listens on; ports are never remapped.'

const TcpProtocolInput = builder.inputType('TcpProtocolInput', {
  description: 'Balance TCP connections.',
  fields: (t) => ({ port: t.field({ type: 'Port', required: true, description: port }) }),
})

const UdpProtocolInput = builder.inputType('UdpProtocolInput', {
  description: 'Balance UDP packets.',
  fields: (t) => ({ port: t.field({ type: 'Port', required: true, description: port }) }),
})

export const LoadBalancerProtocolInput = builder.inputType('LoadBalancerProtocolInput', {
  description: 'What to balance: exactly one of these.',
  isOneOf: true,
  fields: (t) => ({
    tcp: t.field({ type: TcpProtocolInput, description: 'TCP connections to one port.' }),
    udp: t.field({ type: UdpProtocolInput, description: 'UDP packets to one port.' }),
  }),
})
