import { describe, expect, it } from 'vitest'
import { DirtyQueue } from '../../src/workers/dirtyQueue.ts'

/** Work that ends when it is told to. */
function workshop(concurrency: number) {
  const begun: string[] = []
  const open = new Map<string, () => void>()
  const queue = new DirtyQueue(concurrency, (key) => {
    begun.push(key)
    return new Promise<void>((resolve) => open.set(key, resolve))
  })
  const end = async (key: string) => {
    open.get(key)?.()
    await new Promise((resolve) => setImmediate(resolve))
  }
  return { queue, begun, end }
}

describe('a queue', () => {
  it('looks once more at what was added while it was looked at, and never twice at once', async () => {
    const { queue, begun, end } = workshop(4)
    for (let times = 0; times < 3; times += 1) queue.add('a')
    expect(begun).toEqual(['a'])
    await end('a')
    expect(begun).toEqual(['a', 'a'])
    await end('a')
    expect(begun).toEqual(['a', 'a'])
    expect(queue.size).toBe(0)
  })

  it('takes what was asked for ahead of what is only looked over', async () => {
    const { queue, begun, end } = workshop(1)
    for (const key of ['a', 'b', 'c', 'd']) queue.add(key)
    queue.add('d', { ahead: true })
    queue.add('d')
    await end('a')
    await end('d')
    await end('b')
    expect(begun).toEqual(['a', 'd', 'b', 'c'])
  })

  it('that is closed begins nothing more, and waits for what is under way', async () => {
    const { queue, begun, end } = workshop(1)
    queue.add('a')
    queue.add('b')
    const closed = queue.close()
    await end('a')
    await closed
    queue.add('c')
    expect(begun).toEqual(['a'])
  })
})
