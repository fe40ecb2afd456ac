import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import pg from 'pg'
import { expect, it } from 'vitest'
import { Together } from '../../src/workers/together.ts'

/** As PostgreSQL refuses a statement. */
const refusal = () => Object.assign(new pg.DatabaseError('refused', 0, 'error'), { code: '22003' })

it('everybody gets the answer to their own question, one turn at a time, at most so many in each', async () => {
  await fc.assert(
    fc.asyncProperty(fc.scheduler(), fc.array(fc.nat({ max: 9 })), async (s, asked) => {
      let working = 0
      const together = new Together<number, number>(
        async (items) => {
          working += 1
          expect(working).toBe(1)
          expect(items.length).toBeLessThanOrEqual(3)
          await s.schedule(Promise.resolve())
          working -= 1
          return items.map((item) => item * 2)
        },
        { most: 3 },
      )
      const answers = asked.map((item) =>
        s.schedule(Promise.resolve()).then(() => together.do(item)),
      )
      const all = Promise.all(answers)
      await s.waitFor(all)
      expect(await all).toEqual(asked.map((item) => item * 2))
    }),
  )
})

it('what is asked for in one moment goes in one turn, and what comes meanwhile in the next', async () => {
  const turns: string[][] = []
  const open: (() => void)[] = []
  const together = new Together<string, string>(async (items) => {
    turns.push(items)
    await new Promise<void>((resolve) => open.push(resolve))
    return items
  })
  const first = [together.do('a'), together.do('b')]
  await turn()
  const second = [together.do('c'), together.do('d')]
  await turn()
  expect(turns).toEqual([['a', 'b']])
  open.shift()?.()
  expect(await Promise.all(first)).toEqual(['a', 'b'])
  await turn()
  open.shift()?.()
  expect(await Promise.all(second)).toEqual(['c', 'd'])
  expect(turns).toEqual([
    ['a', 'b'],
    ['c', 'd'],
  ])
})

/** Notes how many went in each turn. */
function counted(options: ConstructorParameters<typeof Together<number, number>>[1]) {
  const turns: number[] = []
  const together = new Together<number, number>(async (items) => {
    turns.push(items.length)
    return items
  }, options)
  return { together, turns }
}

it('turns keep apart, but not when enough wait', async () => {
  const { together, turns } = counted({ apart: 3_600_000, most: 2 })
  await together.do(1)
  const waiting = together.do(2)
  await turn()
  expect(turns).toEqual([1])
  await Promise.all([waiting, together.do(3)])
  expect(turns).toEqual([1, 2])
})

it('nobody waits for more than are expected', async () => {
  let expected = 2
  const { together, turns } = counted({ apart: 3_600_000, expected: () => expected })
  await together.do(1)
  const waiting = together.do(2)
  await turn()
  expect(turns).toEqual([1])
  await Promise.all([waiting, together.do(3)])
  expect(turns).toEqual([1, 2])
  expected = 1
  await together.do(4)
  expect(turns).toEqual([1, 2, 1])
})

it('what one of them is refused for is not the failure of the others', async () => {
  const together = new Together<number, number>(async (items) => {
    if (items.includes(2)) throw refusal()
    return items
  })
  const asked = [1, 2, 3].map((item) => together.do(item))
  const [one, two, three] = await Promise.allSettled(asked)
  expect([one?.status, two?.status, three?.status]).toEqual(['fulfilled', 'rejected', 'fulfilled'])
})

it('while the store is away each is told so once, without a call for each', async () => {
  let calls = 0
  const together = new Together<number, number>(async () => {
    calls += 1
    throw new Error('connection refused')
  })
  const asked = await Promise.allSettled([1, 2, 3].map((item) => together.do(item)))
  expect(asked.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(calls).toBe(1)
})
