import { beforeAll, expect, test } from 'vitest'
import { accepted, UPDATE_BACKENDS } from '../api/operations.ts'
import { clusterCalled, tell } from '../api/operators.ts'
import { useInstallation } from '../support/installation.ts'
import { condition, createSettled, shown, vipOf } from './scene.ts'

const CLUSTERS = [
  { name: 'us-east-1-a', region: 'us-east-1', dialect: 'backends' },
  { name: 'us-west-1-a', region: 'us-west-1', dialect: 'selector' },
] as const
const installation = useInstallation({
  clusters: CLUSTERS.map((each) => ({ ...each, servesIPv4: false })),
  endpointsPerCluster: 3,
})

beforeAll(async () => {
  for (const { name } of CLUSTERS) {
    const { id } = await clusterCalled(installation.operators, name)
    await tell(installation.operators, 'updateCluster', { id, hasProber: true })
  }
})

test.each(CLUSTERS)(
  'in the $dialect dialect what refuses or is on standby leaves the data plane, and never the last',
  async ({ name, region }) => {
    const { dataPlane, endpoints } = installation.fleet.get(name)
    const [first, second, third] = endpoints.filter(({ project }) => project === 'demo')
    if (!first || !second || !third) throw new Error('the fleet has too few endpoints')
    const all = [first, second, third].map(({ address }) => address)
    const made = await createSettled(installation, all, {
      region,
      healthCheck: { intervalSeconds: 1, timeoutSeconds: 1, rise: 1, fall: 1 },
    })
    const served = (...by: (typeof first)[]) =>
      expect
        .poll(
          () =>
            dataPlane
              .rows()
              .filter(
                ({ direction, vips }) => direction === 'ingress' && vips.includes(vipOf(made)),
              )
              .map(({ backendAddress }) => backendAddress)
              .toSorted(),
          { timeout: 20_000 },
        )
        .toEqual(by.map(({ address }) => address).toSorted())
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

    const standby = { address: second.address, adminState: 'STANDBY' }
    await accepted(installation.api, UPDATE_BACKENDS, {
      loadBalancer: made.id,
      backends: [standby],
    })
    await served(third)

    await third.stop()
    await served(first, third)
    await shown(installation, made, (it) => condition(it, 'BackendsHealthy')?.reason === 'FailOpen')

    await first.start()
    await served(first)
    await third.start()
    await served(first, third)
    await shown(installation, made, (it) => condition(it, 'BackendsHealthy')?.reason === 'Healthy')
  },
  90_000,
)
