import { expect, test } from 'vitest'
import { reportPlacement } from '../../src/domain/placements/report.ts'
import { ADDRESSES, useScene } from '../workers/probe/scene.ts'
import { report } from './folding.ts'

const scene = useScene()

test('a placement that is not wanted any more ends, and says so, once nothing of it is left', async () => {
  const { store, owner } = scene
  const id = await scene.create('web', ADDRESSES.slice(0, 1))
  const tell = async (inEffect: boolean) => {
    const { asked } = await store.prisma.placement.findFirstOrThrow()
    const told = report({ asked: Number(asked), generation: 1, inEffect })
    return reportPlacement(store, owner, id, { report: told, applied: true, gone: [] })
  }
  expect(await tell(true)).toBe(false)
  await store.pool.query('UPDATE placement SET placed = false, asked = asked + 1')
  expect(await tell(false)).toBe(false)
  expect(await tell(true)).toBe(true)
  expect(await store.prisma.placement.count()).toBe(0)
})
