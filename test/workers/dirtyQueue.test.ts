import { describe, expect, it } from 'vitest'
import { DirtyQueue } from '../../src/workers/dirtyQueue.ts'

/** Work that ends when it is told to. */
function workshop(concurrency: number) {
  const begun: string[] = []
  const open = new Map<string, (done: number) => void>()
  const queue = new DirtyQueue({ concurrency }, (key) => {
    begun.push(key)
    return new Promise((resolve) => open.set(key, resolve))
  })
  /** `done`: up to which number it did what was asked. */
  const end = async (key: string, done = 0) => {
    open.get(key)?.(done)
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
    queue.add('d', { asked: 1 })
    queue.add('d')
    await end('a')
    await end('d')
    await end('b')
    expect(begun).toEqual(['a', 'd', 'b', 'c'])
  })

  it('works what is found due while it is worked only once, unless more was asked since', async () => {
    const { queue, begun, end } = workshop(1)
    queue.add('a', { asked: 3 })
    for (let times = 0; times < 3; times += 1) queue.add('a', { asked: 3 })
    await end('a', 3)
    expect(begun).toEqual(['a'])
    queue.add('a', { asked: 4 })
    queue.add('a', { asked: 5 })
    await end('a', 4)
    expect(begun).toEqual(['a', 'a', 'a'])
    // It couldn't be done.
    queue.add('a', { asked: 5 })
    await end('a', 0)
    expect(begun).toEqual(['a', 'a', 'a', 'a'])
    // Something else wants it looked at besides.
    queue.add('a', { asked: 5 })
    queue.add('a')
    await end('a', 5)
    expect(begun).toEqual(['a', 'a', 'a', 'a', 'a'])
    queue.add('a')
    queue.add('a', { asked: 5 })
    await end('a', 5)
    expect(begun).toEqual(['a', 'a', 'a', 'a', 'a', 'a'])
  })

  it('does not look again for what the look under way has seen', async () => {
    const { queue, begun, end } = workshop(1)
    queue.notice('a')
    queue.notice('a')
    queue.caughtUp('a')
    await end('a')
    expect(begun).toEqual(['a'])
    queue.notice('a')
    queue.caughtUp('a')
    queue.notice('a')
    await end('a')
    expect(begun).toEqual(['a', 'a', 'a'])
    // What isn't seen by looking stays.
    queue.add('a')
    queue.caughtUp('a')
    await end('a')
    expect(begun).toEqual(['a', 'a', 'a', 'a'])
  })

  it('gives the places of those that left theirs to others, up to the most', async () => {
    const begun: string[] = []
    const leave = new Map<string, () => void>()
    const open = new Map<string, (done: number) => void>()
    const queue = new DirtyQueue({ concurrency: 1, most: 2 }, (key, left) => {
      begun.push(key)
      leave.set(key, left)
      return new Promise((resolve) => open.set(key, resolve))
    })
    const end = async (key: string) => {
      open.get(key)?.(0)
      await new Promise((resolve) => setImmediate(resolve))
    }
    for (const key of ['a', 'b', 'c']) queue.add(key)
    expect(begun).toEqual(['a'])
    leave.get('a')?.()
    expect(begun).toEqual(['a', 'b'])
    // It is still under way, so it isn't looked at a second time.
    queue.add('a')
    leave.get('b')?.()
    expect(begun).toEqual(['a', 'b'])
    await end('b')
    expect(begun).toEqual(['a', 'b', 'c'])
    await end('a')
    expect(begun).toEqual(['a', 'b', 'c'])
    leave.get('c')?.()
    expect(begun).toEqual(['a', 'b', 'c', 'a'])
    const closed = queue.close()
    await end('c')
    await end('a')
    await closed
    expect(queue.size).toBe(0)
  })

  it('that is closed begins nothing more, and waits for what is under way', async () => {
    const { queue, begun, end } = workshop(1)
    queue.add('a')
    queue.add('b')
    queue.notice('a')
    const closed = queue.close()
    await end('a')
    await closed
    queue.add('c')
    expect(begun).toEqual(['a'])
  })
})
