import { expect, test } from 'vitest'
import { Gates } from '../../../dev/dataplane/gates.ts'

const never = new Promise<void>(() => undefined)

test('a held step passes when it is released, others pass at once', async () => {
  const gates = new Gates({})
  const release = gates.hold('advertise', 'rule')
  const passed: string[] = []
  const held = gates.pass('advertise', ['rule', '2001:db8::1'], 0, never).then(() => {
    passed.push('held')
  })
  await gates.pass('advertise', ['other'], 0, never)
  await gates.pass('accept', ['rule'], 0, never)
  passed.push('others')
  release()
  await held
  expect(passed).toEqual(['others', 'held'])
})

test('a paused gate passes nothing until it is resumed', async () => {
  const gates = new Gates({})
  gates.pause()
  let passed = false
  const waiting = gates.pass('bind', [], 0, never).then((answer) => {
    passed = answer
  })
  await new Promise((resolve) => setImmediate(resolve))
  expect(passed).toBe(false)
  gates.resume()
  await waiting
  expect(passed).toBe(true)
})

test('a step that waits is thought over when something changed, or all is closing', async () => {
  const gates = new Gates({ bind: 60_000 })
  expect(await gates.pass('bind', [], performance.now(), Promise.resolve())).toBe(false)
  const waiting = gates.pass('bind', [], performance.now(), never)
  gates.close()
  expect(await waiting).toBe(false)
})
