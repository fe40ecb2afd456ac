import { expect, test } from 'vitest'
import { renewLogEpoch } from '../../src/db/migrate.ts'
import { LOAD_BALANCER_LABEL, type NetworkRule } from '../../src/rules/objects.ts'
import { accepted, type LoadBalancer, UPDATE } from '../api/operations.ts'
import { clusterCalled, tell } from '../api/operators.ts'
import { backedUp } from '../support/database.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import { createSettled, isOf, reported, shown, storeId, vipOf, witness } from './scene.ts'

const NAME = 'us-east-1-a'
const NEWER = 20
const installation = useInstallation({
  clusters: [{ name: NAME, region: 'us-east-1', servesIPv4: false }],
})
const cluster = () => installation.fleet.get(NAME)
const addresses = () => installation.addresses(NAME)
const some = (count: number) =>
  Promise.all(Array.from({ length: count }, () => createSettled(installation, addresses())))

/** What a stream of all load balancers tells first, after a cursor where one is given. */
async function firstEvent(after?: string): Promise<{ type: string; cursor: string }> {
  const query = 'subscription ($after: LogCursor) { loadBalancers(after: $after) { type cursor } }'
  const signal = AbortSignal.timeout(20_000)
  const stream = installation.api.stream<{ type: string; cursor: string }>(
    query,
    after === undefined ? {} : { after },
    { over: 'sse', signal },
  )
  for await (const event of stream) {
    if (after !== undefined || event.type === 'SYNCED') return event
  }
  throw new Error('the stream ended')
}

test('a store restored from an older backup sweeps and overwrites nothing newer, hands out none of its addresses, and answers old cursors by RESYNC', async () => {
  const { api, operators, store } = installation
  const [changed, kept] = await some(2)
  if (changed === undefined || kept === undefined) throw new Error('nothing was made')
  const { cursor: before } = await firstEvent()
  const backup = await backedUp(store)
  await accepted(api, UPDATE, { id: changed.id, protocol: { tcp: { port: 9_001 } } })
  await api.settled(changed.id)
  const newer = await some(NEWER)
  const { cursor: after } = await firstEvent()
  const rules = await rulesIn(cluster())
  expect(rules).toHaveLength(2 + NEWER)

  await installation.workers.close()
  await backup.restore()
  // As `npm run migrate -- --restored` does.
  await renewLogEpoch(backup.url)
  const { seen, end } = witness(cluster(), 'networkrules')
  await installation.restartWorkers()

  // Both are told, each with its number.
  const swept = async () => (await clusterCalled(operators, NAME)).sweep
  await expect
    .poll(swept, { timeout: 20_000 })
    .toMatchObject({ status: 'FALSE', reason: 'UnknownOwners' })
  expect((await swept()).message).toContain(`${NEWER} such load balancers`)
  await reported(installation, NAME, changed, (it) => it.cluster.reason === 'StoreBehind')
  // Also where a tenant changes it anew, which makes the numbers equal.
  await accepted(api, UPDATE, { id: changed.id, protocol: { tcp: { port: 9_002 } } })
  await reported(
    installation,
    NAME,
    changed,
    (it) => it.cluster.reason === 'StoreBehind' && it.generation === 2,
  )
  // What the backup has goes on as ever.
  await accepted(api, UPDATE, { id: kept.id, protocol: { tcp: { port: 9_003 } } })
  await api.settled(kept.id)

  const given = await some(NEWER + 2)
  const taken = new Set([...newer, changed, kept].map(vipOf))
  expect(given.map(vipOf).filter((vip) => taken.has(vip))).toEqual([])
  expect(await firstEvent(before)).toMatchObject({ type: 'RESYNC' })
  expect(await firstEvent(after)).toMatchObject({ type: 'RESYNC' })

  end()
  const ours = new Set([storeId(kept.id), ...given.map(({ id }) => storeId(id))])
  const touched = seen.filter(({ object }) => !ours.has(ownerOf(object)))
  expect(touched.map(({ type, name }) => `${type} ${name}`)).toEqual([])
  const present = await rulesIn(cluster())
  const untouched = rules.filter((rule) => !isOf(kept)(rule))
  expect(present).toEqual(expect.arrayContaining(untouched))

  // Until an operator says that the store is right.
  const { id } = await clusterCalled(operators, NAME)
  await tell(operators, 'updateCluster', { id, allowSweep: true })
  await rulesUntil(cluster(), (all) => !newer.some((made) => all.some(isOf(made))))
  await rulesUntil(cluster(), (all) => all.find(isOf(changed))?.spec.port === 9_002)
  await shown(installation, changed, ({ status }: LoadBalancer) => status.phase === 'ACTIVE')
  await expect.poll(swept, { timeout: 20_000 }).toMatchObject({ status: 'TRUE' })
}, 120_000)

const ownerOf = ({ metadata }: NetworkRule): string => metadata.labels?.[LOAD_BALANCER_LABEL] ?? ''
