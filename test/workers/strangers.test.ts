import { describe, expect, it } from 'vitest'
import { hint } from '../../src/domain/hints.ts'
import {
  BGP_ADVERTISEMENTS,
  DATA_PLANE_NAMESPACE,
  GENERATION_ANNOTATION,
  INSTANCE_LABEL,
  type KubeObject,
  LOAD_BALANCER_LABEL,
  MANAGED_BY_LABEL,
  NAMESPACES,
  NETWORK_GATEWAYS,
  NETWORK_RULES,
  type Resource,
  SERVICE_VIP_BINDINGS,
  VPC_ATTACHMENTS,
  VPCS,
} from '../../src/rules/objects.ts'
import type { LoadBalancer } from '../api/operations.ts'
import { condition } from '../conformance/client.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import { bindingsUntil, createSettled, isOf, shown, storedUntil, storeId, vipOf } from './scene.ts'

const installation = useInstallation({
  clusters: [
    { name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false },
    { name: 'us-east-1-b', region: 'us-east-1', servesIPv4: false, dialect: 'selector' },
  ],
})
const cluster = (letter: string) => installation.fleet.get(`us-east-1-${letter}`)
const RESYNCS = 100

/** Everything in a cluster, byte by byte. */
async function picture(letter: string): Promise<string[]> {
  const all: [Resource, object][] = [
    [NETWORK_RULES, { namespace: DATA_PLANE_NAMESPACE }],
    [SERVICE_VIP_BINDINGS, { namespace: DATA_PLANE_NAMESPACE }],
    [BGP_ADVERTISEMENTS, { namespace: DATA_PLANE_NAMESPACE }],
    [NETWORK_GATEWAYS, { namespace: DATA_PLANE_NAMESPACE }],
    [VPC_ATTACHMENTS, {}],
    [VPCS, {}],
    [NAMESPACES, {}],
  ]
  const lists = await Promise.all(
    all.map(([resource, where]) => cluster(letter).cluster.list<KubeObject>(resource, where)),
  )
  return lists.flat().map((object) => JSON.stringify(object))
}

/** Asks all placements, and waits until all that was asked is applied. */
async function resync(): Promise<void> {
  await installation.store.pool.query(
    'UPDATE placement SET asked = asked + 1, due = clock_timestamp()',
  )
  hint(installation.store)
  await storedUntil(
    async () => {
      const { rows } = await installation.store.pool.query<{ behind: number }>(
        'SELECT count(*)::integer AS behind FROM placement WHERE applied < asked',
      )
      return rows[0]?.behind
    },
    (behind) => behind === 0,
  )
}

describe.each(['a', 'b'])('in cluster %s', (letter) => {
  it(`nothing that is not ours is touched, and nothing of ours, by ${RESYNCS} resyncs`, async () => {
    const addresses = installation.addresses(`us-east-1-${letter}`)
    const made = await createSettled(installation, addresses)
    const { writer } = cluster(letter)
    const [rule] = (await rulesIn(cluster(letter))).filter(isOf(made))
    if (rule === undefined) throw new Error('there is no rule')
    const { name, namespace = '', labels = {} } = rule.metadata
    const spec = { ...rule.spec, vipAddresses: ['2001:db8:f::1'], port: 4_711 }
    const strangers = [
      { [MANAGED_BY_LABEL]: 'somebody' },
      { ...labels, [INSTANCE_LABEL]: '00000000-0000-4000-8000-000000000000' },
      { [LOAD_BALANCER_LABEL]: storeId(made.id) },
    ]
    for (const [index, own] of strangers.entries()) {
      const where = { name: `stranger-${index}`, namespace }
      const vip = `2001:db8:f::${index + 1}`
      await writer.create(NETWORK_RULES, {
        metadata: { ...where, labels: own, finalizers: ['example.com/theirs'] },
        spec: { ...spec, vipAddresses: [vip] },
      })
      await writer.create(SERVICE_VIP_BINDINGS, {
        metadata: { ...where, labels: own, finalizers: ['example.com/theirs'] },
        spec: {
          targetRef: { kind: 'Node', name: `stranger-${index}` },
          vipAddress: vip,
          port: 4_711,
          protocol: 'tcp',
          egressKind: 'veth',
        },
      })
    }
    // The CRDs take objects that say nothing, and labels may be anybody's.
    for (const kind of [NETWORK_RULES, SERVICE_VIP_BINDINGS, BGP_ADVERTISEMENTS])
      await writer.create(kind, {
        metadata: { name: 'empty', namespace, labels: { theirs: 'no' } },
      })
    const theirs = { labels: { theirs: 'yes' }, annotations: { 'example.com/note': 'kept' } }
    const finalizers = [...(rule.metadata.finalizers ?? []), 'example.com/theirs']
    await writer.patch(NETWORK_RULES, { name, namespace }, { metadata: { ...theirs, finalizers } })
    const said = { ...condition('example.com/Seen'), lastTransitionTime: '2026-01-01T00:00:00Z' }
    const conditions = [...(rule.status?.conditions ?? []), said]
    await writer.patchStatus(NETWORK_RULES, { name, namespace }, { status: { conditions } })
    const [attachment] = cluster(letter).endpoints
    if (attachment === undefined) throw new Error('there is no endpoint')
    await writer.patch(VPC_ATTACHMENTS, attachment.attachment, { metadata: theirs })
    await bindingsUntil(cluster(letter), (all) =>
      all.some(({ spec }) => spec?.vipAddress === vipOf(made)),
    )
    await resync()
    // The data plane has its say about the strangers too.
    let before = await picture(letter)
    await storedUntil(
      async () => {
        const now = await picture(letter)
        const same = now.join() === before.join()
        before = now
        return same
      },
      (same) => same,
    )
    for (let round = 0; round < RESYNCS; round += 1) await resync()
    expect(await picture(letter)).toEqual(before)
    // Nor by a worker that sees it all for the first time.
    await installation.restartWorkers()
    await resync()
    expect(await picture(letter)).toEqual(before)
  })
})

it('a rule of ours whose spec somebody takes away gets it back, and stays the same object', async () => {
  const made = await createSettled(installation, installation.addresses('us-east-1-a'))
  const { writer } = cluster('a')
  const [before] = (await rulesIn(cluster('a'))).filter(isOf(made))
  if (before === undefined) throw new Error('there is no rule')
  const { name, namespace, uid } = before.metadata
  await writer.patch(NETWORK_RULES, { name, namespace }, { spec: null })
  const after = await rulesUntil(cluster('a'), (all) =>
    all.some(({ metadata, spec }) => metadata.uid === uid && spec !== undefined),
  )
  expect(after.find(({ metadata }) => metadata.uid === uid)?.spec).toEqual(before.spec)
  await shown(installation, made, ({ status }) => status.provisioned.status === 'TRUE')
})

it('what was newer than the store stays as it is until it is gone, and is kept right again from then on', async () => {
  const made = await createSettled(installation, installation.addresses('us-east-1-a'))
  const { cluster: client } = cluster('a')
  const mine = async () => (await rulesIn(cluster('a'))).find(isOf(made))
  const { name = '', namespace = '' } = (await mine())?.metadata ?? {}
  const change = (patch: object) => client.merge(NETWORK_RULES, { name, namespace }, patch)
  const isBehind = ({ status }: LoadBalancer) => status.provisioned.reason === 'StoreBehind'

  await change({ metadata: { annotations: { [GENERATION_ANNOTATION]: '99' } } })
  await shown(installation, made, isBehind)
  await change({ spec: { port: 4_712 } })
  await resync()
  expect((await mine())?.spec.port).toBe(4_712)
  // Nothing tells any more that somebody knew better.
  await change({ metadata: { annotations: { [GENERATION_ANNOTATION]: null } } })
  await rulesUntil(cluster('a'), (rules) =>
    rules.some((rule) => isOf(made)(rule) && rule.spec.port !== 4_712),
  )
  await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
  await client.remove(NETWORK_RULES, { name, namespace })
  await rulesUntil(cluster('a'), (rules) => rules.some(isOf(made)))
  await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
})
