import { describe, expect, test } from 'vitest'
import { useInstallation } from '../support/installation.ts'
import { PATIENCE } from '../support/patience.ts'
import { document, fencesOf, operations } from './markdown.ts'

const installation = useInstallation()
const text = document('api.md')
const links = [...text.matchAll(/\]\(operations\/([\w-]+\.graphql)\)/g)].map(
  ([, name = '']) => name,
)
const variables = fencesOf(text).filter(({ language }) => language === 'json')

test('docs/api.md has ten things, each operation once, each with variables', () => {
  expect(text.match(/^### \d+\. /gm)).toHaveLength(10)
  expect(links.toSorted()).toEqual([...operations.keys()].toSorted())
  expect(variables).toHaveLength(links.length)
})

test('GraphiQL has the same operations with the same variables in its tabs', () => {
  const shown = links.map((file, index) => ({
    file,
    variables: JSON.parse(variables[index]?.text ?? ''),
  }))
  expect(JSON.parse(document('operations/examples.json'))).toEqual(shown)
})

describe('in the order of the document', () => {
  /** What stands for what a reader gets to know on the way. */
  const known = new Map<string, string>()

  function filled(json: string): Record<string, unknown> {
    return JSON.parse(
      json.replace(/<([^>]+)>/g, (_, name: string) => {
        const value = known.get(name)
        if (value === undefined) throw new Error(`nobody knows the ${name} yet`)
        return value
      }),
    )
  }

  test.each(links.map((name, index) => [name, variables[index]?.text ?? '']))(
    '%s works',
    async (name, json) => {
      const operation = operations.get(name) ?? ''
      const given = filled(json)
      if (operation.includes('subscription ')) {
        const events = await streamed(operation, given)
        expect(JSON.stringify(events)).toContain(name.startsWith('wait') ? 'SETTLED' : 'SYNCED')
        return
      }
      const { data, errors } = await installation.api.ask(operation, given)
      expect(errors).toBeUndefined()
      const answer = data?.[Object.keys(data)[0] ?? '']
      expect(JSON.stringify(answer)).not.toMatch(/"code":"[A-Z_]+","message".*"hint"|"issues"/)
      learn(name, answer)
    },
  )

  async function streamed(operation: string, given: Record<string, unknown>): Promise<unknown[]> {
    const events: unknown[] = []
    const signal = AbortSignal.timeout(PATIENCE)
    const options = { over: 'sse' as const, signal }
    for await (const event of installation.api.stream<Record<string, unknown>>(
      operation,
      given,
      options,
    )) {
      events.push(event)
      if (event['type'] === 'SYNCED' || event['outcome'] === 'SETTLED') break
    }
    return events
  }

  function learn(name: string, answer: unknown): void {
    const found = answer as {
      nodes?: { id: string; endpoints: { nodes: { address: string }[] } }[]
      loadBalancer?: { id: string; addresses?: { family: string }[] }
      reservation?: { id: string }
      totalCount?: number
      plan?: { flows: { movedShare: number }[] }
    }
    if (name === 'find-addresses.graphql') {
      const [vpc] = found.nodes ?? []
      const addresses = vpc?.endpoints.nodes.map(({ address }) => address) ?? []
      expect(addresses.length).toBeGreaterThan(2)
      known.set('id of the VPC', vpc?.id ?? '')
      const names = ['address', 'another address', 'third address']
      for (const [index, one] of names.entries()) known.set(one, addresses[index] ?? '')
    }
    if (name === 'create-load-balancer.graphql') {
      known.set('id of the load balancer', found.loadBalancer?.id ?? '')
    }
    if (name === 'list-load-balancers.graphql') expect(found.totalCount).toBe(1)
    if (name === 'plan-a-change.graphql') {
      expect(found.plan?.flows[0]?.movedShare).toBeGreaterThan(0)
    }
    if (name === 'reserve-ipv4.graphql') {
      known.set('id of the reservation', found.reservation?.id ?? '')
    }
    if (name === 'bind-ipv4.graphql') {
      expect(found.loadBalancer?.addresses).toContainEqual(
        expect.objectContaining({ family: 'IPV4' }),
      )
    }
    if (name === 'history.graphql') expect(found.nodes?.length).toBeGreaterThan(2)
  }
})
