import fc from 'fast-check'
import { expect, it } from 'vitest'
import { Latest } from '../../src/workers/latest.ts'

it('whenever it is told and however long writes take, they come one at a time and the last is the last', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(fc.integer(), { minLength: 1 }), async (s, told) => {
      const written: number[] = []
      let writing = 0
      const latest = new Latest<number>(async (value) => {
        writing += 1
        expect(writing).toBe(1)
        await s.schedule(Promise.resolve())
        written.push(value)
        writing -= 1
      })
      for (const value of told) void s.schedule(Promise.resolve()).then(() => latest.tell(value))
      await s.waitIdle()
      // The scheduler told it in an order of its own.
      expect(told).toContain(written.at(-1))
      latest.tell(0.5)
      await s.waitIdle()
      expect(written.at(-1)).toBe(0.5)
    }),
  )
})

it('what was overtaken while it could not be written is given up', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const written: string[] = []
  const latest = new Latest<string>(async (value, isLatest) => {
    if (value === 'old') await promise
    if (isLatest()) written.push(value)
  })
  latest.tell('old')
  latest.tell('newer')
  latest.tell('new')
  resolve()
  await expect.poll(() => written).toEqual(['new'])
})
