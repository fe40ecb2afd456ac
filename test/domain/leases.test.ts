import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { recordCapabilities, recordInventory, recordTrouble } from '../../src/domain/clusters.ts'
import { recordEndpoints, recordSightings } from '../../src/domain/inventory.ts'
import { type Lease, releaseLease, renewLeases } from '../../src/domain/placements/leases.ts'
import { LeaseLost } from '../../src/domain/placements/ownership.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let store: Store

beforeAll(async () => {
  store = openStore({ connectionString: database.url })
  const region = { id: crypto.randomUUID(), code: 'r', displayName: 'R', cityCode: 'IAD' }
  await store.prisma.region.create({ data: region })
  for (const name of ['a', 'b', 'c', 'd']) {
    const data = { id: crypto.randomUUID(), name, regionId: region.id, context: name }
    await store.prisma.cluster.create({ data })
  }
})
afterAll(() => store.close())
beforeEach(async () => {
  await store.pool.query('DELETE FROM worker')
  await store.pool.query('UPDATE cluster SET owner = NULL, lease_until = NULL')
})

const names = (leases: Lease[]) => leases.map(({ name }) => name)
const expire = () =>
  store.pool.query(`UPDATE cluster SET lease_until = clock_timestamp() - interval '1 s'`)

describe('leases', () => {
  it('are all had by the only worker, and keep their epoch while they are renewed', async () => {
    const first = await renewLeases(store, 'one')
    const again = await renewLeases(store, 'one')
    expect(names(again.leases)).toEqual(['a', 'b', 'c', 'd'])
    expect(again.leases.map(({ epoch }) => epoch)).toEqual(first.leases.map(({ epoch }) => epoch))
  })

  it('are renewed while a report holds the row of a cluster', async () => {
    await renewLeases(store, 'one')
    const reporting = await store.pool.connect()
    await reporting.query('BEGIN')
    await reporting.query('SELECT FROM cluster FOR KEY SHARE')
    const { leases } = await renewLeases(store, 'one')
    await reporting.query('ROLLBACK')
    reporting.release()
    expect(names(leases)).toEqual(['a', 'b', 'c', 'd'])
  })

  it('of a worker that died are taken over under a new epoch, and told to be unsure', async () => {
    const before = await renewLeases(store, 'one')
    await expire()
    await store.pool.query(`DELETE FROM worker WHERE name = 'one'`)
    const { leases } = await renewLeases(store, 'two')
    expect(names(leases)).toEqual(['a', 'b', 'c', 'd'])
    expect(leases.every(({ tookOver }) => tookOver)).toBe(true)
    expect(leases[0]?.epoch).toBe((before.leases[0]?.epoch ?? 0) + 1)
    // The dead one comes back: nothing is its own any more.
    expect(names((await renewLeases(store, 'one')).leases)).toEqual([])
  })

  it('that were taken over refuse what their owner before saw, and take in nothing of it', async () => {
    const { leases } = await renewLeases(store, 'one')
    const [{ cluster, epoch } = { cluster: '', epoch: 0 }] = leases
    const read = async () => ({
      sightings: await store.prisma.vpcSighting.count(),
      endpoints: await store.prisma.endpoint.count(),
      cluster: await store.prisma.cluster.findUniqueOrThrow({
        where: { id: cluster },
        select: { dialect: true, trouble: true, unreachableSince: true, inventory: true },
      }),
    })
    const vpc = { ref: '60', name: 'v1', project: 'demo' }
    const endpoint = {
      attachmentUid: 'uid',
      attachmentNamespace: 'demo',
      attachmentName: 'web',
      attachmentRef: '61',
      vpcRef: vpc.ref,
      address: 'fd00::1',
      node: 'node',
      egressKind: 'veth' as const,
    }
    const before = await read()
    await expire()
    await store.pool.query(`DELETE FROM worker WHERE name = 'one'`)
    await renewLeases(store, 'two')
    const late = { cluster, epoch }
    const sighting = { namespace: 'demo', name: 'v1', vpc }
    await expect(recordSightings(store, late, [sighting])).rejects.toThrow(LeaseLost)
    await expect(recordEndpoints(store, late, ['uid'], [endpoint])).rejects.toThrow(LeaseLost)
    await recordCapabilities(store, late, { dialect: 'selector', sessionAffinity: false })
    await recordTrouble(store, late, { reason: 'ClusterUnreachable', message: '', blind: true })
    const stale = { status: 'FALSE', reason: 'InventoryStale', message: '' } as const
    await recordInventory(store, late, stale)
    expect(await read()).toEqual(before)
    const owner = { cluster, epoch: epoch + 1 }
    await recordSightings(store, owner, [sighting])
    await recordEndpoints(store, owner, ['uid'], [endpoint])
    expect(await read()).toMatchObject({ sightings: 1, endpoints: 1 })
  })

  it('that were given up in order are had at once, by whoever comes, and are sure', async () => {
    const { leases } = await renewLeases(store, 'one')
    for (const lease of leases) await releaseLease(store, lease)
    await store.pool.query(`DELETE FROM worker WHERE name = 'one'`)
    const after = await renewLeases(store, 'two')
    expect(names(after.leases)).toEqual(['a', 'b', 'c', 'd'])
    expect(after.leases.some(({ tookOver }) => tookOver)).toBe(false)
  })

  it('are shared: a second worker makes half of them surplus to the first, and gets those', async () => {
    const { leases } = await renewLeases(store, 'one')
    await renewLeases(store, 'two')
    const crowded = await renewLeases(store, 'one')
    expect(crowded.surplus).toBe(2)
    for (const lease of leases.slice(2)) await releaseLease(store, lease)
    expect(names((await renewLeases(store, 'two')).leases)).toEqual(['c', 'd'])
    expect(await renewLeases(store, 'one')).toMatchObject({ surplus: 0 })
  })
})
