import { expect, test } from 'vitest'
import { readOptions } from '../../../dev/start/options.ts'

test('without arguments the clusters are embedded and data stay', () => {
  expect(readOptions([])).toEqual({ fresh: false, help: false, kube: 'embedded' })
})

test('what is asked for is read', () => {
  expect(readOptions(['--fresh', '--kube', 'real', '--data', 'd'])).toEqual({
    fresh: true,
    help: false,
    kube: 'real',
    data: 'd',
  })
})

test.each([
  [['--kube', 'fake'], '--kube is embedded or real, not "fake"'],
  [['--kube'], '--kube'],
  [['--nonsense'], '--nonsense'],
  [['nonsense'], 'nonsense'],
])('%j is refused in words', (args, told) => {
  expect(readOptions(args)).toEqual(expect.stringContaining(told))
})
