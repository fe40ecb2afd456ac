import { expect, test } from 'vitest'
import { recordCapabilities } from '../../src/domain/clusters.ts'
import { ADDRESSES, useScene } from '../workers/probe/scene.ts'

const scene = useScene()

test('another dialect of a cluster is recorded together with all placements that it is news to', async () => {
  const { store, owner } = scene
  await scene.create('web', ADDRESSES.slice(0, 1))
  const asked = async () => Number((await store.prisma.placement.findFirstOrThrow()).asked)
  const before = await asked()
  const seen = { dialect: 'selector', sessionAffinity: false } as const
  await store.pool.query(`
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON placement FOR EACH ROW EXECUTE FUNCTION refuse()`)
  await expect(recordCapabilities(store, owner, seen)).rejects.toThrow('refused')
  await store.pool.query('DROP FUNCTION refuse CASCADE')
  await recordCapabilities(store, owner, seen)
  expect(await asked()).toBe(before + 1)
})
