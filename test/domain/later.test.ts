import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { SYSTEM } from '../../src/domain/events/append.ts'
import { createLoadBalancer } from '../../src/domain/loadBalancers/create.ts'
import {
  forgetCluster,
  removeCluster,
  updateCluster,
} from '../../src/domain/operators/clusterChanges.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { askThese, deriveAsked } from '../../src/domain/placements/later.ts'
import { fill } from '../server/service.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
const going = new AbortController().signal
const ids: string[] = []
let store: Store
let cluster = ''
beforeAll(async () => {
  store = openStore({ connectionString: database.url })
  await fill(store)
  cluster = (await store.prisma.cluster.findFirstOrThrow()).id
  const { id: vpc } = await store.prisma.vpc.findFirstOrThrow({ where: { project: 'alpha' } })
  for (let number = 0; number < 4; number += 1) {
    const made = await createLoadBalancer(
      store,
      { project: 'alpha', actor: SYSTEM },
      {
        ...{ vpc, name: `web-${number}`, region: 'us-east-1' },
        protocol: { tcp: { port: 7_000 + number } },
        backends: [{ address: 'fd00:1::1' }],
      },
    )
    if ('loadBalancer' in made) ids.push(made.loadBalancer.id)
  }
})
afterAll(() => store.close())
beforeEach(() => store.pool.query('DELETE FROM derivation'))

const waiting = () => store.prisma.derivation.count()
/** What its one backend is said to be, of each load balancer. */
const resolved = async () => {
  const { rows } = await store.pool.query<{ reason: string }>(
    `SELECT DISTINCT seen.value #>> '{resolved,reason}' AS reason
     FROM load_balancer, json_each(status -> 'backends') AS seen`,
  )
  return rows.map(({ reason }) => reason)
}
const placed = () => store.prisma.placement.count({ where: { placed: true } })

test('a change of a cluster answers when its time is over, and what is left is derived later, once', async () => {
  const before = await store.prisma.placement.findMany()
  await updateCluster(store, { id: cluster, mode: 'CORDONED' }, 0)
  expect((await store.prisma.cluster.findUniqueOrThrow({ where: { id: cluster } })).mode).toBe(
    'CORDONED',
  )
  expect(await waiting()).toBe(ids.length)
  expect(await store.prisma.placement.findMany()).toEqual(before)
  expect(await deriveAsked(store, going)).toBe(ids.length)
  expect(await waiting()).toBe(0)
  const asked = new Map(before.map((one) => [one.loadBalancerId, one.asked]))
  for (const one of await store.prisma.placement.findMany())
    expect(one.asked).toBe((asked.get(one.loadBalancerId) ?? 0n) + 1n)
  expect(await deriveAsked(store, going)).toBe(0)
})

test('where it takes no longer, all is derived before the answer; without a change nothing is', async () => {
  await updateCluster(store, { id: cluster, mode: 'ACTIVE' })
  expect(await waiting()).toBe(0)
  const before = await store.prisma.placement.findMany()
  await updateCluster(store, { id: cluster, mode: 'ACTIVE', hasProber: true }, 0)
  expect(await waiting()).toBe(0)
  expect(await store.prisma.placement.findMany()).toEqual(before)
})

test('a refused change asks for nothing', async () => {
  await updateCluster(store, { id: cluster, mode: 'CORDONED', context: '' }, 0)
  expect(await waiting()).toBe(0)
  await removeCluster(store, cluster, 0)
  expect(await waiting()).toBe(0)
})

test('what fails or is called off stays asked for, and holds up nothing else', async () => {
  await askThese(store.pool, ids)
  expect(await deriveAsked(store, AbortSignal.abort())).toBe(0)
  await store.pool.query(
    `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`,
  )
  const [first] = ids.toSorted()
  await store.pool.query(
    `CREATE TRIGGER refuse BEFORE UPDATE ON placement FOR EACH ROW
     WHEN (NEW.load_balancer_id = '${first}') EXECUTE FUNCTION refuse()`,
  )
  await expect(deriveAsked(store, going)).rejects.toThrow('refused')
  expect(await store.prisma.derivation.findMany()).toMatchObject([{ loadBalancerId: first }])
  await store.pool.query('DROP FUNCTION refuse CASCADE')
  expect(await deriveAsked(store, going)).toBe(1)
})

test('what is asked for while it is derived is derived again', async () => {
  await askThese(store.pool, ids.slice(0, 1))
  await store.pool.query(
    `CREATE FUNCTION ask_again() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
       UPDATE derivation SET asked = asked + 1 WHERE load_balancer_id = NEW.load_balancer_id; RETURN NEW; END $$;
     CREATE TRIGGER ask_again AFTER UPDATE ON placement FOR EACH ROW EXECUTE FUNCTION ask_again()`,
  )
  expect(await deriveAsked(store, going)).toBe(1)
  expect(await waiting()).toBe(1)
  await store.pool.query('DROP FUNCTION ask_again CASCADE')
  expect(await deriveAsked(store, going)).toBe(1)
  expect(await waiting()).toBe(0)
})

test('of two processes one derives', async () => {
  await askThese(store.pool, ids)
  const other = openStore({ connectionString: database.url })
  const derived = await Promise.all([deriveAsked(store, going), deriveAsked(other, going)])
  expect(derived.toSorted()).toEqual([0, ids.length])
  await other.close()
})

test('a cluster that is forgotten, taken up again or removed leaves nothing behind, however late it is derived', async () => {
  await forgetCluster(store, { id: cluster, destroyed: true }, 0)
  expect(await waiting()).toBe(ids.length)
  expect(await deriveAsked(store, going)).toBe(ids.length)
  expect(await resolved()).toEqual(['AddressUnknown'])
  const { name, regionId } = await store.prisma.cluster.findUniqueOrThrow({
    where: { id: cluster },
  })
  const { code } = await store.prisma.region.findUniqueOrThrow({ where: { id: regionId } })
  await registerCluster(store, { name, region: code, context: name })
  expect(await placed()).toBe(ids.length)
  expect(await resolved()).toEqual(['Resolved'])
  await forgetCluster(store, { id: cluster, destroyed: true }, 0)
  await removeCluster(store, cluster, 0)
  expect(await waiting()).toBe(ids.length)
  expect(await deriveAsked(store, going)).toBe(ids.length)
  expect(await resolved()).toEqual(['AddressUnknown'])
})
