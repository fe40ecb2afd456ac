import { expect, test, vi } from 'vitest'
import { Unreachable } from '../../src/clusters/cluster.ts'
import {
  bookmark,
  endedWatch,
  follow,
  line,
  listOf,
  refusal,
  rule,
  type Step,
  watchOf,
} from './follow-setup.ts'
import { Recorder } from './recorder.ts'
import { json, status } from './scripted-server.ts'
import { TestClock } from './test-clock.ts'

const silent = watchOf()

test('a follow lists in full, then watches from the version of the list, with bookmarks', async () => {
  const {
    follow: it,
    recorder,
    watch,
    lists,
  } = await follow({
    lists: [listOf(10, rule('a', 3), rule('b', 9))],
    watches: [silent],
  })
  await it.synced
  expect([...it.objects.keys()]).toEqual(['n/a', 'n/b'])
  expect(recorder.lines).toEqual(['+a@3', '+b@9', 'listed 2/0'])
  const { path, query } = await watch(1)
  expect(path).toBe('/apis/network.datumapis.com/v1alpha1/namespaces/n/networkrules')
  expect(Object.fromEntries(query)).toEqual({
    watch: 'true',
    allowWatchBookmarks: 'true',
    resourceVersion: '10',
    timeoutSeconds: '270',
    labelSelector: 'a=b',
  })
  expect(lists()[0]?.query.get('labelSelector')).toBe('a=b')
  expect(lists()[0]?.query.get('limit')).toBe('500')
})

test('watches of several follows end at different times', async () => {
  const asked = []
  for (const random of [0, 0.25, 0.999]) {
    const { watch } = await follow(
      { lists: [listOf(1)], watches: [silent] },
      { random: () => random },
    )
    asked.push(Number((await watch(1)).query.get('timeoutSeconds')))
  }
  expect(asked).toEqual([240, 255, 300])
})

test('created, changed and deleted objects are told in order', async () => {
  const { follow: it, recorder } = await follow({
    lists: [listOf(1)],
    watches: [
      watchOf(
        line('ADDED', rule('a', 2)),
        line('MODIFIED', rule('a', 3)),
        line('ADDED', rule('b', 4)),
        line('DELETED', rule('a', 5)),
      ),
    ],
  })
  await recorder.said('-a')
  expect(recorder.lines).toEqual(['listed 0/0', '+a@2', '~a@3', '+b@4', '-a'])
  expect([...it.objects.keys()]).toEqual(['n/b'])
})

test('a pause after a failure ends when something shows that it works again, unless the server asked for it', async () => {
  const clock = new TestClock(0)
  const { follow: it, recorder } = await follow(
    {
      lists: [refusal(500, {}), refusal(503, {}, { 'retry-after': '11' }), listOf(1)],
      watches: [silent],
    },
    { clock },
  )
  await recorder.said('failing 500')
  it.hurry()
  await recorder.said('failing 503')
  it.hurry()
  await new Promise(setImmediate)
  expect(recorder.lines).toEqual(['failing 500', 'failing 503'])
  clock.advance(14_000)
  await it.synced
})

test('a watch that ends in good order resumes from the last version seen, without a list', async () => {
  const { watch, lists } = await follow({
    lists: [listOf(1)],
    watches: [endedWatch(line('ADDED', rule('a', 2))), endedWatch(bookmark(9)), silent],
  })
  expect((await watch(2)).query.get('resourceVersion')).toBe('2')
  expect((await watch(3)).query.get('resourceVersion')).toBe('9')
  expect(lists()).toHaveLength(1)
})

test('events cut anywhere, many in one piece and umlauts split in two are read alike', async () => {
  const lines = [
    line('ADDED', rule('a', 2, 'u', 'grün – ✓ 😀')),
    line('ADDED', rule('b', 3)),
    line('MODIFIED', rule('a', 4, 'u', 'größer 😀')),
  ]
  const bytes = Buffer.from(lines.join(''))
  const { follow: it, recorder } = await follow({
    lists: [listOf(1)],
    watches: [
      async ({ answer }) => {
        answer.writeHead(200)
        for (let at = 0; at < bytes.length; at += 7) {
          answer.write(bytes.subarray(at, at + 7))
          await new Promise(setImmediate)
        }
        answer.write(`\n${line('ADDED', rule('c', 5))}${line('ADDED', rule('d', 6))}`)
      },
    ],
  })
  await recorder.said('+d@6')
  expect(recorder.lines).toEqual(['listed 0/0', '+a@2', '+b@3', '~a@4', '+c@5', '+d@6'])
  expect(it.objects.get('n/a')?.metadata.annotations).toEqual({ note: 'größer 😀' })
})

test.each([
  ['410 as status', refusal(410, status(410, 'Expired'))],
  ['410 as an event', endedWatch(line('ERROR', status(410, 'Expired')))],
])('%s brings a new list, which tells what was missed', async (_, expired) => {
  const { recorder, watch, lists } = await follow({
    lists: [
      listOf(10, rule('kept', 1), rule('changed', 2), rule('gone', 3)),
      listOf(50, rule('kept', 1), rule('changed', 40), rule('new', 41)),
    ],
    watches: [endedWatch(bookmark(11)), expired, silent],
  })
  expect((await watch(3)).query.get('resourceVersion')).toBe('50')
  expect(lists()).toHaveLength(2)
  expect(recorder.lines.slice(4)).toEqual([
    'accept 3/1?',
    '-gone',
    '~changed@40',
    '+new@41',
    'listed 3/1',
  ])
})

test('a server whose every list is too old at once is asked ever less often', async () => {
  const { clock, watch } = await follow(
    { lists: [listOf(1)], watches: [endedWatch(line('ERROR', status(410, 'Expired')))] },
    { random: () => 0.999 },
  )
  await watch(8)
  expect(clock.now()).toBeGreaterThan(30_000)
})

test('a watch that is silent past its time is given up and resumed', async () => {
  const { clock, watch, lists, recorder } = await follow({
    lists: [listOf(7)],
    watches: [silent],
  })
  const first = await watch(1)
  clock.advance(279_000)
  expect(first.answer.writableEnded).toBe(false)
  clock.advance(1_000)
  await first.gone
  expect((await watch(2)).query.get('resourceVersion')).toBe('7')
  expect(lists()).toHaveLength(1)
  expect(recorder.lines).toEqual(['listed 0/0'])
})

test('a relist comes every ten minutes, and unchanged objects are not told again', async () => {
  const { clock, recorder, watch, list, lists } = await follow({
    lists: [listOf(7, rule('a', 3)), listOf(8, rule('a', 3))],
    watches: [silent],
  })
  for (let seconds = 0, n = 1; lists().length < 2; n++) {
    const call = await watch(n)
    const timeout = Number(call.query.get('timeoutSeconds'))
    seconds += timeout
    clock.advance(timeout * 1000)
    call.answer.end()
    if (seconds >= 600) await list(2)
  }
  await recorder.said('listed 1/0', 2)
  expect(recorder.lines).toEqual(['+a@3', 'listed 1/0', 'listed 1/0'])
})

test.each([
  ['a cut line', '{"type":"ADDED","object":{"metadata":{"na'],
  ['garbage', '<html>\n'],
  ['half an event', `${JSON.stringify({ type: 'ADDED', object: { metadata: {} } })}\n`],
])('%s in a watch does no harm: it resumes where it was', async (_, text) => {
  const { recorder, watch, lists } = await follow({
    lists: [listOf(1)],
    watches: [endedWatch(line('ADDED', rule('a', 2)), text), watchOf(line('ADDED', rule('b', 3)))],
  })
  await recorder.said('+b@3')
  expect((await watch(2)).query.get('resourceVersion')).toBe('2')
  expect(lists()).toHaveLength(1)
})

test('a reset in the middle of a watch resumes it', async () => {
  const { recorder, watch } = await follow({
    lists: [listOf(1)],
    watches: [
      async (call) => {
        await watchOf(line('ADDED', rule('a', 2)))(call)
        await recorderReady
        call.answer.socket?.resetAndDestroy()
      },
      watchOf(line('ADDED', rule('b', 3))),
    ],
  })
  await recorder.said('+a@2')
  resume()
  await recorder.said('+b@3')
  expect((await watch(2)).query.get('resourceVersion')).toBe('2')
  expect(recorder.lines).toContain('failing Unreachable')
  expect(recorder.lines).toContain('works')
})
const { promise: recorderReady, resolve: resume } = Promise.withResolvers<void>()

test.each([
  ['500', refusal(500, status(500, 'InternalError'))],
  ['403', refusal(403, status(403, 'Forbidden'))],
  ['404', ({ answer }: Parameters<typeof silent>[0]) => void answer.writeHead(404).end('404')],
  ['an empty answer', ({ answer }: Parameters<typeof silent>[0]) => void answer.end('{}')],
])('a relist that fails with %s takes nothing away', async (_, failure) => {
  const { follow: it, recorder } = await follow({
    lists: [listOf(1, rule('a', 1)), failure, failure, listOf(9, rule('a', 1))],
    watches: [endedWatch(bookmark(2)), refusal(410, status(410, 'Expired')), silent],
  })
  await recorder.said('listed 1/0', 2)
  expect([...it.objects.keys()]).toEqual(['n/a'])
  expect(recorder.lines.map((one) => one.replace(/failing .*/, 'failing'))).toEqual([
    '+a@1',
    'listed 1/0',
    'failing',
    'failing',
    'works',
    'listed 1/0',
  ])
})

test('retries begin at once, five in the first second at most, and slow down to 30 s', async () => {
  for (const chance of [0, 0.5, 0.999]) {
    const clock = new TestClock()
    const starts: number[] = []
    const { recorder } = await follow(
      {
        lists: [
          (call) => {
            starts.push(clock.now())
            return refusal(500, status(500))(call)
          },
        ],
        watches: [silent],
      },
      { clock, random: () => chance },
    )
    await recorder.said('failing 500', 14)
    const [began = 0] = starts
    expect(clock.pauses[0]).toBeLessThanOrEqual(100)
    expect(starts.filter((at) => at < began + 1000).length).toBeLessThanOrEqual(5)
    expect(Math.max(...clock.pauses)).toBeLessThanOrEqual(30_000)
    if (chance > 0.9) expect(clock.pauses.at(-1)).toBeGreaterThan(29_000)
  }
})

const reset: Step = ({ answer }) => void answer.socket?.resetAndDestroy()
const html: Step = ({ answer }) => void answer.writeHead(503).end('<html>')
const afterHalfOf =
  (text: string): Step =>
  ({ answer }) => {
    answer.writeHead(200)
    answer.write(text, () => answer.socket?.resetAndDestroy())
  }
const HALF = '{"type":"ADDED","object":{"metadata":{"na'

test.each<[string, { list: Step } | { watch: Step }]>([
  ['lists answered by 500', { list: refusal(500, status(500)) }],
  ['lists answered by 503 in HTML', { list: html }],
  ['lists answered by 429', { list: refusal(429, status(429, 'TooManyRequests')) }],
  ['lists answered by 403', { list: refusal(403, status(403, 'Forbidden')) }],
  ['lists cut off before an answer', { list: reset }],
  ['lists cut off in their middle', { list: afterHalfOf('{"kind":"NetworkRuleList"') }],
  ['lists that are none', { list: refusal(200, {}) }],
  ['lists that expire between their pages', { list: expiringPages }],
  ['watches answered by 500', { watch: refusal(500, status(500)) }],
  ['watches answered by 503 in HTML', { watch: html }],
  ['watches answered by 429', { watch: refusal(429, status(429, 'TooManyRequests')) }],
  ['watches answered by 410', { watch: refusal(410, status(410, 'Expired')) }],
  ['watches that tell 410', { watch: endedWatch(line('ERROR', status(410, 'Expired'))) }],
  ['watches that tell 500', { watch: endedWatch(line('ERROR', status(500))) }],
  ['watches cut off before an answer', { watch: reset }],
  ['watches cut off in the middle of an event', { watch: afterHalfOf(HALF) }],
  ['watches that end in the middle of a line', { watch: endedWatch(HALF) }],
  ['watches that tell garbage', { watch: endedWatch('<html>\n') }],
  ['watches that end at once', { watch: endedWatch() }],
])('of %s at most five begin in the first second, and it recovers within 30 s', async (_, bad) => {
  for (const chance of [0, 0.999]) {
    const clock = new TestClock()
    const starts: number[] = []
    /** The first failure came 20 s ago. */
    const isOver = () => clock.now() > (failures[0] ?? Number.POSITIVE_INFINITY) + 20_000
    const failures: number[] = []
    const played =
      (step: Step | undefined, otherwise: Step): Step =>
      (call) => {
        if (!call.query.has('continue')) starts.push(clock.now())
        if (step === undefined || isOver()) return otherwise(call)
        failures.push(clock.now())
        return step(call)
      }
    const { recorder } = await follow(
      {
        lists: [played('list' in bad ? bad.list : undefined, listOf(1))],
        watches: [
          played('watch' in bad ? bad.watch : undefined, watchOf(line('ADDED', rule('z', 99)))),
        ],
      },
      { clock, random: () => chance },
    )
    await recorder.said('+z@99')
    const [began = 0] = failures
    const inFirstSecond = starts.filter((at) => at >= began && at < began + 1_000)
    expect(inFirstSecond.length).toBeLessThanOrEqual(5)
    expect(clock.now()).toBeLessThan(began + 20_000 + 30_000)
  }
})

function expiringPages(call: Parameters<Step>[0]): void {
  if (call.query.has('continue')) json(call.answer, 410, status(410, 'Expired'))
  else {
    const metadata = { resourceVersion: '1', continue: 'more' }
    json(call.answer, 200, { kind: 'NetworkRuleList', metadata, items: [rule('a', 1)] })
  }
}

test('a server that says when to come back is not asked before', async () => {
  const tooMany = status(429, 'TooManyRequests', 'storage is (re)initializing', {
    retryAfterSeconds: 7,
  })
  const { clock, recorder } = await follow({
    lists: [refusal(429, tooMany), refusal(503, {}, { 'retry-after': '11' }), listOf(1)],
    watches: [endedWatch(line('ERROR', tooMany)), silent],
  })
  await recorder.said('works', 2)
  const long = clock.pauses.filter((ms) => ms >= 2_000)
  expect(long).toHaveLength(3)
  expect(long[0]).toBeGreaterThanOrEqual(7_000)
  expect(long[1]).toBeGreaterThanOrEqual(11_000)
  expect(long[2]).toBeGreaterThanOrEqual(7_000)
  expect(recorder.lines).toEqual([
    'failing 429',
    'failing 503',
    'works',
    'listed 0/0',
    'failing 429',
    'works',
  ])
})

test('watches that end at once become neither a storm nor a standstill', async () => {
  const { clock, watch } = await follow({ lists: [listOf(1)], watches: [endedWatch()] })
  const began = clock.now()
  await watch(20)
  expect(clock.now() - began).toBeGreaterThan(15_000)
  expect(Math.max(...clock.pauses)).toBeLessThanOrEqual(2_000)
})

test('a watch that told something before it ended is resumed almost at once', async () => {
  const { clock, watch } = await follow({
    lists: [listOf(1)],
    watches: [endedWatch(), endedWatch(), endedWatch(line('ADDED', rule('a', 2))), silent],
  })
  await watch(4)
  expect(clock.pauses.at(-1)).toBeLessThanOrEqual(100)
})

test('another object by the same name is told as removed, then added', async () => {
  const { follow: it, recorder } = await follow({
    lists: [listOf(1, rule('a', 1, 'first')), listOf(20, rule('a', 15, 'third'))],
    watches: [
      endedWatch(line('MODIFIED', rule('a', 3, 'second'))),
      refusal(410, status(410, 'Expired')),
      silent,
    ],
  })
  await recorder.said('listed 1/0', 2)
  expect(recorder.lines).toEqual(['+a@1', 'listed 1/0', '-a', '+a@3', '-a', '+a@15', 'listed 1/0'])
  expect(it.objects.get('n/a')?.metadata.uid).toBe('third')
})

test('vanished objects stay while the handler does not accept it, and go when it does', async () => {
  const recorder = new Recorder()
  recorder.accept = () => false
  const {
    follow: it,
    clock,
    list,
    watch,
  } = await follow(
    {
      lists: [listOf(1, rule('a', 1), rule('b', 1)), listOf(20, rule('c', 15))],
      watches: [endedWatch(bookmark(2)), refusal(410, status(410, 'Expired')), silent],
    },
    { recorder },
  )
  await list(2)
  await recorder.said('listed 3/0')
  expect([...it.objects.keys()]).toEqual(['n/a', 'n/b', 'n/c'])
  recorder.accept = () => true
  const call = await watch(3)
  // Asked again after half a minute, not after ten.
  expect(call.query.get('timeoutSeconds')).toBe('30')
  clock.advance(30_000)
  call.answer.end()
  await recorder.said('listed 1/2')
  expect([...it.objects.keys()]).toEqual(['n/c'])
  expect(recorder.lines.slice(3)).toEqual([
    'accept 2/2?',
    '+c@15',
    'listed 3/0',
    'accept 3/2?',
    '-a',
    '-b',
    'listed 1/2',
  ])
})

/** Throws on what it is told of an object by this name, so many times. */
class Clumsy extends Recorder {
  mistakes: number
  readonly #name: string

  constructor(name: string, mistakes: number) {
    super()
    this.#name = name
    this.mistakes = mistakes
  }

  override changed(...[object, previous]: Parameters<Recorder['changed']>): void {
    if ((object ?? previous)?.metadata.name === this.#name && this.mistakes > 0) {
      this.mistakes -= 1
      throw new Error('mistake')
    }
    super.changed(object, previous)
  }
}
const about = (object: string | undefined) => [
  new Error('mistake'),
  { cluster: 'k', kind: 'networkrules', object },
]

test('an object that its handler throws on is reported by name and told again alone, until it is taken', async () => {
  const recorder = new Clumsy('b', 3)
  const {
    handlerErrors,
    clock,
    follow: it,
  } = await follow(
    {
      lists: [listOf(1, rule('a', 1), rule('b', 1))],
      watches: [watchOf(line('ADDED', rule('c', 2)))],
    },
    { recorder, random: () => 0.999 },
  )
  await recorder.said('+b@1')
  await recorder.said('+c@2')
  expect(handlerErrors).toEqual([about('n/b'), about('n/b'), about('n/b')])
  const others = recorder.lines.filter((one) => one !== '+b@1')
  expect(others).toEqual(['+a@1', 'listed 2/0', '+c@2'])
  expect([...it.objects.keys()]).toEqual(['n/a', 'n/b', 'n/c'])
  // Ever later: at once, then within half a second, then within one.
  const pauses = clock.pauses.slice(0, 3).toSorted((one, other) => one - other)
  expect(pauses[0]).toBeLessThanOrEqual(100)
  expect(pauses[2]).toBeGreaterThan(900)
})

test('what was not taken is told as it is by then: changed, replaced, or gone', async () => {
  const clock = new TestClock(0)
  const recorder = new Clumsy('b', 1)
  const { watch, handlerErrors } = await follow(
    { lists: [listOf(1, rule('b', 1))], watches: [silent] },
    { recorder, clock },
  )
  const { answer } = await watch(1)
  answer.write(line('MODIFIED', rule('b', 2)))
  await recorder.said('+b@2')
  recorder.mistakes = 1
  answer.write(line('MODIFIED', rule('b', 3)))
  await expect.poll(() => handlerErrors).toHaveLength(2)
  answer.write(line('ADDED', rule('b', 5, 'another')))
  await recorder.said('+b@5')
  recorder.mistakes = 1
  answer.write(line('MODIFIED', rule('b', 6, 'another')))
  await expect.poll(() => handlerErrors).toHaveLength(3)
  answer.write(line('DELETED', rule('b', 7, 'another')))
  await recorder.said('-b', 2)
  expect(recorder.lines).toEqual(['listed 1/0', '+b@2', '-b', '+b@5', '-b'])
  clock.advance(60_000)
  await new Promise(setImmediate)
  expect(recorder.lines).toHaveLength(5)
})

test('a handler that throws on a list or a failure is reported, and the follow goes on', async () => {
  const recorder = new Recorder()
  for (const told of ['listed', 'failing'] as const)
    vi.spyOn(recorder, told).mockImplementationOnce(() => {
      throw new Error('mistake')
    })
  const { handlerErrors } = await follow(
    { lists: [refusal(500, {}), listOf(1)], watches: [watchOf(line('ADDED', rule('c', 2)))] },
    { recorder },
  )
  await recorder.said('+c@2')
  expect(handlerErrors).toEqual([about(undefined), about(undefined)])
})

test('a closed follow says no more, ends its watch, and rejects who still waits', async () => {
  const {
    follow: it,
    watch,
    recorder,
    server,
  } = await follow({
    lists: [listOf(1)],
    watches: [silent],
  })
  const call = await watch(1)
  await it.close()
  await call.gone
  const told = recorder.lines.length
  it.learn(rule('a', 99))
  expect(it.objects.size).toBe(0)
  expect(recorder.lines).toHaveLength(told)
  expect(server.calls).toHaveLength(2)
  const never = await follow({ lists: [() => undefined], watches: [silent] })
  await never.list(1)
  await never.follow.close()
  await expect(never.follow.synced).rejects.toBeInstanceOf(Unreachable)
})

test('a watch that is not answered at all is given up after the deadline', async () => {
  const { watch, recorder } = await follow(
    { lists: [listOf(1)], watches: [() => undefined, silent] },
    { deadlineMs: 100 },
  )
  await (await watch(1)).gone
  await watch(2)
  await recorder.said('works')
  expect(recorder.lines).toEqual(['listed 0/0', 'failing Unreachable', 'works'])
})

test('a refusal of a watch whose text never ends is given up after the deadline', async () => {
  const { watch, recorder } = await follow(
    {
      lists: [listOf(1)],
      watches: [({ answer }) => void answer.writeHead(500).write('{'), silent],
    },
    { deadlineMs: 100 },
  )
  await (await watch(1)).gone
  await recorder.said('works')
  expect(recorder.lines).toEqual(['listed 0/0', 'failing Unreachable', 'works'])
})

/** Sockets of this process, those of servers that run in it included. */
const socketsHere = () =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'TCPSocketWrap').length

test('two hundred watches that end badly leave no socket behind, on either side', async () => {
  const before = socketsHere()
  const ends: Step[] = [
    endedWatch('garbage\n'),
    endedWatch('{"type":"ADDED","object":{"meta'),
    endedWatch(line('ERROR', status(410, 'Expired'))),
    refusal(410, status(410, 'Expired')),
    refusal(500, status(500)),
    ({ answer }) => void answer.writeHead(503).end('<html>'),
    ({ answer }) => void answer.socket?.resetAndDestroy(),
    ({ answer }) => {
      answer.writeHead(200).flushHeaders()
      answer.socket?.resetAndDestroy()
    },
  ]
  const { watch, server, cluster } = await follow({
    lists: [listOf(1)],
    watches: [...Array.from({ length: 200 / ends.length }, () => ends).flat(), silent],
  })
  await watch(201)
  expect(server.accepted).toBeGreaterThan(50)
  await expect.poll(() => server.sockets.size).toBeLessThanOrEqual(2)
  await expect.poll(() => socketsHere() - before).toBeLessThanOrEqual(2 * 2)
  await cluster.close()
  await expect.poll(() => server.sockets.size).toBe(0)
  await expect.poll(() => socketsHere()).toBeLessThanOrEqual(before)
})
