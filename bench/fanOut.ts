import { BENCH_REGION, type Bed } from './bed.ts'
import { type Benchmark, compared, type Finding, inTurns, rate, share } from './benchmark.ts'
import { seedLoadBalancers } from './seed.ts'
import { Subscribers } from './subscribers.ts'

const SUBSCRIBERS = 1_000
const DOCUMENT = `subscription ($id: ID!) { loadBalancer(id: $id) { type cursor loadBalancer { id name displayName generation
  addresses { address } status { phase observedGeneration conditions { type status reason message } } } } }`

/** One change to 1,000 who watch it, by the side of writing the same bytes to 1,000 sockets. */
export const fanOut: Benchmark = async (ground, scale) => {
  const bed = await ground.bed()
  const tenants = bed.tenants.slice(0, 1)
  const [made] = await seedLoadBalancers(bed, {
    region: BENCH_REGION,
    tenants,
    each: 1,
    from: 7_000_000,
  })
  const count = share(scale, SUBSCRIBERS, 10)
  const payload = { query: DOCUMENT, variables: { id: made?.id } }
  const findings: Finding[] = []
  const raw = await bed.start('./rawSockets.ts')
  const listening = new Subscribers()
  await listening.bySse(count, `${raw.url}/`, '{}')
  const message = await oneMessage(bed, JSON.stringify(payload))
  const floor = eachToAll(listening, async (token) => {
    const body = message.replaceAll('displayName":null', `displayName":"${token}"`)
    await (await raw.http.request({ method: 'POST', path: '/send', body })).body.dump()
  })
  for (const transport of ['SSE', 'websocket'] as const) {
    const watching = new Subscribers()
    const url = `${bed.api.url}/projects/${bed.tenants[0]?.project}/graphql`
    if (transport === 'SSE') await watching.bySse(count, url, JSON.stringify(payload))
    else await watching.byWebsocket(count, url, payload)
    const ours = eachToAll(watching, (token) => change(bed, made?.id ?? '', token))
    const found = await inTurns(scale, {
      floor: () => rate(1, scale.seconds, floor),
      ours: () => rate(1, scale.seconds, ours),
    })
    findings.push(...compared(`one change to ${SUBSCRIBERS} by ${transport}`, found, 0.5))
    watching.close()
  }
  listening.close()
  return findings
}

let number = 0

/** Sends something of its own, and waits until all have it. */
const eachToAll =
  (subscribers: Subscribers, send: (token: string) => Promise<void>) => async () => {
    number += 1
    const token = `token-${number}-`
    const all = subscribers.all(token)
    await send(token)
    await all
  }

/** Changes a load balancer of the first tenant in a way that touches no rule. */
export async function change(
  bed: Bed,
  id: string,
  displayName: string,
  to = bed.api,
): Promise<void> {
  const query = `mutation ($input: UpdateLoadBalancerInput!) { updateLoadBalancer(input: $input) {
    ... on UpdateLoadBalancerPayload { loadBalancer { id } } ... on UserError { message } } }`
  const body = JSON.stringify({ query, variables: { input: { id, displayName } } })
  const answer = await bed.call(0, body, to)
  if (!answer.includes('"loadBalancer"')) throw new Error(answer)
}

/** The bytes of one event as our API sends it. */
async function oneMessage(bed: Bed, body: string): Promise<string> {
  const response = await fetch(`${bed.api.url}/projects/${bed.tenants[0]?.project}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
    body,
  })
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true })
    const event = /event: next\ndata: .*"displayName".*\n\n/.exec(text)
    if (event !== null) return event[0]
  }
  throw new Error(`no event came: ${text}`)
}
