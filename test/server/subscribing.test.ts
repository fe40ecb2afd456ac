import { setImmediate as turn } from 'node:timers/promises'
import { buildSchema, type ExecutionResult, parse } from 'graphql'
import { isAsyncIterable } from 'graphql-yoga'
import { beforeEach, expect, test } from 'vitest'
import { UsedPermissions } from '../../src/server/rights.ts'
import { subscribe } from '../../src/server/subscribing.ts'

const schema = buildSchema(
  'type Query { one: Int } type Subscription { ticks(from: Int, after: Int): Int }',
)
const DOCUMENT = parse('subscription ($from: Int) { ticks(from: $from) }')
const EVENTS = [{ tick: 1 }, { tick: 2 }]
const TWICE = EVENTS.length
let executions = 0

const ticks = schema.getSubscriptionType()?.getFields()['ticks']
if (ticks === undefined) throw new Error('the schema has no ticks')
ticks.subscribe = async function* () {
  yield* EVENTS
}

beforeEach(() => {
  executions = 0
  ticks.resolve = ({ tick }: { tick: number }) => {
    executions += 1
    return tick
  }
  EVENTS.splice(0, TWICE, { tick: 1 }, { tick: 2 })
})

async function watch({
  project = 'alpha',
  permissions = new UsedPermissions(['a', 'b']),
  document = DOCUMENT,
  variables = {},
}: {
  project?: string
  permissions?: UsedPermissions
  document?: typeof DOCUMENT
  variables?: Record<string, unknown>
} = {}): Promise<ExecutionResult[]> {
  const stream = await subscribe({
    schema,
    document,
    variableValues: variables,
    contextValue: { project, permissions },
  })
  if (!isAsyncIterable(stream)) throw new Error(JSON.stringify(stream))
  const results: ExecutionResult[] = []
  for await (const result of stream) results.push(result)
  return results
}

test('many who watch the same are answered by one execution of each event', async () => {
  const all = await Promise.all(Array.from({ length: 20 }, () => watch()))
  expect(executions).toBe(TWICE)
  for (const results of all) {
    expect(results).toEqual([{ data: { ticks: 1 } }, { data: { ticks: 2 } }])
  }
})

const resumed = (from: string) => ({
  document: parse(`subscription ($after: Int) { ticks(after: $after, from: ${from}) }`),
})

test.each([
  ['of those who watch the same, wherever they go on from', resumed('1'), 1],
  ['of those who ask by it for something else too', resumed('$after'), 2],
])('the cursor %s, tells answers apart only where it has to', async (_, asked, ways) => {
  await Promise.all([1, 2].map((after) => watch({ ...asked, variables: { after } })))
  expect(executions).toBe(ways * TWICE)
})

test.each([
  ['another project', { project: 'beta' }],
  ['fewer rights', { permissions: new UsedPermissions(['a']) }],
  ['other variables', { variables: { from: 1 } }],
  ['another document', { document: parse('subscription { again: ticks }') }],
])('whoever watches with %s has an execution of their own', async (_, other) => {
  await Promise.all([watch(), watch(other), watch()])
  expect(executions).toBe(2 * TWICE)
})

test('what was made with rights that came meanwhile is shown to nobody who lacks them', async () => {
  const { promise: granted, resolve: grant } = Promise.withResolvers<void>()
  ticks.resolve = async ({ tick }: { tick: number }, _args, { permissions }) => {
    await granted
    return permissions.has('b') ? tick : null
  }
  const growing = new UsedPermissions(['a'])
  const answers = Promise.all([
    watch({ permissions: growing }),
    watch({ permissions: new UsedPermissions(['a']) }),
  ])
  // Both have joined the one execution, which waits.
  await turn()
  growing.become(new Set(['a', 'b']))
  grant()
  const [grown, other] = await answers
  expect(grown).toEqual([{ data: { ticks: 1 } }, { data: { ticks: 2 } }])
  expect(other).toEqual([{ data: { ticks: null } }, { data: { ticks: null } }])
})
