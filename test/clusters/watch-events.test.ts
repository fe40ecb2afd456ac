import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Unreachable } from '../../src/clusters/cluster.ts'
import { eventsOf } from '../../src/clusters/watch-events.ts'
import { line, rule } from './follow-setup.ts'

async function* inPieces(bytes: Buffer, cuts: number[]): AsyncGenerator<Uint8Array> {
  let from = 0
  for (const cut of [...cuts, bytes.length].sort((one, other) => one - other)) {
    yield bytes.subarray(from, cut)
    from = cut
  }
}

test('however the bytes are cut, the same events come out', async () => {
  const text = fc.string({ unit: 'binary', maxLength: 20 })
  await fc.assert(
    fc.asyncProperty(fc.array(text), fc.array(fc.nat(3_000)), async (notes, cuts) => {
      const objects = notes.map((note, n) => rule(`r${n}`, n + 1, 'u', note))
      const bytes = Buffer.from(objects.map((object) => line('ADDED', object)).join(''))
      const within = cuts.filter((cut) => cut <= bytes.length)
      const read = await Array.fromAsync(eventsOf(inPieces(bytes, within)))
      const written = JSON.parse(JSON.stringify(objects)).map((object: unknown) => ({
        type: 'ADDED',
        object,
      }))
      expect(read).toEqual(written)
    }),
  )
})

test('a line without end is given up before it fills the memory', async () => {
  let sent = 0
  const endless = async function* () {
    for (;;) {
      sent += 1
      yield Buffer.alloc(1024 * 1024, 'x')
    }
  }
  await expect(Array.fromAsync(eventsOf(endless()))).rejects.toBeInstanceOf(Unreachable)
  expect(sent).toBeLessThan(20)
})
