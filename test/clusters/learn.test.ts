import { expect, test } from 'vitest'
import {
  bookmark,
  endedWatch,
  follow,
  line,
  listOf,
  refusal,
  rule,
  watchOf,
} from './follow-setup.ts'
import { status } from './scripted-server.ts'

const silent = watchOf()

test('a written object is known at once, and its own event is no news', async () => {
  const {
    follow: it,
    recorder,
    watch,
  } = await follow({
    lists: [listOf(10, rule('a', 3))],
    watches: [silent],
  })
  const call = await watch(1)
  it.learn(rule('a', 12))
  it.learn(rule('b', 13))
  call.answer.write(line('MODIFIED', rule('a', 11)))
  call.answer.write(line('MODIFIED', rule('a', 12)))
  call.answer.write(line('ADDED', rule('b', 13)))
  call.answer.write(line('MODIFIED', rule('a', 14)))
  await recorder.said('~a@14')
  expect(recorder.lines).toEqual(['+a@3', 'listed 1/0', '~a@12', '+b@13', '~a@14'])
})

test('an answer that comes later than the watch is no news', async () => {
  const { follow: it, recorder } = await follow({
    lists: [listOf(10)],
    watches: [watchOf(line('ADDED', rule('a', 12)))],
  })
  await recorder.said('+a@12')
  it.learn(rule('a', 11))
  it.learn(rule('a', 12))
  expect(recorder.lines).toEqual(['listed 0/0', '+a@12'])
})

test('a late answer never brings back what the watch saw deleted', async () => {
  const { follow: it, recorder } = await follow({
    lists: [listOf(10)],
    watches: [watchOf(line('ADDED', rule('a', 11)), line('DELETED', rule('a', 13)))],
  })
  await recorder.said('-a')
  it.learn(rule('a', 12))
  expect(it.objects.size).toBe(0)
  it.learn(rule('a', 15, 'another'))
  expect(recorder.lines).toEqual(['listed 0/0', '+a@11', '-a', '+a@15'])
})

test('a late answer never brings back what went before a bookmark or a list', async () => {
  const { follow: it, recorder } = await follow({
    lists: [listOf(10), listOf(30)],
    watches: [endedWatch(bookmark(20)), refusal(410, status(410, 'Expired')), silent],
  })
  await recorder.said('listed 0/0', 2)
  it.learn(rule('a', 19))
  it.learn(rule('b', 30))
  expect(it.objects.size).toBe(0)
})

test('what was written while a list was read stays, and what was deleted before it goes', async () => {
  const {
    follow: it,
    recorder,
    list,
  } = await follow({
    lists: [
      listOf(10, rule('a', 3), rule('b', 4)),
      async (call) => {
        await answering
        await listOf(30, rule('a', 3), rule('b', 4))(call)
      },
    ],
    watches: [refusal(410, status(410, 'Expired')), silent],
  })
  await list(2)
  it.learn(rule('a', 31))
  it.learn(rule('new', 32))
  it.learn(rule('gone', 29))
  answer()
  await recorder.said('listed 3/1')
  expect(
    [...it.objects.values()].map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`),
  ).toEqual(['a@31', 'b@4', 'new@32'])
})
const { promise: answering, resolve: answer } = Promise.withResolvers<void>()

test('a written object of another uid replaces the one known', async () => {
  const {
    follow: it,
    recorder,
    watch,
  } = await follow({
    lists: [listOf(10, rule('a', 3, 'first'))],
    watches: [silent],
  })
  const call = await watch(1)
  it.learn(rule('a', 14, 'second'))
  // The end of the first one is told late, and is not the end of the second.
  call.answer.write(line('DELETED', rule('a', 13, 'first')))
  call.answer.write(line('ADDED', rule('a', 14, 'second')))
  call.answer.write(line('ADDED', rule('z', 15)))
  await recorder.said('+z@15')
  expect(recorder.lines).toEqual(['+a@3', 'listed 1/0', '-a', '+a@14', '+z@15'])
})

test('versions are compared as numbers, not as text', async () => {
  const { follow: it, recorder } = await follow({
    lists: [listOf(99, rule('a', 98))],
    watches: [silent],
  })
  await it.synced
  it.learn(rule('a', 100))
  it.learn(rule('a', 99))
  expect(recorder.lines).toEqual(['+a@98', 'listed 1/0', '~a@100'])
})
