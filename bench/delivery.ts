import { setTimeout as delay } from 'node:timers/promises'
import { BENCH_REGION } from './bed.ts'
import { type Benchmark, type Finding, percentile, share } from './benchmark.ts'
import { change } from './fanOut.ts'
import { seedLoadBalancers } from './seed.ts'
import { Subscribers } from './subscribers.ts'

const CHANGES = 200
const WATCHING = 20
const DOCUMENT = `subscription { loadBalancers { type cursor loadBalancer { id displayName status { phase } } } }`

/**
 * From a mutation's sending to its event at a subscriber's socket, with one API process and with two:
 * the change is made at one and watched at the other.
 */
export const delivery: Benchmark = async (ground, scale) => {
  const bed = await ground.bed()
  const tenants = bed.tenants.slice(0, 1)
  const [made] = await seedLoadBalancers(bed, {
    region: BENCH_REGION,
    tenants,
    each: 1,
    from: 8_000_000,
  })
  const other = await bed.start('./server.ts', bed.url)
  const findings: Finding[] = []
  for (const [name, watched] of [
    ['one process', bed.api],
    ['two processes', other],
  ] as const) {
    const subscribers = new Subscribers()
    const url = `${watched.url}/projects/${bed.tenants[0]?.project}/graphql`
    await subscribers.bySse(WATCHING, url, JSON.stringify({ query: DOCUMENT }))
    const changes = share(scale, CHANGES, 5)
    const took: number[] = []
    for (let index = 0; index < changes; index += 1) {
      // At no fixed distance from what is polled or held back.
      await delay(Math.random() * 60)
      const token = `${name} ${index}.`
      const begun = performance.now()
      const all = subscribers.all(token)
      await change(bed, made?.id ?? '', token)
      await all
      took.push(performance.now() - begun)
    }
    subscribers.close()
    for (const [part, said] of [
      [0.5, 'median'],
      [0.95, '95th percentile'],
    ] as const) {
      const value = percentile(took.slice(1), part)
      findings.push({ name: `change → event, ${name}, ${said}`, value, unit: ' ms', told: true })
    }
  }
  return findings
}
