import { describe, expect, it } from 'vitest'
import type { NetworkRule } from '../../src/rules/objects.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { PATIENCE } from '../support/patience.ts'
import {
  ADD_BACKENDS,
  accepted,
  createLoadBalancer,
  DELETE,
  type LoadBalancer,
  REMOVE_BACKENDS,
  type Refusal,
  SET_BACKENDS,
  SHOW,
  UPDATE,
  UPDATE_BACKENDS,
} from './operations.ts'

const installation = useInstallation()
const isOf = (address: string) => (rule: NetworkRule) => rule.spec.vipAddresses.includes(address)
let port = 7_000

async function create(input: object = {}): Promise<LoadBalancer> {
  port += 1
  const [address] = installation.addresses('us-east-1-a')
  const made = await createLoadBalancer(installation, {
    name: `changed-${port}`,
    protocol: { tcp: { port } },
    backends: [{ address }],
    ...input,
  })
  await installation.api.settled(made.id)
  return made
}

const show = (id: string) => installation.api.get<LoadBalancer | null>(SHOW, { id })
const refusal = (operation: string, input: object) =>
  installation.api.get<Refusal>(operation, { input })

describe('an update', () => {
  it('changes name, port, affinity and backends in place', async () => {
    const made = await create()
    port += 1
    const changes = {
      name: `renamed-${port}`,
      protocol: { tcp: { port } },
      sessionAffinity: 'CLIENT_IP',
    }
    const { loadBalancer } = await accepted(installation.api, UPDATE, { id: made.id, ...changes })
    expect(loadBalancer).toMatchObject({
      id: made.id,
      name: changes.name,
      generation: 2,
      ports: [{ from: port, to: port }],
      sessionAffinity: 'CLIENT_IP',
      addresses: [{ address: made.addresses[0]?.address }],
      status: { observedGeneration: 1 },
    })
    await installation.api.settled(made.id)
    const now = await show(made.id)
    expect(now?.status).toMatchObject({ observedGeneration: 2, ready: { status: 'TRUE' } })
    expect(now?.status.conditions).toContainEqual(
      expect.objectContaining({
        type: 'AffinityHonoured',
        status: 'FALSE',
        reason: 'AffinityNotSupported',
      }),
    )
  })

  it('that touches no rule is in effect at once', async () => {
    const made = await create()
    const input = { id: made.id, displayName: 'Shop', labels: [{ key: 'team', value: 'a' }] }
    const { loadBalancer } = await accepted(installation.api, UPDATE, input)
    expect(loadBalancer).toMatchObject({
      generation: 2,
      displayName: 'Shop',
      status: { observedGeneration: 2, phase: 'ACTIVE' },
    })
  })

  it('that changes nothing makes no generation and no event', async () => {
    const made = await create()
    const before = await installation.store.prisma.event.count()
    const input = { id: made.id, name: made.name, protocol: { tcp: { port: made.ports[0]?.from } } }
    const { loadBalancer } = await accepted(installation.api, UPDATE, input)
    expect(loadBalancer.generation).toBe(1)
    expect(await installation.store.prisma.event.count()).toBe(before)
  })

  it('with an older generation than the present one is refused', async () => {
    const made = await create()
    await accepted(installation.api, UPDATE, { id: made.id, displayName: 'first' })
    const input = { id: made.id, displayName: 'second', expectedGeneration: 1 }
    expect(await refusal(UPDATE, input)).toMatchObject({ __typename: 'GenerationConflict' })
  })

  it('of the same name as another one is refused', async () => {
    const [one, two] = [await create(), await create()]
    expect(await refusal(UPDATE, { id: one.id, name: two.name })).toMatchObject({
      __typename: 'NameTaken',
    })
  })
})

describe('backends', () => {
  it('that stay keep their id when the set is made anew', async () => {
    const made = await create()
    const [first] = made.backends.nodes
    const [, second] = installation.addresses('us-east-1-a')
    const backends = [{ address: second }, { address: first?.address }]
    await accepted(installation.api, SET_BACKENDS, { loadBalancer: made.id, backends })
    const now = await show(made.id)
    expect(now?.backends.nodes.map(({ address }) => address).sort()).toEqual(
      [first?.address, second].sort(),
    )
    expect(now?.backends.nodes.find(({ address }) => address === first?.address)?.id).toBe(
      first?.id,
    )
  })

  it('that are there already are left as they are by adding, and absent ones by removing', async () => {
    const made = await create()
    const [first] = made.backends.nodes
    const adding = { loadBalancer: made.id, backends: [{ address: first?.address }] }
    const added = await accepted<{ loadBalancer: LoadBalancer; backends: { id: string }[] }>(
      installation.api,
      ADD_BACKENDS,
      adding,
    )
    expect(added.loadBalancer.generation).toBe(1)
    expect(added.backends).toEqual([{ id: first?.id, address: first?.address }])
    const removing = { loadBalancer: made.id, addresses: ['fd20:1::abc'] }
    const removed = await accepted(installation.api, REMOVE_BACKENDS, removing)
    expect(removed.loadBalancer.generation).toBe(1)
  })

  it('added by ten callers at once are all there', async () => {
    const made = await create()
    await Promise.all(
      Array.from({ length: 10 }, (_, index) =>
        accepted(installation.api, ADD_BACKENDS, {
          loadBalancer: made.id,
          backends: [{ address: `fd20:1::a${index}` }],
        }),
      ),
    )
    const now = await show(made.id)
    expect(now?.backends.totalCount).toBe(11)
    expect(now?.generation).toBe(11)
  })

  it('that are disabled leave the rule, and with the last of them the rule goes', async () => {
    const made = await create()
    const [backend] = made.backends.nodes
    const vip = made.addresses[0]?.address ?? ''
    const change = { address: backend?.address, adminState: 'DISABLED' }
    await accepted(installation.api, UPDATE_BACKENDS, { loadBalancer: made.id, backends: [change] })
    await installation.api.settled(made.id)
    expect((await rulesIn(installation.fleet.get('us-east-1-a'))).filter(isOf(vip))).toEqual([])
    expect((await show(made.id))?.status.phase).toBe('IDLE')
  })

  it('are 64 at most', async () => {
    const made = await create()
    const backends = Array.from({ length: 65 }, (_, index) => ({ address: `fd20:1::b:${index}` }))
    expect(await refusal(SET_BACKENDS, { loadBalancer: made.id, backends })).toMatchObject({
      __typename: 'QuotaExceeded',
    })
  })
})

describe('a deleted load balancer', () => {
  it('leaves every cluster, then frees its address into the cool-down', async () => {
    const [east] = installation.addresses('us-east-1-b')
    const [address] = installation.addresses('us-east-1-a')
    const made = await create({ backends: [{ address }, { address: east }] })
    const vip = made.addresses[0]?.address ?? ''
    const query = `subscription ($id: ID!) { loadBalancer(id: $id) { type id loadBalancer { name status { phase } } } }`
    const signal = AbortSignal.timeout(PATIENCE)
    const seen: { type: string; loadBalancer: { name: string } | null }[] = []
    for await (const event of installation.api.stream<(typeof seen)[number]>(
      query,
      { id: made.id },
      { over: 'sse', signal },
    )) {
      seen.push(event)
      if (event.type === 'SYNCED') {
        const { loadBalancer } = await accepted(installation.api, DELETE, { id: made.id })
        expect(loadBalancer).toMatchObject({ status: { phase: 'DELETING' } })
        expect(loadBalancer.deletingSince).not.toBeNull()
        // Its name is free at once.
        const [other] = installation.addresses('us-east-1-a').slice(1)
        await create({ name: made.name, backends: [{ address: other }] })
      }
      if (event.type === 'DELETED') break
    }
    expect(seen[0]).toMatchObject({ type: 'ADDED' })
    expect(seen.at(-1)).toMatchObject({ type: 'DELETED', loadBalancer: { name: made.name } })
    expect(await show(made.id)).toBeNull()
    for (const letter of ['a', 'b']) {
      const rules = await rulesIn(installation.fleet.get(`us-east-1-${letter}`))
      expect(rules.filter(isOf(vip))).toEqual([])
    }
    const block = await installation.store.prisma.iPv6Block.findUniqueOrThrow({ where: { vip } })
    expect(block.loadBalancerId).toBeNull()
    const coolDown = (block.reusableAt?.getTime() ?? 0) - Date.now()
    expect(coolDown).toBeGreaterThan(500_000)
    expect(coolDown).toBeLessThanOrEqual(600_000)
  })

  it('takes no more changes while it goes', async () => {
    const made = await create()
    const { dataPlane } = installation.fleet.get('us-east-1-a')
    dataPlane.pause()
    await accepted(installation.api, DELETE, { id: made.id })
    expect(await refusal(UPDATE, { id: made.id, displayName: 'late' })).toMatchObject({
      __typename: 'BeingDeleted',
    })
    // Asking again is no error.
    await accepted(installation.api, DELETE, { id: made.id })
    dataPlane.resume()
  })

  it('is refused while it is protected', async () => {
    const made = await create({ deletionProtection: true })
    expect(await refusal(DELETE, { id: made.id })).toMatchObject({
      __typename: 'DeletionProtected',
    })
    await accepted(installation.api, UPDATE, { id: made.id, reset: ['DELETION_PROTECTION'] })
    await accepted(installation.api, DELETE, { id: made.id })
  })
})
