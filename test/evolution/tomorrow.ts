import { readFileSync } from 'node:fs'
import { buildASTSchema, extendSchema, type GraphQLSchema, Kind, parse, visit } from 'graphql'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')

/** What clients of today may be made of: the contract, what is served, what generators are given. */
export const TODAY = {
  contract: read('test/contract/api.graphql'),
  served: read('schema.graphql'),
  generators: read('schema.client.graphql'),
}

/** What may be left out from some day on: global load balancers have no region, ranges no one port. */
const LOOSENED = [
  'CreateLoadBalancerInput.region',
  'CreateIPv4ReservationInput.region',
  'Query.loadBalancerByName.region',
  'Query.ipv4ReservationByName.region',
  'TcpProtocolInput.port',
  'UdpProtocolInput.port',
]

/** Four more protocols, with ports and without, and ranges of ports for those that have them. */
const ADDED = /* GraphQL */ `
  type EspProtocol implements IpProtocol { number: Int! name: String! ports: [PortRange!]! }
  type GreProtocol implements IpProtocol { number: Int! name: String! ports: [PortRange!]! keys: [Int!]! }
  type IcmpProtocol implements IpProtocol { number: Int! name: String! ports: [PortRange!]! types: [Int!]! }
  type SctpProtocol implements IpProtocol { number: Int! name: String! ports: [PortRange!]! port: Port }
  extend union LoadBalancerProtocol = EspProtocol | GreProtocol | IcmpProtocol | SctpProtocol

  input EspProtocolInput { encapsulatedInUdp: Boolean }
  input GreProtocolInput { keys: [Int!] }
  input IcmpProtocolInput { types: [Int!] }
  input SctpProtocolInput { port: Port ports: [PortRangeInput!] }
  input PortRangeInput { from: Port! to: Port! }
  extend input TcpProtocolInput { ports: [PortRangeInput!] }
  extend input UdpProtocolInput { ports: [PortRangeInput!] }
  extend input LoadBalancerProtocolInput {
    esp: EspProtocolInput gre: GreProtocolInput icmp: IcmpProtocolInput sctp: SctpProtocolInput
  }
`

/** The schema that is to be served some day, built on top of today's. */
export function tomorrowOf(today: string): GraphQLSchema {
  const path: string[] = []
  const loosened = new Set<string>()
  const document = visit(parse(today), {
    enter(node) {
      if (!('name' in node) || node.name === undefined) return undefined
      const declares = node.kind.endsWith('Definition')
      if (declares) path.push(node.name.value)
      if (node.kind !== Kind.INPUT_VALUE_DEFINITION) return undefined
      const coordinate = path.join('.')
      if (!LOOSENED.includes(coordinate) || node.type.kind !== Kind.NON_NULL_TYPE) return undefined
      loosened.add(coordinate)
      return { ...node, type: node.type.type }
    },
    leave(node) {
      if ('name' in node && node.name !== undefined && node.kind.endsWith('Definition')) path.pop()
    },
  })
  const missed = LOOSENED.filter((coordinate) => !loosened.has(coordinate))
  if (missed.length > 0) throw new Error(`today's schema has no ${missed.join(', ')} to loosen`)
  return extendSchema(buildASTSchema(document), parse(ADDED))
}
