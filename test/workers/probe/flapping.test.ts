import { beforeEach, expect, test } from 'vitest'
import { updateLoadBalancer } from '../../../src/domain/loadBalancers/update.ts'
import { ADDRESSES, scope, useScene } from './scene.ts'

const scene = useScene()
const [A = '', B = ''] = ADDRESSES
/** One failure or success turns it. */
const TURNING = { intervalSeconds: 5, timeoutSeconds: 5, rise: 1, fall: 1 }
const BEGIN = Date.UTC(2026, 10, 30, 12)

/** The worker's clock stands still unless it is moved. */
let now = BEGIN
beforeEach(() => {
  now = BEGIN
})

/** Probes by that clock, and counts how often A answered well. */
function probe() {
  const direct = scene.prober()
  let good = 0
  const prober = scene.prober(async (address, ...asked) => {
    const outcome = await direct.connect(address, ...asked)
    if (address === A && outcome.ok) good += 1
    return outcome
  })
  const probing = scene.probe({ prober, now: () => now })
  return {
    close: () => probing.close(),
    /** A has answered twice more: at least the first of them was judged. */
    async answered(): Promise<void> {
      const before = good
      await expect.poll(() => good, { interval: 5 }).toBeGreaterThan(before + 1)
    },
  }
}

const healthOf = async (id: string, address: string) =>
  (await scene.read(id)).backends.find((each) => each.address === address)?.health

async function go(id: string): Promise<void> {
  await scene.machine(A).refuse()
  await scene.until(id, ['UNHEALTHY', 'HEALTHY'])
}

/** A healthy backend goes and comes back, so many times. */
async function goAndCome(id: string, times: number): Promise<void> {
  for (let time = 1; time <= times; time += 1) {
    await go(id)
    await scene.machine(A).answer()
    await scene.until(id, ['HEALTHY', 'HEALTHY'])
  }
}

test('a backend that comes and goes is held out of the rule, says so, and is let back by itself', async () => {
  const id = await scene.create('web', [A, B], { healthCheck: TURNING })
  const probing = probe()
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
  await goAndCome(id, 3)
  expect(await healthOf(id, A)).toMatchObject({ state: 'HEALTHY', reason: 'Healthy' })

  await go(id)
  expect(await healthOf(id, A)).toMatchObject({
    state: 'UNHEALTHY',
    reason: 'Flapping',
    message: `Connection refused by [${A}]:80. It came and went too often, so it is held out until 2026-11-30T12:01:00.000Z.`,
  })
  expect((await scene.read(id)).status.conditions).toContainEqual(
    expect.objectContaining({ type: 'BackendsHealthy', status: 'FALSE', reason: 'Flapping' }),
  )

  await scene.machine(A).answer()
  now += 59_999
  await probing.answered()
  expect(await healthOf(id, A)).toMatchObject({ state: 'UNHEALTHY', reason: 'Flapping' })
  expect(await scene.listed(id)).toEqual([B])

  now += 1
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
  expect(await scene.listed(id)).toEqual([A, B])
  const last = (await scene.events(id)).slice(-2)
  expect(last.map(({ reason }) => reason)).toEqual(['BackendUnhealthy', 'BackendHealthy'])

  await go(id)
  expect((await healthOf(id, A))?.message).toContain('held out until 2026-11-30T12:03:00.000Z.')
})

test('a worker that takes over goes on holding it out; a check that is turned off and on forgets', async () => {
  const id = await scene.create('web', [A, B], { healthCheck: TURNING })
  const former = probe()
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
  await goAndCome(id, 3)
  await go(id)
  await former.close()
  const held = await healthOf(id, A)
  expect(held?.reason).toBe('Flapping')

  await scene.machine(A).answer()
  await probe().answered()
  expect(await healthOf(id, A)).toMatchObject({ reason: 'Flapping', since: held?.since })

  for (const enabled of [false, true]) {
    await updateLoadBalancer(scene.store, scope, { id, healthCheck: { enabled } })
  }
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
  await go(id)
  expect((await healthOf(id, A))?.reason).toBe('Unhealthy')
})
