import { BENCH_REGION, type Bed, CLIENTS } from './bed.ts'
import { type Benchmark, compared, inTurns, rate, type Scale, share } from './benchmark.ts'
import { seedLoadBalancers } from './seed.ts'

const CONDITION = '{ type status reason message lastTransitionTime observedGeneration }'
/** All that a page about a load balancer shows, 10 backends and the status among it. */
const FIELDS = `{ id name displayName generation protocolName
  ports { from to } region { code } addresses { address family }
  backends(first: 20) { nodes { id address name adminState serving health { state reason message since } resolved { status reason } } }
  status { phase observedGeneration conditions ${CONDITION} } }`
const ONE = `query ($id: ID!) { loadBalancer(id: $id) ${FIELDS} }`
const LIST = `{ loadBalancers(first: 50) { nodes ${FIELDS} } }`

/** Reads through an API process, the bed's where none is given, by the first so many tenants. */
export function reads(
  bed: Bed,
  {
    api = bed.api,
    seconds,
    tenants = CLIENTS,
  }: { api?: Bed['api']; seconds: number; tenants?: number },
) {
  const asked = async (client: number, body: string, least: number) => {
    const answer = await bed.call(client % tenants, body, api)
    if (answer.split('"resolved"').length <= least) throw new Error(answer.slice(0, 1_000))
  }
  return {
    one: (ids: string[]) =>
      rate(CLIENTS, seconds, (client) => {
        const body = JSON.stringify({ query: ONE, variables: { id: ids[client % ids.length] } })
        return asked(client, body, 10)
      }),
    // Each is a hundred times as much as reading one.
    list: (clients = CLIENTS / 4) =>
      rate(clients, seconds, (client) => asked(client, JSON.stringify({ query: LIST }), 11)),
  }
}

/** One load balancer with 10 backends and its status, through the API and behind a bare HTTP handler. */
export const readOne: Benchmark = async (ground, scale) => {
  const { bed, made, bare } = await furnished(ground, scale, 1)
  const uuids = made.map(({ uuid }) => uuid)
  const found = await inTurns(scale, {
    floor: () => rate(CLIENTS, scale.seconds, (client) => bare(`/one/${uuids[client]}`)),
    ours: () => reads(bed, scale).one(made.map(({ id }) => id)),
  })
  return compared('read one', found, 0.5)
}

/** A page of 50 load balancers with 10 backends each. */
export const list: Benchmark = async (ground, scale) => {
  const { bed, bare } = await furnished(ground, scale, 1_000_000)
  const found = await inTurns(scale, {
    floor: () =>
      rate(CLIENTS / 4, scale.seconds, (client) => bare(`/list/${bed.tenants[client]?.project}`)),
    ours: () => reads(bed, scale).list(),
  })
  return compared('list 50 × 10 backends', found, 0.5)
}

async function furnished(ground: Parameters<Benchmark>[0], scale: Scale, from: number) {
  const bed = await ground.bed()
  const made = await seedLoadBalancers(bed, {
    region: BENCH_REGION,
    tenants: bed.tenants,
    each: share(scale, 50, 2),
    from,
  })
  const { http } = await bed.start('./bareReader.ts', bed.url)
  const bare = async (path: string) => {
    const answer = await http.request({ method: 'GET', path })
    const text = await answer.body.text()
    if (!text.includes('"backends"')) throw new Error(text)
  }
  return { bed, made, bare }
}
