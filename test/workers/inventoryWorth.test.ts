import { afterEach, expect, test } from 'vitest'
import { VPC_ATTACHMENTS, VPCS } from '../../src/rules/objects.ts'
import { Chores } from '../../src/workers/chores.ts'
import { InventoryWorth } from '../../src/workers/inventoryWorth.ts'
import { PATIENCE } from '../support/patience.ts'
import { log, useScene } from './probe/scene.ts'

const scene = useScene()
const ending: (() => void)[] = []
afterEach(() => {
  for (const end of ending.splice(0)) end()
})

test('what could not be recorded is recorded when that works again, and only what is newest then', async () => {
  const { store, owner } = scene
  const inventory = async () => (await store.prisma.cluster.findFirstOrThrow()).inventory
  await store.pool.query(`
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
CREATE TRIGGER refuse BEFORE UPDATE ON cluster FOR EACH ROW EXECUTE FUNCTION refuse()`)
  const { promise: failed, resolve: fail } = Promise.withResolvers<void>()
  const chores = new Chores({ ...log, warn: () => fail() })
  const worth = new InventoryWorth({ store, owner, chores, log })
  ending.push(
    () => worth.close(),
    () => chores.close(),
  )
  worth.known()
  worth.tell(3)
  await failed
  worth.tell(5)
  await store.pool.query('DROP FUNCTION refuse CASCADE')
  await expect.poll(inventory, { timeout: PATIENCE }).toMatchObject({
    reason: 'InventoryDoubted',
    message: expect.stringContaining('Held back: 5.'),
  })
})

test('of two kinds that fail the one is named that fails still', async () => {
  const { store, owner } = scene
  const inventory = async () => (await store.prisma.cluster.findFirstOrThrow()).inventory
  const chores = new Chores(log)
  const worth = new InventoryWorth({ store, owner, chores, log })
  ending.push(
    () => worth.close(),
    () => chores.close(),
  )
  worth.known()
  worth.failing(VPCS, new Error('one refused'))
  worth.failing(VPC_ATTACHMENTS, new Error('another refused'))
  const told = (message: string) =>
    expect.poll(inventory, { timeout: PATIENCE }).toMatchObject({
      reason: 'InventoryStale',
      message: expect.stringContaining(message),
    })
  await told('vpcs: one refused')
  worth.failing(VPCS, undefined)
  await told('vpcattachments: another refused')
  worth.failing(VPC_ATTACHMENTS, undefined)
  await expect.poll(inventory, { timeout: PATIENCE }).toMatchObject({ reason: 'InventoryComplete' })
})
