import { describe, expect, test } from 'vitest'
import { readProbed, readProbedMarks } from '../../../src/domain/health/probed.ts'
import { recordHealth } from '../../../src/domain/health/record.ts'
import { addBackends, updateBackends } from '../../../src/domain/loadBalancers/backends.ts'
import { deleteLoadBalancer } from '../../../src/domain/loadBalancers/delete.ts'
import { updateLoadBalancer } from '../../../src/domain/loadBalancers/update.ts'
import { failed } from '../../../src/workers/probe/prober.ts'
import { Slots } from '../../../src/workers/probe/slots.ts'
import { PATIENCE } from '../../support/patience.ts'
import { ADDRESSES, SECOND, scope, useScene } from './scene.ts'

const scene = useScene()
const { listed } = scene
const [A = '', B = '', C = '', D = ''] = ADDRESSES

const asked = async (id: string): Promise<number> => {
  const placement = await scene.store.prisma.placement.findFirstOrThrow({
    where: { loadBalancerId: id },
  })
  return Number(placement.asked)
}

const condition = async (id: string, type: string) =>
  (await scene.read(id)).status.conditions.find((each) => each.type === type)

const probesOf = async (id: string) =>
  (await scene.read(id)).backends.map(({ health }) => health.consecutiveSuccesses ?? 0)

/** Waits until every backend was probed successfully so often in a row. */
const probed = (id: string, times: number) =>
  expect
    .poll(async () => Math.min(...(await probesOf(id))), { interval: 20 })
    .toBeGreaterThanOrEqual(times)

test('a backend that refuses leaves the rule after its fall, and is back after its rise', async () => {
  const id = await scene.create('web', [A, B])
  scene.probe()
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
  const before = await scene.read(id)
  const askedBefore = await asked(id)
  expect(await listed(id)).toEqual([A, B])

  await scene.machine(A).refuse()
  await scene.until(id, ['UNHEALTHY', 'HEALTHY'])
  const down = await scene.read(id)
  expect(down.backends[0]?.health).toMatchObject({
    reason: 'Unhealthy',
    message: `Connection refused by [${A}]:80.`,
  })
  expect(down.version).toBe(before.version + 1)
  expect(down.generation).toBe(before.generation)
  expect(await asked(id)).toBe(askedBefore + 1)
  expect(await listed(id)).toEqual([B])
  expect(await condition(id, 'BackendsHealthy')).toMatchObject({
    status: 'FALSE',
    reason: 'SomeUnhealthy',
  })

  await scene.machine(A).answer()
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
  expect(await listed(id)).toEqual([A, B])
  const changes = (await scene.events(id)).filter(({ changes }) =>
    changes.some(({ path }) => path[1] === A),
  )
  expect(changes.map(({ reason }) => reason)).toEqual([
    'BackendHealthy',
    'BackendUnhealthy',
    'BackendHealthy',
  ])
  expect(changes[1]?.message).toBe(
    `Backend ${A} of load balancer "web" is unhealthy: Connection refused by [${A}]:80.`,
  )
  expect(changes[1]?.changes[0]).toEqual({
    path: ['backends', A, 'health', 'state'],
    before: 'HEALTHY',
    after: 'UNHEALTHY',
  })
})

test('when all are unhealthy all of them serve', async () => {
  const id = await scene.create('web', [A, B])
  scene.probe()
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
  await scene.machine(A).refuse()
  await scene.machine(B).refuse()
  await scene.until(id, ['UNHEALTHY', 'UNHEALTHY'])
  expect(await listed(id)).toEqual([A, B])
  expect(await condition(id, 'BackendsHealthy')).toMatchObject({ reason: 'FailOpen' })
})

test('only transitions are events; streaks go on without', async () => {
  const id = await scene.create('web', [A, B])
  scene.probe()
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
  const { version } = await scene.read(id)
  const events = (await scene.events(id)).length
  await probed(id, 10)
  expect((await scene.read(id)).version).toBe(version)
  expect(await scene.events(id)).toHaveLength(events)
  expect((await scene.read(id)).backends[0]?.health.lastProbedAt).not.toBeNull()
})

test('what goes on failing says what it fails of now, and that is no event', async () => {
  // So many that none is healthy by what was asked before, while it isn't known yet that it is asked otherwise.
  const id = await scene.create('web', [A, B], { healthCheck: { rise: 10 } })
  await scene.machine(A).refuse()
  scene.probe()
  await scene.until(id, ['UNHEALTHY', 'HEALTHY'])
  const message = async () => (await scene.read(id)).backends[0]?.health.message
  expect(await message()).toBe(`Connection refused by [${A}]:80.`)

  await updateLoadBalancer(scene.store, scope, { id, healthCheck: { probe: { http: {} } } })
  await scene.machine(A).answer()
  await expect.poll(message, { timeout: PATIENCE }).not.toContain('refused')
  const told = (await scene.events(id)).flatMap(({ changes }) => changes)
  expect(told.filter(({ path }) => path[1] === A && path[3] === 'state')).toHaveLength(1)
})

test('versions of events only rise, each once', async () => {
  const id = await scene.create('web', [A, B, C])
  scene.probe()
  await scene.until(id, ['HEALTHY', 'HEALTHY', 'HEALTHY'])
  await scene.machine(A).refuse()
  await scene.until(id, ['UNHEALTHY', 'HEALTHY', 'HEALTHY'])
  const versions = (await scene.events(id)).map(({ version }) => version)
  expect(versions).toEqual(versions.map((_, index) => index + 1))
  expect((await scene.read(id)).version).toBe(versions.length)
})

test('a disabled backend is not probed, one on standby is', async () => {
  const id = await scene.create('web', [], {
    backends: [
      { address: A },
      { address: B, adminState: 'DISABLED' },
      { address: C, adminState: 'STANDBY' },
    ],
  })
  scene.probe()
  await scene.until(id, ['HEALTHY', 'NOT_CHECKED', 'HEALTHY'])
  expect(scene.machine(B).connections).toEqual([])

  const enabled = { loadBalancer: id, backends: [{ address: B, adminState: 'ENABLED' as const }] }
  await updateBackends(scene.store, scope, enabled)
  await scene.until(id, ['HEALTHY', 'HEALTHY', 'HEALTHY'])

  const disabled = { loadBalancer: id, backends: [{ address: A, adminState: 'DISABLED' as const }] }
  await updateBackends(scene.store, scope, disabled)
  await scene.until(id, ['NOT_CHECKED', 'HEALTHY', 'HEALTHY'])
})

test('a load balancer without a health check or being deleted is not probed', async () => {
  await scene.create('unchecked', [A], { healthCheck: { enabled: false } })
  const leaving = await scene.create('leaving', [B])
  await deleteLoadBalancer(scene.store, scope, { id: leaving })
  const id = await scene.create('web', [C])
  scene.probe()
  await scene.until(id, ['HEALTHY'])
  expect(scene.machine(A).connections).toEqual([])
  expect(scene.machine(B).connections).toEqual([])
})

test('a backend that is added while probing goes on is probed', async () => {
  const id = await scene.create('web', [A])
  scene.probe()
  await scene.until(id, ['HEALTHY'])
  await addBackends(scene.store, scope, { loadBalancer: id, backends: [{ address: B }] })
  await scene.until(id, ['HEALTHY', 'HEALTHY'])
})

test('other settings hold from the next probe on, and health stays as it is', async () => {
  const id = await scene.create('web', [A], {
    healthCheck: { intervalSeconds: 5, timeoutSeconds: 5, fall: 10 },
  })
  scene.probe()
  await scene.until(id, ['HEALTHY'])
  const { since } = (await scene.read(id)).backends[0]?.health ?? {}
  await updateLoadBalancer(scene.store, scope, {
    id,
    healthCheck: { fall: 1, intervalSeconds: 10, probe: { tcp: { port: 8080 } } },
  })
  expect((await scene.read(id)).backends[0]?.health).toMatchObject({ state: 'HEALTHY', since })
  await probed(id, 4)
  await scene.machine(A).refuse()
  await scene.until(id, ['UNHEALTHY'])
  expect((await scene.read(id)).backends[0]?.health.message).toBe(
    `Connection refused by [${A}]:8080.`,
  )
})

test('backends of one load balancer that fail together are one change', async () => {
  const id = await scene.create('web', [A, B, C, D])
  const direct = scene.prober()
  const times = new Map<string, number>()
  const prober = scene.prober(async (address, ...probe) => {
    const time = (times.get(address) ?? 0) + 1
    times.set(address, time)
    return time > 5 && address !== D
      ? failed('Refused', `connection refused by ${address}`)
      : direct.connect(address, ...probe)
  })
  // All are probed at the same moment, again and again.
  scene.probe({ prober, random: () => 0.5 })
  await scene.until(id, ['HEALTHY', 'HEALTHY', 'HEALTHY', 'HEALTHY'])
  await scene.until(id, ['UNHEALTHY', 'UNHEALTHY', 'UNHEALTHY', 'HEALTHY'])
  const events = (await scene.events(id)).filter(({ reason }) => reason === 'BackendUnhealthy')
  expect(events.map(({ message }) => message)).toEqual([
    `3 backends of load balancer "web" are unhealthy (${A}, ${B}, ${C}), the first because: Connection refused by ${A}.`,
  ])
})

test('what was judged before a change of the load balancer or of the backend is not written', async () => {
  const id = await scene.create('web', [A])
  const [read] = await readProbed(scene.store, scene.owner.cluster, [id])
  const [backend] = read?.backends ?? []
  if (read === undefined || backend === undefined) throw new Error('nothing is to be probed')
  const to = { id: backend.id, state: 'UNHEALTHY', reason: 'Unhealthy', message: 'No.' } as const
  const write = async (rulesGeneration: number, known: string) =>
    (await recordHealth(scene.store, scene.owner, { id, rulesGeneration }, [{ ...to, known }]))
      .marks.size
  const protocol = { tcp: { port: 81 } }
  await updateLoadBalancer(scene.store, scope, { id, protocol })
  expect(await write(read.rulesGeneration, backend.mark)).toBe(0)
  expect(await write(read.rulesGeneration + 1, 'HEALTHY Healthy then')).toBe(0)
  expect((await scene.read(id)).backends[0]?.health.state).toBe('UNKNOWN')
  expect(await write(read.rulesGeneration + 1, backend.mark)).toBe(1)
})

test('a mark tells whatever changes of what is probed, and nothing else', async () => {
  const id = await scene.create('web', [A, B])
  const { store, owner } = scene
  const mark = async () => (await readProbedMarks(store, owner.cluster)).get(id)
  const seen = new Set([await mark()])
  await updateLoadBalancer(store, scope, { id, displayName: 'Shop' })
  seen.add(await mark())
  expect(seen.size).toBe(1)

  const [read] = await readProbed(store, owner.cluster, [id])
  expect(read?.mark).toBe(await mark())
  for (const { id: backend, mark: known } of read?.backends ?? []) {
    const to = { id: backend, known, state: 'HEALTHY', reason: 'Healthy', message: '' } as const
    await recordHealth(store, owner, { id, rulesGeneration: read?.rulesGeneration ?? 0 }, [to])
    seen.add(await mark())
  }
  await updateLoadBalancer(store, scope, { id, healthCheck: { fall: 7 } })
  seen.add(await mark())
  await addBackends(store, scope, { loadBalancer: id, backends: [{ address: C }] })
  seen.add(await mark())
  const disabled = [{ address: A, adminState: 'DISABLED' as const }]
  await updateBackends(store, scope, { loadBalancer: id, backends: disabled })
  seen.add(await mark())
  expect(seen.size).toBe(6)
})

describe('a prober that sees everything fail at once', () => {
  test('is not believed: nothing turns unhealthy, and all is known again when it passes', async () => {
    const ids = [
      await scene.create('one', ADDRESSES.slice(0, 4)),
      await scene.create('two', ADDRESSES.slice(4, 8)),
      await scene.create('three', ADDRESSES.slice(8, 12)),
    ]
    let cut = false
    const direct = scene.prober()
    const prober = scene.prober(async (address, ...probe) =>
      cut ? failed('Unreachable', `no route to ${address}`) : direct.connect(address, ...probe),
    )
    scene.probe({ prober })
    const all = (state: string) => Array.from({ length: 4 }, () => state)
    for (const id of ids) await scene.until(id, all('HEALTHY'))
    cut = true
    for (const id of ids) await scene.until(id, all('UNKNOWN'))
    for (const id of ids) {
      const { backends } = await scene.read(id)
      expect(new Set(backends.map(({ health }) => health.reason))).toEqual(
        new Set(['ProberDistrusted']),
      )
      const reasons = (await scene.events(id)).map(({ reason }) => reason)
      expect(reasons).not.toContain('BackendUnhealthy')
      expect(await listed(id)).toHaveLength(4)
    }
    cut = false
    for (const id of ids) await scene.until(id, all('HEALTHY'))
  })
})

test('health says so where no prober stands any more, and is found out again where one does', async () => {
  const id = await scene.create('web', [A, B])
  const probing = scene.probe()
  await scene.machine(A).refuse()
  await scene.until(id, ['UNHEALTHY', 'HEALTHY'])
  expect(await listed(id)).toEqual([B])

  await scene.store.pool.query('UPDATE cluster SET has_prober = false')
  probing.hasProber = false
  await scene.until(id, ['NOT_CHECKED', 'NOT_CHECKED'])
  expect((await scene.read(id)).backends[0]?.health.reason).toBe('NoProber')
  expect(await listed(id)).toEqual([A, B])

  await scene.store.pool.query('UPDATE cluster SET has_prober = true')
  probing.hasProber = true
  await scene.until(id, ['UNHEALTHY', 'HEALTHY'])
})

test('what is said of a prober while what is to be probed is read counts at once', async () => {
  const id = await scene.create('web', [A])
  await scene.store.pool.query('UPDATE cluster SET has_prober = false')
  // It reads at once, and then again after a minute.
  const probing = scene.probe({ second: 60_000 })
  probing.hasProber = false
  await scene.until(id, ['NOT_CHECKED'])
  await scene.store.pool.query('UPDATE cluster SET has_prober = true')
})

test('an owner whose cluster was taken over writes nothing, and hears of it', async () => {
  const id = await scene.create('web', [A])
  const lost = Promise.withResolvers<void>()
  scene.probe({
    owner: { ...scene.owner, epoch: scene.owner.epoch - 1 },
    leaseLost: lost.resolve,
  })
  await lost.promise
  expect((await scene.read(id)).backends[0]?.health.state).toBe('UNKNOWN')
})

test('a backend is never probed twice at once, and all together not more than the slots allow', async () => {
  const id = await scene.create('web', ADDRESSES)
  const running = new Set<string>()
  let most = 0
  let twice = false
  const direct = scene.prober()
  const watched = scene.prober(async (address, ...probe) => {
    twice ||= running.has(address)
    running.add(address)
    most = Math.max(most, running.size)
    const outcome = await direct.connect(address, ...probe)
    running.delete(address)
    return outcome
  })
  scene.probe({ prober: watched, slots: new Slots(3), random: () => 0.5 })
  await probed(id, 5)
  expect(twice).toBe(false)
  expect(most).toBe(3)
})

test('first probes are spread over an interval', async () => {
  const id = await scene.create('web', ADDRESSES, {
    healthCheck: { intervalSeconds: 20, timeoutSeconds: 5 },
  })
  scene.probe()
  await probed(id, 1)
  const firsts = ADDRESSES.map((address) => scene.machine(address).connections[0] ?? 0)
  // Twelve times evenly at random: less than a fifth of the interval apart once in ten million runs.
  expect(Math.max(...firsts) - Math.min(...firsts)).toBeGreaterThan((20 * SECOND) / 5)
})
