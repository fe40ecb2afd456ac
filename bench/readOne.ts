import { BENCH_REGION, type Bed, CLIENTS } from './bed.ts'
import { type Benchmark, inTurns, rate } from './benchmark.ts'

const SECONDS = 4

/** One load balancer with 10 backends and its status, through the API and behind a bare HTTP handler. */
export const readOne: Benchmark = async (bed) => {
  const ids = await Promise.all(bed.tenants.map((_, client) => make(bed, client)))
  const uuids = ids.map((id) => Buffer.from(id, 'base64').toString().split(':')[1] ?? '')
  const floor = bed.http(await bed.start('./bareReader.ts', bed.url))
  const bare = async (client: number) => {
    const answer = await floor.request({ method: 'GET', path: `/${uuids[client]}` })
    const text = await answer.body.text()
    if (!text.includes('"backends"')) throw new Error(text)
  }
  const ours = async (client: number) => {
    const body = JSON.stringify({ query: QUERY, variables: { id: ids[client] } })
    const answer = await bed.call(client, body)
    if (!answer.includes('"serving"')) throw new Error(answer)
  }
  const result = await inTurns(
    () => rate(CLIENTS, SECONDS, bare),
    () => rate(CLIENTS, SECONDS, ours),
  )
  return [{ name: 'read one', ratio: result.ours / result.floor, target: 0.5 }]
}

const CONDITION = '{ type status reason message lastTransitionTime observedGeneration }'
const QUERY = `query ($id: ID!) { loadBalancer(id: $id) { id name displayName generation protocolName
  ports { from to } region { code } addresses { address family }
  backends(first: 20) { nodes { id address name adminState serving health { state reason message since } resolved { status reason } } }
  status { phase observedGeneration conditions ${CONDITION} } } }`

async function make(bed: Bed, client: number): Promise<string> {
  const tenant = bed.tenants[client]
  const input = {
    name: `read-${client}`,
    vpc: tenant?.vpcId,
    region: BENCH_REGION,
    protocol: { tcp: { port: 443 } },
    backends: tenant?.addresses.map((address) => ({ address })),
  }
  const query = `mutation ($input: CreateLoadBalancerInput!) { createLoadBalancer(input: $input) {
    ... on CreateLoadBalancerPayload { loadBalancer { id } } ... on UserError { message } } }`
  const answer = JSON.parse(await bed.call(client, JSON.stringify({ query, variables: { input } })))
  const id = answer.data.createLoadBalancer.loadBalancer.id
  // As it is once workers have reported: with a stored status.
  await storeStatus(bed, Buffer.from(id, 'base64').toString().split(':')[1] ?? '')
  return id
}

async function storeStatus({ store }: Bed, id: string): Promise<void> {
  const { refoldAlone } = await import('../src/domain/placements/derive.ts')
  await refoldAlone(store, id)
}
