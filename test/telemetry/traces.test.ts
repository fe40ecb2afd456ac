import { isSpanContextValid, trace } from '@opentelemetry/api'
import { afterEach, describe, expect, it, onTestFinished, test } from 'vitest'
import { beginAnswer, contextOf, endSpan, traceparentOf } from '../../src/telemetry/traces.ts'
import { createLoadBalancer, UPDATE } from '../api/operations.ts'
import { useInstallation } from '../support/installation.ts'
import { storeId } from '../workers/scene.ts'
import { type RecordedSpan, recordSpans } from './recorder.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const CALLER = '00f067aa0ba902b7'

afterEach(() => trace.disable())

describe('a traceparent', () => {
  test('is carried along where nothing records spans', () => {
    const span = beginAnswer('mutation', `00-${TRACE}-${CALLER}-01`, {})
    expect(traceparentOf(span)).toBe(`00-${TRACE}-${CALLER}-01`)
    endSpan(span)
  })

  test('that its sender does not record is not kept', () => {
    expect(traceparentOf(beginAnswer('mutation', `00-${TRACE}-${CALLER}-00`, {}))).toBeUndefined()
  })

  test.each([
    undefined,
    7,
    '',
    `00-${'0'.repeat(32)}-${CALLER}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `ff-${TRACE}-${CALLER}-01`,
    `00-${TRACE.toUpperCase()}-${CALLER}-01`,
    `00-${TRACE}-${CALLER}-01-more`,
    `00-${TRACE}-${CALLER}-1`,
  ])('that is none begins nothing: %s', (given) => {
    const known = trace.getSpanContext(contextOf(given))
    expect(known === undefined || isSpanContextValid(known)).toBe(true)
    expect(traceparentOf(beginAnswer('mutation', given, {}))).toBeUndefined()
  })
})

describe('a traced change', () => {
  const installation = useInstallation()

  /** As a client that traces sends it. */
  async function ask(query: string, input: object, traceparent?: string): Promise<Response> {
    return fetch(installation.api.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(traceparent && { traceparent }) },
      body: JSON.stringify({ query, variables: { input } }),
    })
  }

  it('is one trace from the client to the rules in each cluster', async () => {
    const { spans, end } = recordSpans()
    onTestFinished(end)
    const created = await ask(
      `mutation Make($input: CreateLoadBalancerInput!) {
         createLoadBalancer(input: $input) { ... on CreateLoadBalancerPayload { loadBalancer { id } } } }`,
      {
        name: 'traced',
        vpc: installation.vpc(),
        region: 'us-east-1',
        protocol: { tcp: { port: 7_001 } },
        backends: installation.addresses('us-east-1').map((address) => ({ address })),
      },
      `00-${TRACE}-${CALLER}-01`,
    )
    const body = (await created.json()) as {
      data: { createLoadBalancer: { loadBalancer: { id: string } } }
    }
    const { id } = body.data.createLoadBalancer.loadBalancer
    await installation.api.settled(id)
    const traced = spans.filter(({ traceId }) => traceId === TRACE)
    const mutation = only(traced, 'mutation Make')
    expect(mutation.parent).toBe(CALLER)
    expect(mutation.attributes).toMatchObject({
      'nlb.object.id': storeId(id),
      'nlb.project': 'demo',
      'nlb.request.id': created.headers.get('x-request-id'),
    })
    for (const cluster of ['us-east-1-a', 'us-east-1-b']) {
      const applied = traced.filter(
        ({ name, attributes }) =>
          name === 'apply load balancer' && attributes['nlb.cluster.name'] === cluster,
      )
      expect(applied.every(({ parent }) => parent === mutation.spanId)).toBe(true)
      const wrote = traced.filter(
        ({ name, parent }) =>
          name === 'apply networkrules' && applied.some(({ spanId }) => spanId === parent),
      )
      expect(wrote, cluster).toHaveLength(1)
    }
    expect(traced.every(({ ended }) => ended)).toBe(true)
  })

  it('is no part any more of what is done once it was applied', async () => {
    const made = await createLoadBalancer(installation, {
      name: 'twice',
      protocol: { tcp: { port: 7_002 } },
      backends: installation.addresses('us-east-1-a').map((address) => ({ address })),
    })
    await installation.api.settled(made.id)
    const { spans, end } = recordSpans()
    onTestFinished(end)
    const port = (number: number) => ({ id: made.id, protocol: { tcp: { port: number } } })
    await ask(UPDATE, port(7_003), `00-${TRACE}-${CALLER}-01`)
    await installation.api.settled(made.id)
    expect(await storedTraces(made.id)).toEqual([null])
    const before = spans.filter(({ traceId }) => traceId === TRACE).length
    expect(before).toBeGreaterThan(1)
    await ask(UPDATE, port(7_004))
    await installation.api.settled(made.id)
    expect(spans.filter(({ traceId }) => traceId === TRACE)).toHaveLength(before)
  })

  it('is stored for workers of another process, also where this one records nothing', async () => {
    const made = await createLoadBalancer(installation, {
      name: 'handed-on',
      protocol: { tcp: { port: 7_005 } },
      backends: installation.addresses('us-east-1-a').map((address) => ({ address })),
    })
    await installation.api.settled(made.id)
    await installation.workers.close()
    await ask(
      UPDATE,
      { id: made.id, protocol: { tcp: { port: 7_006 } } },
      `00-${TRACE}-${CALLER}-01`,
    )
    expect(await storedTraces(made.id)).toEqual([`00-${TRACE}-${CALLER}-01`])
    const { spans, end } = recordSpans()
    onTestFinished(end)
    await installation.restartWorkers()
    await installation.api.settled(made.id)
    const applied = spans.filter(({ traceId }) => traceId === TRACE)
    expect(applied[0]).toMatchObject({ name: 'apply load balancer', parent: CALLER })
  })

  async function storedTraces(id: string): Promise<(string | null)[]> {
    const rows = await installation.store.prisma.placement.findMany({
      where: { loadBalancerId: storeId(id) },
    })
    return rows.map((row) => row.trace)
  }
})

function only(spans: RecordedSpan[], name: string): RecordedSpan {
  const [first, ...more] = spans.filter((span) => span.name === name)
  if (first === undefined || more.length > 0) throw new Error(`${more.length + 1} × ${name}`)
  return first
}
