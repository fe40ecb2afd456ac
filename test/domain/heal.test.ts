import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { SYSTEM } from '../../src/domain/events/append.ts'
import { onHint } from '../../src/domain/hints.ts'
import { createLoadBalancer } from '../../src/domain/loadBalancers/create.ts'
import { healPlacements } from '../../src/domain/placements/derive.ts'
import { fill } from '../server/service.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let store: Store
beforeAll(async () => {
  store = openStore({ connectionString: database.url })
  await fill(store)
})
afterAll(() => store.close())

const placements = async () => {
  const rows = await store.prisma.placement.findMany({ orderBy: { loadBalancerId: 'asc' } })
  return rows.map(({ loadBalancerId, placed }) => `${loadBalancerId} ${placed}`)
}

test('placements that are not what follows from backends and inventory are derived anew, wherever they are', async () => {
  const { id: vpc } = await store.prisma.vpc.findFirstOrThrow({ where: { project: 'alpha' } })
  const ids: string[] = []
  for (let number = 0; number < 7; number += 1) {
    const made = await createLoadBalancer(
      store,
      { project: 'alpha', actor: SYSTEM },
      {
        ...{ vpc, name: `web-${number}`, region: 'us-east-1' },
        protocol: { tcp: { port: 7_000 + number } },
        // The last two live nowhere.
        backends: [{ address: number < 5 ? `fd00:1::${1 + (number % 4)}` : 'fd00:1::dead' }],
      },
    )
    if ('loadBalancer' in made) ids.push(made.loadBalancer.id)
  }
  const right = await placements()
  expect(right).toHaveLength(5)
  expect(await healPlacements(store, { atOnce: 2 })).toBe(0)

  const { id: cluster } = await store.prisma.cluster.findFirstOrThrow()
  const lost = [ids[0], ids[4]]
  await store.pool.query('DELETE FROM placement WHERE load_balancer_id = ANY ($1::uuid[])', [lost])
  await store.pool.query(
    'INSERT INTO placement (load_balancer_id, cluster_id, placed) VALUES ($1, $2, true)',
    [ids[6], cluster],
  )
  // A process that ends leaves the rest to others.
  const ending = new AbortController()
  const listening = new AbortController()
  const first = Promise.withResolvers<void>()
  let heard: () => void = first.resolve
  onHint(store, listening.signal, () => heard())
  await first.promise
  heard = () => ending.abort()
  expect(await healPlacements(store, { atOnce: 7, signal: ending.signal })).toBe(1)
  listening.abort()
  expect(await healPlacements(store, { atOnce: 2, signal: ending.signal })).toBe(0)
  expect(await healPlacements(store, { atOnce: 2 })).toBe(2)
  // What should not be there is asked to leave.
  expect(await placements()).toEqual([...right, `${ids[6]} false`])
  expect(await healPlacements(store, { atOnce: 2 })).toBe(0)
})
