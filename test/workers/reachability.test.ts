import { afterEach, expect, test } from 'vitest'
import { recordTrouble } from '../../src/domain/clusters.ts'
import { Chores } from '../../src/workers/chores.ts'
import { Reachability } from '../../src/workers/reachability.ts'
import { PATIENCE } from '../support/patience.ts'
import { ADDRESSES, log, useScene } from './probe/scene.ts'

const scene = useScene()
const ending: (() => void)[] = []
afterEach(() => {
  for (const end of ending.splice(0)) end()
})

test('what could be recorded but not folded is folded when that works again', async () => {
  const { store, owner } = scene
  const id = await scene.create('web', ADDRESSES.slice(0, 2))
  const provisioned = async () =>
    (await scene.read(id)).status.conditions.find(({ type }) => type === 'Provisioned')?.reason
  await recordTrouble(store, owner, { reason: 'ClusterUnreachable', message: '', blind: true })
  expect(await provisioned()).toBe('ClusterUnreachable')
  await store.pool.query(`
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON load_balancer FOR EACH ROW EXECUTE FUNCTION refuse()`)

  const { promise: failed, resolve: fail } = Promise.withResolvers<void>()
  const chores = new Chores({ ...log, warn: () => fail() })
  const reach = new Reachability({ store, owner, chores, back: () => undefined })
  ending.push(
    () => reach.close(),
    () => chores.close(),
  )
  reach.begun()
  await failed
  expect(await provisioned()).toBe('ClusterUnreachable')
  await store.pool.query('DROP FUNCTION refuse CASCADE')
  await expect.poll(provisioned, { timeout: PATIENCE }).toBe('Progressing')
})

test('once what a cluster refused to many goes through for one, all are looked at once', () => {
  const { store, owner } = scene
  const chores = new Chores(log)
  let looks = 0
  const back = () => {
    looks += 1
  }
  const reach = new Reachability({ store, owner, chores, back })
  ending.push(
    () => reach.close(),
    () => chores.close(),
  )
  const refused = { reason: 'RightsMissing', message: '', blind: false } as const
  const many = Array.from({ length: 100 }, (_, index) => `lb-${index}`)
  for (const id of many) reach.placement(id, refused)
  expect(looks).toBe(0)
  // One of them is still refused, again and again.
  for (const id of many.slice(1)) {
    reach.placement('lb-0', refused)
    reach.placement(id, undefined)
  }
  expect(looks).toBe(1)
  reach.placement('another', refused)
  reach.placement('lb-0', undefined)
  expect(looks).toBe(2)
  reach.placement('another', undefined)
  expect(looks).toBe(2)
})

test('another cause of the same is told in its words by and by, and is no news of load balancers', async () => {
  const { store, owner } = scene
  const id = await scene.create('web', ADDRESSES.slice(0, 1))
  const chores = new Chores(log)
  const reach = new Reachability({ store, owner, chores, back: () => undefined })
  ending.push(
    () => reach.close(),
    () => chores.close(),
  )
  const message = async () => {
    const { rows } = await store.pool.query<{ message: string | null }>(
      `SELECT trouble ->> 'message' AS message FROM cluster WHERE id = $1`,
      [owner.cluster],
    )
    return rows[0]?.message
  }
  reach.calls(new Error('no certificate'))
  await expect.poll(message, { timeout: PATIENCE }).toBe('no certificate')
  const provisioned = async () =>
    (await scene.read(id)).status.conditions.find(({ type }) => type === 'Provisioned')?.reason
  await expect.poll(provisioned, { timeout: PATIENCE }).toBe('ClusterUnreachable')
  const { version } = await scene.read(id)
  reach.calls(new Error('no authority'))
  await expect.poll(message, { timeout: PATIENCE }).toBe('no authority')
  expect((await scene.read(id)).version).toBe(version)
  reach.calls(undefined)
  await expect.poll(message, { timeout: PATIENCE }).toBeNull()
})
