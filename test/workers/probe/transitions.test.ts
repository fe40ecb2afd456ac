import { expect, test } from 'vitest'
import { readProbed } from '../../../src/domain/health/probed.ts'
import { recordHealth, type Transition } from '../../../src/domain/health/record.ts'
import { updateBackends } from '../../../src/domain/loadBalancers/backends.ts'
import { registerCluster } from '../../../src/domain/operators/clusters.ts'
import { renewLeases } from '../../../src/domain/placements/leases.ts'
import type { Ownership } from '../../../src/domain/placements/ownership.ts'
import { failed } from '../../../src/workers/probe/prober.ts'
import { groupOf, Target } from '../../../src/workers/probe/target.ts'
import { Transitions } from '../../../src/workers/probe/transitions.ts'
import { Trust } from '../../../src/workers/probe/trust.ts'
import { ADDRESSES, log, scope, useScene } from './scene.ts'

const scene = useScene()
const [A = '', B = '', C = '', D = ''] = ADDRESSES
/** So long (ms) that a busy machine does all between two writes. */
const HOLD = 2_000

const placement = (id: string) =>
  scene.store.prisma.placement.findFirstOrThrow({ where: { loadBalancerId: id } })

/** The events of the kind, by how many backends each is about. */
const unhealthy = async (id: string) =>
  (await scene.events(id))
    .filter(({ reason }) => reason === 'BackendUnhealthy')
    .map(({ changes }) => changes.filter(({ path }) => path[3] === 'state').length)

/** What the owner of a cluster writes of a load balancer, as its backends fail. */
async function ownerOf(id: string, owner: Ownership) {
  const [read] = await readProbed(scene.store, scene.owner.cluster, [id])
  if (read === undefined) throw new Error('nothing is to be probed')
  const group = groupOf(read)
  for (const backend of read.backends) {
    group.targets.set(backend.id, new Target(group, backend, Date.now))
  }
  const { store } = scene
  const transitions = new Transitions({ store, owner, leaseLost: () => undefined, rest: HOLD, log })
  const fail = (address: string) => {
    const target = [...group.targets.values()].find((each) => each.address === address)
    const probe = { change: target?.change ?? 0, beganAt: performance.now() }
    target?.judge(failed('Refused', `connection refused by ${address}`), probe, new Trust())
    transitions.look(group)
  }
  return { group, transitions, fail }
}

test('a first transition goes at once, further ones within a second together, and a tenant waits for none', async () => {
  const id = await scene.create('web', [A, B, C, D], { healthCheck: { fall: 1 } })
  const { group, transitions, fail } = await ownerOf(id, scene.owner)
  fail(A)
  await scene.until(id, ['UNHEALTHY', 'UNKNOWN', 'UNKNOWN', 'UNKNOWN'])
  const written = performance.now()
  fail(B)
  expect(await unhealthy(id)).toEqual([1])
  const asked = Number((await placement(id)).asked)
  await updateBackends(scene.store, scope, {
    loadBalancer: id,
    backends: [{ address: D, adminState: 'STANDBY' }],
  })
  expect(Number((await placement(id)).asked)).toBe(asked + 1)
  fail(C)
  expect(await unhealthy(id)).toEqual([1])
  // As when what is to be probed is read again.
  const [again] = await readProbed(scene.store, scene.owner.cluster, [id])
  group.rulesGeneration = again?.rulesGeneration ?? 0

  await scene.until(id, ['UNHEALTHY', 'UNHEALTHY', 'UNHEALTHY', 'UNKNOWN'])
  expect(performance.now() - written).toBeGreaterThan(HOLD / 2)
  expect(await unhealthy(id)).toEqual([1, 2])
  expect(Number((await placement(id)).asked)).toBe(asked + 2)
  await transitions.close()
})

test('the owners of two clusters change a load balancer within a second of each other together, too', async () => {
  const id = await scene.create('web', [A, B, C], { healthCheck: { fall: 1 } })
  const { store } = scene
  const other = { name: 'east-2', region: 'us-east-1', context: 'east-2', hasProber: true }
  await registerCluster(store, other)
  const { leases } = await renewLeases(store, 'another')
  const [lease] = leases.filter(({ cluster }) => cluster !== scene.owner.cluster)
  if (lease === undefined) throw new Error('the other cluster has no owner')
  const here = await ownerOf(id, scene.owner)
  const there = await ownerOf(id, { cluster: lease.cluster, epoch: lease.epoch })

  here.fail(A)
  await scene.until(id, ['UNHEALTHY', 'UNKNOWN', 'UNKNOWN'])
  const written = performance.now()
  there.fail(B)
  here.fail(C)
  expect(await unhealthy(id)).toEqual([1])
  await scene.until(id, ['UNHEALTHY', 'UNHEALTHY', 'UNHEALTHY'])
  expect(performance.now() - written).toBeGreaterThan(HOLD / 2)
  await Promise.all([here.transitions.close(), there.transitions.close()])
  await store.prisma.cluster.delete({ where: { id: lease.cluster } })
})

test('who waited for a rest need not wait for the one that another began meanwhile', async () => {
  const id = await scene.create('web', [A, B])
  const { store, owner } = scene
  const [read] = await readProbed(store, owner.cluster, [id])
  if (read === undefined) throw new Error('nothing is to be probed')
  const to = { state: 'UNHEALTHY', reason: 'Unhealthy', message: 'No.' } as const
  const changes = read.backends.map(({ id: backend, mark: known }) => ({
    id: backend,
    known,
    ...to,
  }))
  const write = (change: Transition | undefined, waited: boolean) =>
    recordHealth(store, owner, read, change ? [change] : [], { rest: 60_000, waited })
  const [one, two] = changes
  expect(await write(one, false)).toMatchObject({ resting: 60_000 })
  const kept = await write(two, false)
  expect(kept.marks.size).toBe(0)
  expect(kept.resting).toBeGreaterThan(0)
  expect((await write(two, true)).marks.size).toBe(1)
})
