import { afterEach, expect, test, vi } from 'vitest'
import { readProbed } from '../../src/domain/health/probed.ts'
import { recordHealth } from '../../src/domain/health/record.ts'
import { rederive } from '../../src/domain/placements/derive.ts'
import type { VpcAttachment } from '../../src/rules/objects.ts'
import { Pacing } from '../../src/workers/pacing.ts'
import { ADDRESSES, useScene } from './probe/scene.ts'

const scene = useScene()
const [A = '', B = '', C = '', D = ''] = ADDRESSES
/** Longer (ms) than what happens meanwhile takes on a busy machine. */
const HOLD = 3_000
type Attachments = Map<string, VpcAttachment | undefined>

const attachment = (uid: string, address: string): VpcAttachment => ({
  apiVersion: 'cloud.datumapis.com/v1alpha1',
  kind: 'VPCAttachment',
  metadata: { uid, name: uid, namespace: 'alpha' },
  spec: { vpc: { name: 'main' }, interface: { addresses: [`${address}/128`] } },
  status: { vpc: 'vpc1', vpcAttachment: uid, node: 'node-9' },
})

const open = new Set<Pacing>()
afterEach(() => {
  for (const pacing of open) pacing.close()
})

/** Lets a load balancer rest from now on, as after a change that health or the inventory made. */
const rest = (id: string, milliseconds = HOLD) => rederive(scene.store, id, milliseconds)

function paced() {
  const released: Attachments[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const { store, owner } = scene
  const release = (kept: Attachments) => {
    released.push(kept)
    resolve()
  }
  const pacing = new Pacing({ store, cluster: owner.cluster, release })
  open.add(pacing)
  const left = async (given: Attachments) => {
    await pacing.keepBack(given)
    return [...given.keys()]
  }
  return { pacing, released, some: promise, left }
}

test('a first change goes at once, further ones of the same load balancer follow together', async () => {
  const web = await scene.create('web', [A, B, C])
  await scene.create('mail', [D])
  const { released, some, left } = paced()
  expect(await left(new Map([['one', attachment('one', A)]]))).toEqual(['one'])
  const began = performance.now()
  await rest(web)

  expect(await left(new Map([['two', attachment('two', B)]]))).toEqual([])
  // The scene's own attachment of C goes, and D is another load balancer's.
  const more: Attachments = new Map([
    ['uid-2', undefined],
    ['other', attachment('other', D)],
  ])
  expect(await left(more)).toEqual(['other'])
  await some
  expect(performance.now() - began).toBeGreaterThan(HOLD - 10)
  expect(released.map((kept) => [...kept])).toEqual([
    [
      ['two', attachment('two', B)],
      ['uid-2', undefined],
    ],
  ])
  // Whatever changes it meanwhile: they have waited.
  await rest(web)
  expect(await left(new Map(released[0]))).toEqual(['two', 'uid-2'])
})

test('a change that health makes lets the load balancer rest too, for each of its clusters', async () => {
  const web = await scene.create('web', [A, B])
  const { store, owner } = scene
  const [read] = await readProbed(store, owner.cluster, [web])
  const [one] = read?.backends ?? []
  if (read === undefined || one === undefined) throw new Error('nothing is to be probed')
  const to = { state: 'UNHEALTHY', reason: 'Unhealthy', message: 'No.' } as const
  const transitions = [{ id: one.id, known: one.mark, ...to }]
  await recordHealth(store, owner, read, transitions, { rest: HOLD, waited: false })
  const { left } = paced()
  expect(await left(new Map([['one', attachment('one', A)]]))).toEqual([])
})

test('a load balancer waits for its own rest only', async () => {
  const web = await scene.create('web', [A, B])
  const mail = await scene.create('mail', [C, D])
  const { released, some, left } = paced()
  await rest(web, 60_000)
  await rest(mail, 200)
  const both: Attachments = new Map([
    ['one', attachment('one', A)],
    ['two', attachment('two', C)],
  ])
  expect(await left(both)).toEqual([])
  await some
  expect(released.map((kept) => [...kept.keys()])).toEqual([['two']])
})

test('what has waited goes at the next try, too, where it could not be taken in', async () => {
  const web = await scene.create('web', [A, B, C])
  const { pacing, released, some, left } = paced()
  await rest(web)
  expect(await left(new Map([['one', attachment('one', A)]]))).toEqual([])
  await some
  await rest(web, 60_000)
  const away = vi.spyOn(scene.store.pool, 'query').mockRejectedValueOnce(new Error('away'))
  const both = new Map([...(released[0] ?? []), ['two', attachment('two', B)] as const])
  await expect(left(new Map(both))).rejects.toThrow('away')
  away.mockRestore()
  expect(await left(new Map(both))).toEqual(['one'])
  expect(await left(new Map(released[0]))).toEqual(['one'])
  pacing.takenIn(['one'])
  expect(await left(new Map(released[0]))).toEqual([])
})

test('what is kept back is forgotten for what is newer', async () => {
  const web = await scene.create('web', [A, B])
  const { released, some, left } = paced()
  await rest(web)
  expect(await left(new Map([['one', attachment('one', A)]]))).toEqual([])
  expect(await left(new Map([['one', attachment('one', ADDRESSES[9] ?? '')]]))).toEqual(['one'])
  expect(await left(new Map([['two', attachment('two', B)]]))).toEqual([])
  await some
  expect([...(released[0]?.keys() ?? [])]).toEqual(['two'])
})
