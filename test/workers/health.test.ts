import { beforeAll, expect, test } from 'vitest'
import { accepted, type LoadBalancer, UPDATE_BACKENDS } from '../api/operations.ts'
import { clusterCalled, tell } from '../api/operators.ts'
import { useInstallation } from '../support/installation.ts'
import { PATIENCE } from '../support/patience.ts'
import { condition, createSettled, listed, shown, storedUntil, storeId, vipOf } from './scene.ts'

const CLUSTERS = [
  { name: 'us-east-1-a', region: 'us-east-1', dialect: 'backends' },
  { name: 'us-west-1-a', region: 'us-west-1', dialect: 'selector' },
] as const
/** How far (ms) the clock is ahead by which backends that come and go are held out. */
let ahead = 0
const installation = useInstallation({
  now: () => Date.now() + ahead,
  clusters: CLUSTERS.map((each) => ({ ...each, servesIPv4: false })),
  endpointsPerCluster: 3,
})

beforeAll(async () => {
  for (const { name } of CLUSTERS) {
    const { id } = await clusterCalled(installation.operators, name)
    await tell(installation.operators, 'updateCluster', { id, hasProber: true })
  }
})

/** The endpoints of a cluster, and what its data plane sends a load balancer's connections to. */
function standing(name: string) {
  const { dataPlane, endpoints } = installation.fleet.get(name)
  const [first, second, third] = endpoints.filter(({ project }) => project === 'demo')
  if (!first || !second || !third) throw new Error('the fleet has too few endpoints')
  const served = (made: LoadBalancer, ...by: (typeof first)[]) =>
    expect
      .poll(
        () =>
          dataPlane
            .rows()
            .filter(({ direction, vips }) => direction === 'ingress' && vips.includes(vipOf(made)))
            .map(({ backendAddress }) => backendAddress)
            .toSorted(),
        { timeout: PATIENCE },
      )
      .toEqual(by.map(({ address }) => address).toSorted())
  return { first, second, third, served }
}

/** Waits until a probe of it succeeded from now on: that is written every five seconds. */
async function probedWell(made: LoadBalancer, address: string) {
  const since = new Date()
  await storedUntil(
    async () => {
      const { rows } = await installation.store.pool.query(
        `SELECT FROM backend JOIN backend_probe ON backend_id = id WHERE load_balancer_id = $1
         AND address = $2 AND last_probed_at > $3 AND consecutive_successes > 0`,
        [storeId(made.id), address, since],
      )
      return rows.length
    },
    (found) => found > 0,
  )
}

/** One failure or success turns a backend. */
const TURNING = { intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 1 }

const healthOf = (made: LoadBalancer, address: string) =>
  made.backends.nodes.find((each) => each.address === address)?.health

test.each(CLUSTERS)(
  'in the $dialect dialect what refuses, is on standby or disabled leaves the data plane, and never the last',
  async ({ name, region }) => {
    const { first, second, third, ...by } = standing(name)
    const all = [first, second, third].map(({ address }) => address)
    const made = await createSettled(installation, all, { region, healthCheck: TURNING })
    const served = (...those: (typeof first)[]) => by.served(made, ...those)
    await served(first, second, third)

    await first.stop()
    await served(second, third)
    const now = await shown(
      installation,
      made,
      (it) => condition(it, 'BackendsHealthy')?.reason === 'SomeUnhealthy',
    )
    expect(now.status.ready.status).toBe('TRUE')
    expect(condition(now, 'BackendsHealthy')?.message).toContain(first.address)

    const set = (address: string, adminState: string) =>
      accepted(installation.api, UPDATE_BACKENDS, {
        loadBalancer: made.id,
        backends: [{ address, adminState }],
      })
    await set(second.address, 'STANDBY')
    await served(third)

    await third.stop()
    await served(first, third)
    await shown(installation, made, (it) => condition(it, 'BackendsHealthy')?.reason === 'FailOpen')

    await first.start()
    await served(first)
    await third.start()
    await served(first, third)
    await shown(installation, made, (it) => condition(it, 'BackendsHealthy')?.reason === 'Healthy')

    await set(second.address, 'ENABLED')
    await served(first, second, third)
    await set(first.address, 'DISABLED')
    await served(second, third)
    const disabled = await shown(installation, made, ({ generation, status }) => {
      return status.observedGeneration === generation
    })
    expect(healthOf(disabled, first.address)).toEqual({ state: 'NOT_CHECKED', reason: 'Disabled' })
    await set(first.address, 'ENABLED')
    await served(first, second, third)
  },
  2 * PATIENCE,
)

test(
  'a backend that comes and goes is told to flap, is out of the rule, and comes back after a while',
  async () => {
    const [{ name, region }] = CLUSTERS
    const { first, second, served } = standing(name)
    const made = await createSettled(installation, [first.address, second.address], {
      region,
      healthCheck: TURNING,
    })
    const told = (state: string, reason: string) =>
      shown(installation, made, (it) => {
        const health = healthOf(it, first.address)
        return health?.state === state && health.reason === reason
      })
    for (let time = 1; time <= 3; time += 1) {
      await told('HEALTHY', 'Healthy')
      await first.stop()
      await told('UNHEALTHY', 'Unhealthy')
      await first.start()
    }
    await told('HEALTHY', 'Healthy')
    await served(made, first, second)
    await first.stop()
    const flapping = await told('UNHEALTHY', 'Flapping')
    expect(condition(flapping, 'BackendsHealthy')).toMatchObject({
      status: 'FALSE',
      reason: 'Flapping',
    })
    await served(made, second)
    await first.start()
    await probedWell(made, first.address)
    await listed(installation.fleet.get(name), made, [second.address])

    ahead += 60_000
    await told('HEALTHY', 'Healthy')
    await listed(installation.fleet.get(name), made, [first.address, second.address])
    await served(made, first, second)
  },
  2 * PATIENCE,
)

test(
  'a worker that sees everything fail at once doubts itself: no backend leaves its rule, and health is said to be unknown',
  async () => {
    const [{ name, region }, other] = CLUSTERS
    const { first, second, third, served } = standing(name)
    const there = standing(other.name)
    const endpoints = [first, second, third, there.first, there.second, there.third]
    const addresses = [first, second, third].map(({ address }) => address)
    const healthCheck = { ...TURNING, fall: 3 }
    const made: LoadBalancer[] = []
    for (let number = 0; number < 4; number += 1) {
      made.push(await createSettled(installation, addresses, { region, healthCheck }))
    }
    const all = (reason: string) =>
      Promise.all(
        made.map((one) =>
          shown(installation, one, (it) => condition(it, 'BackendsHealthy')?.reason === reason),
        ),
      )
    await all('Healthy')
    await Promise.all(endpoints.map((endpoint) => endpoint.stop()))
    for (const { status } of await all('ProberDistrusted')) {
      expect(status.conditions).toContainEqual(
        expect.objectContaining({ type: 'BackendsHealthy', status: 'UNKNOWN' }),
      )
    }
    for (const one of made) await served(one, first, second, third)
    await Promise.all(endpoints.map((endpoint) => endpoint.start()))
    await all('Healthy')
  },
  2 * PATIENCE,
)
