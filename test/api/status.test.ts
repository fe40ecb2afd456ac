import { describe, expect, it } from 'vitest'
import { NETWORK_RULES, type NetworkRule } from '../../src/rules/objects.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import { PATIENCE } from '../support/patience.ts'
import { accepted, createLoadBalancer, type LoadBalancer, SHOW, UPDATE } from './operations.ts'

const installation = useInstallation()
const east = (letter: string) => installation.fleet.get(`us-east-1-${letter}`)
const isOf = (address: string) => (rule: NetworkRule) => rule.spec.vipAddresses.includes(address)
let port = 6_000

type Watched = {
  type: string
  cursor: string
  loadBalancer: {
    generation: number
    status: { phase: string; observedGeneration: number; provisioned: { status: string } }
  } | null
}
const WATCH = `subscription ($id: ID!, $after: LogCursor) { loadBalancer(id: $id, after: $after) { type cursor
  loadBalancer { generation status { phase observedGeneration provisioned { status } } } } }`
const SETTLED = `subscription ($id: ID!, $generation: Int, $timeoutSeconds: Int) {
  loadBalancerSettled(id: $id, generation: $generation, timeoutSeconds: $timeoutSeconds) {
    outcome generation unmet { type status reason } } }`

function create(clusters: string[], more: object = {}): Promise<LoadBalancer> {
  port += 1
  return createLoadBalancer(installation, {
    name: `status-${port}`,
    protocol: { tcp: { port } },
    backends: clusters.flatMap((cluster) =>
      installation.addresses(cluster).map((address) => ({ address })),
    ),
    ...more,
  })
}

describe.each(['sse', 'ws'] as const)('a subscription over %s', (over) => {
  it('begins with what is and SYNCED, then tells every step up to ACTIVE', async () => {
    const hold = east('a').dataPlane
    hold.pause()
    const made = await create(['us-east-1-a'])
    const seen: Watched[] = []
    const signal = AbortSignal.timeout(PATIENCE)
    for await (const event of installation.api.stream<Watched>(
      WATCH,
      { id: made.id },
      { over, signal },
    )) {
      seen.push(event)
      if (event.type === 'SYNCED') hold.resume()
      if (event.loadBalancer?.status.phase === 'ACTIVE') break
    }
    expect(seen[0]).toMatchObject({
      type: 'ADDED',
      loadBalancer: { generation: 1, status: { phase: 'PENDING', observedGeneration: 0 } },
    })
    const synced = seen.findIndex(({ type }) => type === 'SYNCED')
    expect(seen[synced]).toMatchObject({ loadBalancer: null })
    expect(seen.slice(synced + 1).map(({ type }) => type)).toEqual(
      seen.slice(synced + 1).map(() => 'MODIFIED'),
    )
    expect(seen.at(-1)).toMatchObject({
      loadBalancer: { status: { observedGeneration: 1, provisioned: { status: 'TRUE' } } },
    })
  })

  it('goes on from a cursor with what came since', async () => {
    const made = await create(['us-east-1-b'])
    await installation.api.settled(made.id)
    const cursor = await installation.api.get<string>('{ cursor }')
    await accepted(installation.api, UPDATE, { id: made.id, displayName: 'since' })
    const signal = AbortSignal.timeout(PATIENCE)
    const variables = { id: made.id, after: cursor }
    for await (const event of installation.api.stream<Watched>(WATCH, variables, {
      over,
      signal,
    })) {
      if (event.loadBalancer === null) continue
      expect(event).toMatchObject({ loadBalancer: { generation: 2 } })
      return
    }
    throw new Error('nothing came')
  })
})

describe('a change', () => {
  it('is in effect although the data plane never renews Accepted', async () => {
    const made = await create(['us-east-1-a'])
    await installation.api.settled(made.id)
    port += 1
    await accepted(installation.api, UPDATE, { id: made.id, protocol: { tcp: { port } } })
    await installation.api.settled(made.id)
    const rules = await rulesIn(east('a'))
    const rule = rules.find(isOf(made.addresses[0]?.address ?? ''))
    expect(rule?.metadata.generation).toBe(2)
    const conditions = rule?.status?.conditions
    expect(conditions?.find(({ type }) => type === 'Accepted')).toMatchObject({
      status: 'True',
      observedGeneration: 1,
    })
  })

  it('is settled only when every cluster has it in effect, and says what is missing until then', async () => {
    const made = await create(['us-east-1-a', 'us-east-1-b'])
    await installation.api.settled(made.id)
    const slow = east('b').dataPlane
    slow.pause()
    port += 1
    await accepted(installation.api, UPDATE, { id: made.id, protocol: { tcp: { port } } })
    const vip = made.addresses[0]?.address ?? ''
    await rulesUntil(east('a'), (rules) =>
      rules.some((one) => isOf(vip)(one) && one.spec.port === port),
    )
    const outcomes: string[] = []
    const signal = AbortSignal.timeout(PATIENCE)
    const variables = { id: made.id }
    for await (const event of installation.api.stream<{
      outcome: string
      unmet: { type: string }[]
    }>(SETTLED, variables, { over: 'ws', signal })) {
      outcomes.push(event.outcome)
      if (event.outcome !== 'WAITING') break
      // From then on it may settle between what is told and what is read.
      if (outcomes.length > 1) continue
      expect(event.unmet).toContainEqual(expect.objectContaining({ type: 'Provisioned' }))
      const now = await installation.api.get<LoadBalancer>(SHOW, variables)
      expect(now.status).toMatchObject({ observedGeneration: 1 })
      slow.resume()
    }
    expect(outcomes[0]).toBe('WAITING')
    expect(outcomes.at(-1)).toBe('SETTLED')
  })

  it('that is overtaken is SUPERSEDED, and one that does not come in time TIMED_OUT', async () => {
    const { dataPlane } = east('a')
    dataPlane.pause()
    const made = await create(['us-east-1-a'])
    const last = async (variables: object) => {
      let outcome = ''
      const signal = AbortSignal.timeout(PATIENCE)
      const options = { over: 'sse' as const, signal }
      for await (const event of installation.api.stream<{ outcome: string }>(
        SETTLED,
        { id: made.id, ...variables },
        options,
      )) {
        outcome = event.outcome
      }
      return outcome
    }
    expect(await last({ timeoutSeconds: 1 })).toBe('TIMED_OUT')
    await accepted(installation.api, UPDATE, { id: made.id, displayName: 'newer' })
    expect(await last({ generation: 1 })).toBe('SUPERSEDED')
    dataPlane.resume()
    expect(await last({})).toBe('SETTLED')
  })

  it('is put right and told when a rule is deleted by hand while the workers are away', async () => {
    const made = await create(['us-east-1-a'])
    await installation.api.settled(made.id)
    const vip = made.addresses[0]?.address ?? ''
    await installation.workers.close()
    const rule = (await rulesIn(east('a'))).find(isOf(vip))
    const { name = '', namespace = '' } = rule?.metadata ?? {}
    await east('a').cluster.remove(NETWORK_RULES, { name, namespace })
    await rulesUntil(east('a'), (rules) => !rules.some(isOf(vip)))
    await installation.restartWorkers()
    await rulesUntil(east('a'), (rules) => rules.some(isOf(vip)))
    await installation.api.settled(made.id)
  })
})

describe('an endpoint', () => {
  it('that appears later resolves its backend by itself', async () => {
    const made = await create([], { backends: [{ address: 'fd20:1::77' }] })
    expect(made.backends.nodes[0]?.resolved).toMatchObject({ reason: 'AddressUnknown' })
    const { writer } = east('a')
    const { seedAttachment } = await import('../../dev/fleet/seed.ts')
    const [like] = east('a').endpoints.filter(({ project }) => project === 'demo')
    if (like === undefined) throw new Error('the fleet has no endpoint')
    await seedAttachment(writer, {
      ...like,
      attachment: { ...like.attachment, name: 'later' },
      attachmentId: 'later',
      node: 'later',
      address: 'fd20:1::77',
      cidr: 'fd20:1::77/128',
    })
    await rulesUntil(east('a'), (rules) => rules.some(isOf(made.addresses[0]?.address ?? '')))
    await installation.api.settled(made.id)
    const now = await installation.api.get<LoadBalancer>(SHOW, { id: made.id })
    expect(now).toMatchObject({
      status: { phase: 'ACTIVE' },
      backends: { nodes: [{ serving: true, resolved: { status: 'TRUE' } }] },
    })
  })
})
