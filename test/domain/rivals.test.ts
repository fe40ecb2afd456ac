import { expect, test } from 'vitest'
import { openHolds } from '../../src/domain/placements/holds.ts'
import { ADDRESSES, useScene } from '../workers/probe/scene.ts'

const scene = useScene()

test('who asks rivals and itself never waits for holds that are opened of both', async () => {
  const { store, owner } = scene
  const ids: string[] = []
  for (const name of ['older', 'newer']) ids.push(await scene.create(name, ADDRESSES.slice(0, 1)))
  const { rows } = await store.pool.query<{ loadBalancer: string; vip: string; rule: string }>(
    `SELECT load_balancer_id AS "loadBalancer", host(vip) AS vip, 'nlb-' || host(vip) AS rule FROM ipv6_block`,
  )
  const waiting = `SELECT FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`
  for (const id of ids) {
    const changing = await store.pool.connect()
    try {
      await changing.query("BEGIN; SET LOCAL lock_timeout = '100ms'")
      await changing.query('SELECT ask_rivals($1)', [id])
      const opened = openHolds(store, owner, rows)
      await expect.poll(async () => (await store.pool.query(waiting)).rowCount).toBe(1)
      await changing.query('SELECT ask_placements($1)', [id])
      await changing.query('COMMIT')
      expect((await opened).size).toBe(2)
    } finally {
      changing.release(true)
      await store.pool.query('DELETE FROM hold')
    }
  }
})
