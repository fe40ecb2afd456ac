import { expect, test } from 'vitest'
import { recordEndpoints } from '../../src/domain/inventory.ts'
import { ADDRESSES, useScene } from '../workers/probe/scene.ts'

const scene = useScene()
const [A = '', B = ''] = ADDRESSES

test('what could not be derived from a change of endpoints is derived by the next intake', async () => {
  const { store, owner } = scene
  const ids = [await scene.create('web', [A, B]), await scene.create('mail', [A])]
  const asked = async () => {
    const { rows } = await store.pool.query<{ asked: number }>(
      'SELECT asked FROM placement ORDER BY load_balancer_id',
    )
    return rows.map(({ asked }) => asked)
  }
  const moved = [
    {
      attachmentUid: 'uid-0',
      attachmentNamespace: 'alpha',
      attachmentName: 'machine-0',
      attachmentRef: 'att0',
      vpcRef: 'vpc1',
      address: A,
      node: 'another-node',
      egressKind: 'veth' as const,
    },
  ]
  const before = await asked()
  await store.pool.query(`
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON placement FOR EACH ROW EXECUTE FUNCTION refuse()`)
  const left = new Set<string>()
  await expect(recordEndpoints(store, owner, ['uid-0'], moved, left)).rejects.toThrow('refused')
  await store.pool.query('DROP FUNCTION refuse CASCADE')
  expect([...left].sort()).toEqual(ids.sort())
  expect(await asked()).toEqual(before)

  await recordEndpoints(store, owner, ['uid-0'], moved, left)
  expect([...left]).toEqual([])
  expect((await asked()).every((now, index) => now > (before[index] ?? 0))).toBe(true)
})
