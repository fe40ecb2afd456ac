import { buildSchema, type ExecutionResult, parse } from 'graphql'
import { isAsyncIterable } from 'graphql-yoga'
import { beforeEach, expect, test } from 'vitest'
import { subscribe } from '../../src/server/subscribing.ts'

const schema = buildSchema('type Query { one: Int } type Subscription { ticks(from: Int): Int }')
const DOCUMENT = parse('subscription ($from: Int) { ticks(from: $from) }')
const EVENTS = [{ tick: 1 }, { tick: 2 }]
const TWICE = EVENTS.length
let executions = 0

const ticks = schema.getSubscriptionType()?.getFields()['ticks']
if (ticks === undefined) throw new Error('the schema has no ticks')
ticks.subscribe = async function* () {
  yield* EVENTS
}
ticks.resolve = ({ tick }: { tick: number }) => {
  executions += 1
  return tick
}

beforeEach(() => {
  executions = 0
  EVENTS.splice(0, TWICE, { tick: 1 }, { tick: 2 })
})

async function watch({
  project = 'alpha',
  permissions = ['a', 'b'],
  document = DOCUMENT,
  variables = {},
}: {
  project?: string
  permissions?: string[]
  document?: typeof DOCUMENT
  variables?: Record<string, unknown>
} = {}): Promise<ExecutionResult[]> {
  const stream = await subscribe({
    schema,
    document,
    variableValues: variables,
    contextValue: { project, permissions: new Set(permissions) },
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

test.each([
  ['another project', { project: 'beta' }],
  ['fewer rights', { permissions: ['a'] }],
  ['other variables', { variables: { from: 1 } }],
  ['another document', { document: parse('subscription { again: ticks }') }],
])('whoever watches with %s has an execution of their own', async (_, other) => {
  await Promise.all([watch(), watch(other), watch()])
  expect(executions).toBe(2 * TWICE)
})
