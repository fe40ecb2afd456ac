import { expect, test } from 'vitest'
import { openStore } from '../../src/db/client.ts'
import { TransactionTimeout } from '../../src/db/transaction.ts'
import { inTurn } from '../../src/db/turns.ts'

// Nothing is sent to it.
const store = openStore({ connectionString: 'postgres://nobody@127.0.0.1:1/nothing' })

/** Work that goes on until it is told to end, in the order in which it began. */
function works() {
  const begun: string[] = []
  const ends = new Map<string, PromiseWithResolvers<void>>()
  const work = (label: string, name: string, longest?: number) => {
    const end = Promise.withResolvers<void>()
    ends.set(label, end)
    const doing = () => {
      begun.push(label)
      return end.promise.then(() => label)
    }
    return inTurn(store, name, doing, longest)
  }
  return { begun, work, end: (label: string) => ends.get(label) }
}

test('two of a name are under way at a time, the others follow in the order they came', async () => {
  const { begun, work, end } = works()
  const answers = ['a', 'b', 'c', 'd'].map((label) => work(label, 'one'))
  const other = work('x', 'another')
  expect(begun).toEqual(['a', 'b', 'x'])
  end('b')?.resolve()
  expect(await answers[1]).toBe('b')
  expect(begun).toEqual(['a', 'b', 'x', 'c'])
  for (const label of ['a', 'c', 'd', 'x']) end(label)?.resolve()
  expect(await Promise.all([...answers, other])).toEqual(['a', 'b', 'c', 'd', 'x'])
})

test('what fails makes room, too', async () => {
  const { begun, work, end } = works()
  const [first, , third] = ['a', 'b', 'c'].map((label) => work(label, 'failing'))
  end('a')?.reject(new RangeError('no'))
  await expect(first).rejects.toThrow(RangeError)
  expect(begun).toEqual(['a', 'b', 'c'])
  for (const label of ['b', 'c']) end(label)?.resolve()
  expect(await third).toBe('c')
})

test('who waits too long gives up, and is not begun later', async () => {
  const { begun, work, end } = works()
  const [first] = [work('a', 'slow'), work('b', 'slow')]
  await expect(work('c', 'slow', 20)).rejects.toThrow(TransactionTimeout)
  const last = work('d', 'slow')
  for (const label of ['a', 'b', 'd']) end(label)?.resolve()
  expect([await first, await last]).toEqual(['a', 'd'])
  expect(begun).toEqual(['a', 'b', 'd'])
})
