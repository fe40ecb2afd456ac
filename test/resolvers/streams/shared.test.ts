import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openStore } from '../../../src/db/client.ts'
import { shared } from '../../../src/resolvers/streams/shared.ts'

setFlagsFromString('--expose-gc')
const collect: () => void = runInNewContext('gc')

test('what was read for a change is let go of after a while, though nothing is read any more', async () => {
  // It is never asked.
  const store = openStore({ connectionString: 'postgres://nowhere' })
  onTestFinished(() => store.close())
  vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const objects: WeakRef<object>[] = []
  const read = shared(async (_store, ids) => {
    const made = ids.map((id) => ({ id, version: 1 }))
    objects.push(...made.map((one) => new WeakRef(one)))
    return new Map(made.map((one) => [one.id, one]))
  })
  expect((await read(store, new Map([['a', 1]]))).size).toBe(1)
  const left = async () => {
    // What a weak reference was asked for stays until the turn is over.
    await new Promise(setImmediate)
    collect()
    return objects.filter((object) => object.deref() !== undefined).length
  }
  expect(await left()).toBe(1)
  await vi.advanceTimersByTimeAsync(4_000)
  vi.useRealTimers()
  await expect.poll(left).toBe(0)
})
