import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type GraphQLSchema, graphql } from 'graphql'
import { useServer } from 'graphql-ws/use/ws'
import { afterAll, beforeAll } from 'vitest'
import { WebSocketServer } from 'ws'

const AT = '2030-01-01T00:00:00.000Z'
const condition = (type: string) => ({
  type,
  status: 'TRUE',
  reason: type,
  message: 'It is.',
  lastTransitionTime: AT,
  observedGeneration: 1,
})
const region = { id: 'east', code: 'us-east-1' }

/** One load balancer of each new kind. */
const loadBalancers = [
  made('esp', 50, []),
  made('gre', 47, [], { keys: [7] }),
  made('icmp', 1, [], { types: [8] }),
  made('sctp', 132, [{ from: 3868, to: 3868 }], { port: 3868 }),
  made('tcp', 6, [{ from: 8000, to: 8100 }], { port: null }),
  { ...made('udp', 17, [{ from: 53, to: 53 }], { port: 53 }), region: null },
]

function made(name: string, number: number, ports: { from: number; to: number }[], more = {}) {
  const __typename = `${name.slice(0, 1).toUpperCase()}${name.slice(1)}Protocol`
  return {
    __typename: 'LoadBalancer',
    id: `id-${name}`,
    name,
    displayName: null as string | null,
    labels: [],
    projectName: 'demo',
    region: region as typeof region | null,
    vpc: { id: 'vpc', name: 'main' },
    protocol: { __typename, number, name: name.toUpperCase(), ports, ...more },
    protocolName: name.toUpperCase(),
    ports,
    sessionAffinity: 'NONE',
    addresses: [{ address: `2001:db8::${number}`, family: 'IPV6' }],
    backends: { nodes: [], totalCount: 0 },
    deletionProtection: false,
    generation: 1,
    createdAt: AT,
    updatedAt: AT,
    status: {
      phase: 'IDLE',
      observedGeneration: 1,
      conditions: ['Ready', 'Provisioned'].map(condition),
      backendCounts: { total: 0, serving: 0 },
    },
  }
}

type Update = { input: { id: string; displayName: string | null } }
type Create = { input: { name: string; protocol: { tcp?: { port: number | null } | null } } }
const byId = ({ id }: { id: string }) => loadBalancers.find((one) => one.id === id) ?? null

const requests = {
  node: byId,
  loadBalancer: byId,
  loadBalancers: ({ filter }: { filter?: { nameContains?: string | null } | null }) => ({
    nodes: loadBalancers.filter(({ name }) => name.includes(filter?.nameContains ?? '')),
    pageInfo: { hasNextPage: false, hasPreviousPage: false },
  }),
  vpcs: { nodes: [{ id: 'vpc', name: 'main' }] },
  createLoadBalancer({ input: { name, protocol } }: Create) {
    const port = protocol.tcp?.port ?? null
    if (port === null) throw new Error('a client of today gives one port')
    const loadBalancer = { ...made('tcp', 6, [{ from: port, to: port }], { port }), id: name, name }
    loadBalancers.push(loadBalancer)
    return { __typename: 'CreateLoadBalancerPayload', loadBalancer }
  },
  deleteLoadBalancer({ input: { id } }: { input: { id: string } }) {
    const [deleted] = loadBalancers.splice(
      loadBalancers.findIndex((one) => one.id === id),
      1,
    )
    return { __typename: 'DeleteLoadBalancerPayload', loadBalancer: deleted }
  },
  updateLoadBalancer({ input: { id, displayName } }: Update) {
    const found = byId({ id })
    if (found === null) return { __typename: 'NotFound', code: 'NOT_FOUND', path: ['id'] }
    found.displayName = displayName ?? found.displayName
    return { __typename: 'UpdateLoadBalancerPayload', loadBalancer: found }
  },
}

const streams = {
  async *loadBalancers() {
    for (const loadBalancer of loadBalancers) yield event('ADDED', loadBalancer)
    yield event('SYNCED', null)
  },
  async *loadBalancerSettled(args: { id: string }) {
    const settled = { generation: 1, unmet: [], loadBalancer: byId(args) }
    yield { loadBalancerSettled: { ...settled, outcome: 'WAITING', unmet: [condition('Ready')] } }
    yield { loadBalancerSettled: { ...settled, outcome: 'SETTLED' } }
  },
}

const event = (type: string, loadBalancer: (typeof loadBalancers)[number] | null) => ({
  loadBalancers: { type, cursor: 'c1', at: AT, id: loadBalancer?.id ?? null, loadBalancer },
})

/** Serves a schema over HTTP and graphql-ws for the tests of one file, always with the same answers. */
export function useServerOf(schema: GraphQLSchema): { readonly url: string } {
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await Array.fromAsync(request)).toString()
    const { query, variables } = JSON.parse(body) as {
      query: string
      variables?: Record<string, unknown>
    }
    const rootValue = requests
    const answer = await graphql({ schema, source: query, rootValue, variableValues: variables })
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify(answer))
  })
  const sockets = new WebSocketServer({ server })
  const streaming = useServer({ schema, roots: { subscription: streams } }, sockets)
  beforeAll(() => new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve)))
  afterAll(async () => {
    await streaming.dispose()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/projects/demo/graphql`
    },
  }
}
