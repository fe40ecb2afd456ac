import { setTimeout as delay } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { readProbed } from '../../../src/domain/health/probed.ts'
import { updateBackends } from '../../../src/domain/loadBalancers/backends.ts'
import { failed } from '../../../src/workers/probe/prober.ts'
import { groupOf, Target } from '../../../src/workers/probe/target.ts'
import { Transitions } from '../../../src/workers/probe/transitions.ts'
import { Trust } from '../../../src/workers/probe/trust.ts'
import { Rests } from '../../../src/workers/rests.ts'
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

test('a first transition goes at once, further ones within a second together, and a tenant waits for none', async () => {
  const id = await scene.create('web', [A, B, C, D], { healthCheck: { fall: 1 } })
  const [read] = await readProbed(scene.store, scene.owner.cluster, [id])
  if (read === undefined) throw new Error('nothing is to be probed')
  const group = groupOf(read)
  for (const backend of read.backends) {
    group.targets.set(backend.id, new Target(group, backend, Date.now))
  }
  const transitions = new Transitions({
    ...{ store: scene.store, owner: scene.owner, leaseLost: () => undefined },
    rests: new Rests(HOLD),
    log,
  })
  const fail = (address: string) => {
    const target = [...group.targets.values()].find((each) => each.address === address)
    const probe = { change: target?.change ?? 0, beganAt: performance.now() }
    target?.judge(failed('Refused', `connection refused by ${address}`), probe, new Trust())
    transitions.look(group)
  }

  fail(A)
  await scene.until(id, ['UNHEALTHY', 'UNKNOWN', 'UNKNOWN', 'UNKNOWN'])
  const written = performance.now()
  fail(B)
  // Longer than those that fail together are waited for.
  await delay(100)
  fail(C)
  expect(await unhealthy(id)).toEqual([1])
  const asked = Number((await placement(id)).asked)
  await updateBackends(scene.store, scope, {
    loadBalancer: id,
    backends: [{ address: D, adminState: 'STANDBY' }],
  })
  expect(Number((await placement(id)).asked)).toBe(asked + 1)
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
