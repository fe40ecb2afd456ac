import { describe, expect, it } from 'vitest'
import { NETWORK_RULES, type NetworkRule } from '../../src/rules/objects.ts'
import { createLoadBalancer, type LoadBalancer, SHOW } from '../api/operations.ts'
import { databaseAway } from '../support/database.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'

const installation = useInstallation()
const east = () => installation.fleet.get('us-east-1-a')
const isOf = (address: string) => (rule: NetworkRule) => rule.spec.vipAddresses.includes(address)
let port = 5_000

async function create(): Promise<{ id: string; vip: string }> {
  port += 1
  const { id, addresses } = await createLoadBalancer(installation, {
    name: `outage-${port}`,
    protocol: { tcp: { port } },
    backends: installation.addresses('us-east-1-a').map((address) => ({ address })),
  })
  await installation.api.settled(id)
  return { id, vip: addresses[0]?.address ?? '' }
}

async function deleteRule(vip: string): Promise<void> {
  const rule = (await rulesIn(east())).find(isOf(vip))
  const { name = '', namespace = '' } = rule?.metadata ?? {}
  await east().cluster.remove(NETWORK_RULES, { name, namespace })
}

describe('while the database is away', () => {
  it('a rule that is deleted is put right when it is back, and streams go on', async () => {
    const { id, vip } = await create()
    const seen: string[] = []
    const ended = new AbortController()
    const begun = Promise.withResolvers<void>()
    const watching = (async () => {
      const query =
        'subscription ($id: ID!) { loadBalancer(id: $id) { type loadBalancer { generation displayName } } }'
      const options = { over: 'ws' as const, signal: ended.signal }
      for await (const event of installation.api.stream<{
        loadBalancer: { displayName: string | null } | null
      }>(query, { id }, options)) {
        seen.push(event.loadBalancer?.displayName ?? '')
        begun.resolve()
        if (event.loadBalancer?.displayName === 'after') return
      }
    })()
    await Promise.race([begun.promise, watching])
    const { back } = await databaseAway(installation.store)
    await deleteRule(vip)
    await rulesUntil(east(), (rules) => !rules.some(isOf(vip)))
    await back()
    await rulesUntil(east(), (rules) => rules.some(isOf(vip)))
    await expect
      .poll(() => installation.api.ask('{ regions { code } }').then(({ errors }) => errors))
      .toBeUndefined()
    await installation.api.get(
      'mutation ($id: ID!) { updateLoadBalancer(input: { id: $id, displayName: "after" }) { __typename } }',
      { id },
    )
    await watching
    ended.abort()
    expect(seen.at(-1)).toBe('after')
  })
})

describe('a worker', () => {
  it('that takes over a cluster which answers takes back that it does not', async () => {
    const { id } = await create()
    await installation.workers.close()
    const { store } = installation
    await store.pool.query(
      `UPDATE cluster SET unreachable_since = clock_timestamp() WHERE name = 'us-east-1-a'`,
    )
    await installation.restartWorkers()
    await expect
      .poll(async () => {
        const { unreachableSince } = await store.prisma.cluster.findUniqueOrThrow({
          where: { name: 'us-east-1-a' },
        })
        return unreachableSince
      })
      .toBeNull()
    const now = await installation.api.get<LoadBalancer>(SHOW, { id })
    expect(now.status.phase).toBe('ACTIVE')
  })
})
