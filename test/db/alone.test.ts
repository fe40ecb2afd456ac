import { afterAll, beforeAll, expect, test } from 'vitest'
import { alone } from '../../src/db/alone.ts'
import { openStore, type Store } from '../../src/db/client.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let one: Store
let other: Store
beforeAll(() => {
  one = openStore({ connectionString: database.url })
  other = openStore({ connectionString: database.url })
})
afterAll(() => Promise.all([one.close(), other.close()]))

test('one process at a time does what has a name, others go on at once, and what failed can be done again', async () => {
  const begun = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const first = alone(one, 'sweep', async () => {
    begun.resolve()
    await end.promise
    return 'done'
  })
  await begun.promise
  expect(await alone(other, 'sweep', async () => 'twice')).toBeUndefined()
  expect(await alone(one, 'sweep', async () => 'twice')).toBeUndefined()
  expect(await alone(other, 'count', async () => 'another')).toBe('another')
  end.resolve()
  expect(await first).toBe('done')
  await expect(
    alone(other, 'sweep', async () => {
      throw new Error('failed')
    }),
  ).rejects.toThrow('failed')
  expect(await alone(one, 'sweep', async () => 'again')).toBe('again')
})
