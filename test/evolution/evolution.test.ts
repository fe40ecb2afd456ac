import { readFileSync } from 'node:fs'
import {
  buildSchema,
  findBreakingChanges,
  findDangerousChanges,
  parse,
  validate,
  validateSchema,
} from 'graphql'
import { describe, expect, test } from 'vitest'
import { hasGo, useProgram, WITHOUT_GO } from '../clients/program.ts'
import { abstractFields } from './selections.ts'
import { useServerOf } from './server.ts'
import { TODAY, tomorrowOf } from './tomorrow.ts'

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
const operations = read('clients/go/operations.graphql')
const tomorrow = tomorrowOf(TODAY.served)

describe.each(Object.entries(TODAY))('the schema of today (%s)', (_, today) => {
  const before = buildSchema(today)
  const after = tomorrowOf(today)

  test('takes new protocols, global load balancers and ranges of ports without a break', () => {
    expect(validateSchema(after)).toEqual([])
    expect(findBreakingChanges(before, after)).toEqual([])
  })

  // Reviewed: new members reach only clients that select `protocol`, which its description tells
  // them; what inputs may have besides is sent by nobody who doesn't know it.
  test('has a place where clients have to be careful, and no other', () => {
    const told = findDangerousChanges(before, after).map(({ description }) => description)
    const member = (name: string) => `${name} was added to union type LoadBalancerProtocol.`
    const field = (name: string, type: string) =>
      `An optional field ${name} on input type ${type} was added.`
    const expected = [
      ...['EspProtocol', 'GreProtocol', 'IcmpProtocol', 'SctpProtocol'].map(member),
      ...['esp', 'gre', 'icmp', 'sctp'].map((name) => field(name, 'LoadBalancerProtocolInput')),
      field('ports', 'TcpProtocolInput'),
      field('ports', 'UdpProtocolInput'),
    ]
    expect(told.sort()).toEqual(expected.sort())
  })

  test('is what would break if a field became obligatory or a name went away', () => {
    const changed = today
      .replace(/^input TcpProtocolInput \{/m, 'input TcpProtocolInput { ports: [Port!]!')
      .replace(/^ {2}protocolName: String!$/m, '  protocolNamed: String!')
    const told = findBreakingChanges(before, buildSchema(changed)).map(({ type }) => type)
    expect(told.sort()).toEqual(['FIELD_REMOVED', 'REQUIRED_INPUT_FIELD_ADDED'])
  })
})

describe('a client that knows the members and interfaces of today', () => {
  const server = useServerOf(tomorrow)
  const document = /* GraphQL */ `
    query ($ids: [ID!]) {
      loadBalancers(filter: { ids: $ids }) {
        nodes {
          name
          region { code }
          protocol {
            __typename
            ... on IpProtocol { name number ports { from to } }
            ... on TcpProtocol { port }
            ... on UdpProtocol { port }
          }
        }
      }
      node(id: "id-esp") { id ... on LoadBalancer { protocolName ports { from } } }
    }`

  test('asks what is valid today and tomorrow', () => {
    expect(validate(buildSchema(TODAY.served), parse(document))).toEqual([])
    expect(validate(tomorrow, parse(document))).toEqual([])
  })

  test('reads the name and ports of protocols that it has never heard of', async () => {
    const response = await fetch(server.url, {
      method: 'POST',
      body: JSON.stringify({ query: document }),
    })
    const { data, errors } = (await response.json()) as {
      data: { node: unknown; loadBalancers: { nodes: unknown[] } }
      errors?: unknown
    }
    expect(errors).toBeUndefined()
    const { nodes } = data.loadBalancers
    expect(nodes).toHaveLength(6)
    expect(nodes).toContainEqual({
      name: 'esp',
      region: { code: 'us-east-1' },
      protocol: { __typename: 'EspProtocol', name: 'ESP', number: 50, ports: [] },
    })
    expect(nodes).toContainEqual({
      name: 'udp',
      region: null,
      protocol: {
        __typename: 'UdpProtocol',
        name: 'UDP',
        number: 17,
        ports: [{ from: 53, to: 53 }],
        port: 53,
      },
    })
    expect(nodes).toContainEqual({
      name: 'tcp',
      region: { code: 'us-east-1' },
      protocol: {
        __typename: 'TcpProtocol',
        name: 'TCP',
        number: 6,
        ports: [{ from: 8000, to: 8100 }],
        port: null,
      },
    })
    expect(data.node).toEqual({ id: 'id-esp', protocolName: 'ESP', ports: [] })
  })
})

describe('the operations of the Go client', () => {
  const closed = [
    'Mutation.createLoadBalancer',
    'Mutation.deleteLoadBalancer',
    'Mutation.updateLoadBalancer',
  ]

  test('are valid tomorrow, and select unions and interfaces only where those are closed', () => {
    expect(validate(tomorrow, parse(operations))).toEqual([])
    expect(abstractFields(buildSchema(TODAY.served), parse(operations))).toEqual(closed)
  })

  test('would be found out if they selected an open one', () => {
    const found = abstractFields(buildSchema(TODAY.served), parse(selectingProtocol(operations)))
    expect(found).toEqual(['LoadBalancer.protocol', ...closed])
  })
})

/** As a client that didn't know better would. */
const selectingProtocol = (text: string) =>
  text.replace('  protocolName\n', '  protocolName\n  protocol { ... on IpProtocol { name } }\n')

if (!hasGo) process.stderr.write(`skipped: ${WITHOUT_GO}\n`)

describe.skipIf(!hasGo)('the Go client of today', () => {
  const server = useServerOf(tomorrow)
  const program = useProgram()
  const careless = useProgram(selectingProtocol)
  const lb = (...args: string[]) => program.run(server.url, args)

  test('lists load balancers of protocols, ranges and places that it has never heard of', async () => {
    const { code, out, err } = await lb('list')
    expect([code, err]).toEqual([0, ''])
    const rows = out
      .trimEnd()
      .split('\n')
      .map((line) => line.split(/ {2,}/).slice(0, 3))
    expect(rows.slice(1)).toEqual([
      ['esp', 'us-east-1', 'ESP'],
      ['gre', 'us-east-1', 'GRE'],
      ['icmp', 'us-east-1', 'ICMP'],
      ['sctp', 'us-east-1', 'SCTP 3868'],
      ['tcp', 'us-east-1', 'TCP 8000-8100'],
      ['udp', 'global', 'UDP 53'],
    ])
  })

  test('shows, changes, awaits and watches them', async () => {
    expect((await lb('get', 'esp')).out).toMatch(/^Protocol: +ESP$/m)
    const update = await lb('update', 'esp', '--display-name', 'Tunnel', '--wait')
    expect(update.err).toMatch(/^waiting: Ready is TRUE/)
    expect(update.out).toMatch(/^Display name: +Tunnel$/m)
    expect(update.code).toBe(0)
    const { lines, interrupt } = program.start(server.url, ['watch'])
    expect((await lines.next()).value).toMatch(/^ADDED\tesp\tus-east-1\tESP\t/)
    await interrupt()
  })

  test('creates and deletes what it knows', async () => {
    const args = ['create', 'new', '--region', 'us-east-1', '--port', '8443']
    const created = await lb(...args)
    expect([created.code, created.err]).toEqual([0, ''])
    expect((await lb('list', '--name', 'new')).out).toContain('TCP 8443')
    expect(await lb('delete', '--id', 'new')).toMatchObject({ code: 0, err: '' })
    expect((await lb('list')).out).not.toContain('8443')
  })

  test('does not guess at what it does not know: a new port of ESP is wrong usage', async () => {
    const { code, err } = await lb('update', 'esp', '--port', '80')
    expect([code, err]).toEqual([2, 'lb: --protocol is tcp or udp, not "ESP"\n'])
  })

  test('would fail if it selected the union of protocols', async () => {
    const { code, err } = await careless.run(server.url, ['list'])
    expect([code, err]).toEqual([1, expect.stringContaining('EspProtocol')])
  })
})
