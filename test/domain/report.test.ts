import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import { reportPlacements } from '../../src/domain/placements/report.ts'
import { ADDRESSES, useScene } from '../workers/probe/scene.ts'
import { report } from './folding.ts'

const scene = useScene()

test('a placement that is not wanted any more ends, and says so, once nothing of it is left', async () => {
  const { store, owner } = scene
  const id = await scene.create('web', ADDRESSES.slice(0, 1))
  const tell = async (inEffect: boolean) => {
    const { asked } = await store.prisma.placement.findFirstOrThrow()
    const told = report({ asked: Number(asked), generation: 1, inEffect })
    const about = { owner, loadBalancer: id, applied: true, gone: [] }
    return reportPlacements(store, [{ ...about, report: told }])
  }
  expect(await tell(true)).toEqual(['taken'])
  await store.pool.query('UPDATE placement SET placed = false, asked = asked + 1')
  expect(await tell(false)).toEqual(['taken'])
  expect(await tell(true)).toEqual(['over'])
  expect(await store.prisma.placement.count()).toBe(0)
})

test('of reports taken in together each is about its own placement, whoever the others are of', async () => {
  const { store, owner } = scene
  const [one = '', two = '', three = ''] = await Promise.all(
    ['one', 'two', 'three'].map((name) => scene.create(name, ADDRESSES.slice(0, 1))),
  )
  const replaced = { ...owner, epoch: owner.epoch - 1 }
  const about = { applied: true, gone: [], report: report({ asked: 1, generation: 1 }) }
  await store.pool.query('UPDATE placement SET asked = 2 WHERE load_balancer_id = $1', [three])
  const told = [
    { ...about, owner, loadBalancer: three },
    { ...about, owner: replaced, loadBalancer: two },
    { ...about, owner, loadBalancer: randomUUID() },
    { ...about, owner, loadBalancer: one, applied: false },
  ]
  expect(await reportPlacements(store, told)).toEqual(['taken', 'lease-lost', 'over', 'taken'])
  const stored = await store.prisma.placement.findMany({ orderBy: { loadBalancerId: 'asc' } })
  const found = (id: string) => {
    const { applied, due, report: last } = stored.find((each) => each.loadBalancerId === id) ?? {}
    return { applied: Number(applied), due: due !== null, reported: last !== null }
  }
  expect(found(one)).toEqual({ applied: 0, due: true, reported: true })
  expect(found(two)).toEqual({ applied: 0, due: true, reported: false })
  // It was asked for anew meanwhile.
  expect(found(three)).toEqual({ applied: 1, due: true, reported: true })
})

test.each(['the first', 'the second'])(
  'reports taken in together wait for reservations in the order in which everybody locks them, where %s has what is locked last',
  async (has) => {
    const { store, owner } = scene
    const ids: string[] = []
    for (const name of ['first', 'second'])
      ids.push(await scene.create(name, ADDRESSES.slice(0, 1)))
    const reservations = [randomUUID(), randomUUID()].sort()
    const holders = has === 'the first' ? ids.toReversed() : ids
    await store.pool.query(
      `INSERT INTO ipv4_reservation (id, project, region_id, name, address, load_balancer_id, bound_at, created_at, updated_at)
     SELECT held.id, 'alpha', region.id, held.id, ('203.0.113.' || held.place)::inet, held.load_balancer, now(), now(), now()
     FROM region, unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS held (id, load_balancer, place)`,
      [reservations, holders],
    )
    const other = await store.pool.connect()
    const lock = 'SELECT FROM ipv4_reservation WHERE id = $1 FOR UPDATE NOWAIT'
    await other.query('BEGIN')
    try {
      await other.query(lock, [reservations[0]])
      const told = report({ asked: 1, generation: 1 })
      const about = { owner, applied: true, gone: [], report: told }
      const taken = reportPlacements(
        store,
        ids.map((loadBalancer) => ({ ...about, loadBalancer })),
      )
      const waiting = `SELECT FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'`
      await expect.poll(async () => (await store.pool.query(waiting)).rowCount).toBe(1)
      await other.query(lock, [reservations[1]])
      await other.query('COMMIT')
      expect(await taken).toEqual(['taken', 'taken'])
    } finally {
      other.release(true)
      await store.pool.query('DELETE FROM ipv4_reservation')
    }
  },
)
