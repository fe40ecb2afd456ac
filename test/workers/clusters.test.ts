import { describe, expect, it } from 'vitest'
import {
  DATA_PLANE_NAMESPACE,
  INSTANCE_LABEL,
  LOAD_BALANCER_LABEL,
  NETWORK_RULES,
} from '../../src/rules/objects.ts'
import { accepted, DELETE, REMOVE_BACKENDS } from '../api/operations.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import { create, createSettled, isOf, reported, shown, vipOf } from './scene.ts'

/** What a whole cluster lacks: gateways, or room. */
const installation = useInstallation({
  clusters: [
    { name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false },
    { name: 'us-east-1-b', region: 'us-east-1', servesIPv4: false, gateways: [] },
    { name: 'us-east-1-c', region: 'us-east-1', servesIPv4: false },
    { name: 'us-east-1-d', region: 'us-east-1', servesIPv4: false, gateways: ['only'] },
  ],
  limits: { vipRows: 6, teardownPatience: 1_500 },
})
const cluster = (letter: string) => installation.fleet.get(`us-east-1-${letter}`)
const addresses = (letter: string) => installation.addresses(`us-east-1-${letter}`)

describe('a cluster without a gateway', () => {
  it('says NoGateway, and the others go on', async () => {
    const made = await create(installation, [...addresses('a'), ...addresses('b')])
    await reported(
      installation,
      'us-east-1-b',
      made,
      ({ cluster }) => cluster.reason === 'NoGateway',
    )
    const now = await shown(
      installation,
      made,
      ({ status }) => status.provisioned.reason === 'NoGateway',
    )
    await reported(installation, 'us-east-1-a', made, ({ inEffect }) => inEffect)
    expect(now.status.provisioned.status).toBe('FALSE')
    // A gateway comes: it is noticed by itself.
    await cluster('b').dataPlane.addGateway('late')
    await installation.api.settled(made.id)
    await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
    await accepted(installation.api, DELETE, { id: made.id })
  })
})

describe('a rule whose last gateway went', () => {
  it('is told as TeardownStuck though nothing else happens, never forced, and its hold stays', async () => {
    const made = await createSettled(installation, [...addresses('a'), ...addresses('d')])
    await cluster('d').dataPlane.dropGateway('only')
    await accepted(installation.api, REMOVE_BACKENDS, {
      loadBalancer: made.id,
      addresses: addresses('d'),
    })
    const now = await shown(
      installation,
      made,
      ({ status }) => status.provisioned.reason === 'TeardownStuck',
    )
    expect(now.status.ready.status).toBe('TRUE')
    const [rule] = (await rulesIn(cluster('d'))).filter(isOf(made))
    expect(rule?.metadata.finalizers).toHaveLength(1)
    const vip = vipOf(made)
    const { rows } = await installation.store.pool.query(
      `SELECT FROM hold JOIN cluster ON cluster.id = cluster_id
       WHERE vip = $1 AND gone_at IS NULL AND cluster.name = 'us-east-1-d'`,
      [vip],
    )
    expect(rows).toHaveLength(1)
    await cluster('d').dataPlane.addGateway('only')
    await installation.api.settled(made.id)
    expect((await rulesIn(cluster('d'))).filter(isOf(made))).toEqual([])
    await accepted(installation.api, DELETE, { id: made.id })
  })
})

describe('a cluster whose gateways are full', () => {
  const stranger = (name: string, vips: string[]) =>
    cluster('c').writer.create(NETWORK_RULES, {
      metadata: { name, namespace: DATA_PLANE_NAMESPACE },
      spec: {
        vpcRef: 'other',
        vpcAttachmentRef: 'other',
        vipAddresses: vips,
        protocol: 'tcp',
        port: 80,
        backends: [{ address: 'fd99::1', port: 80 }],
      },
    })

  it('counts the VIPs of everybody, takes no rule beyond, and takes it when there is room', async () => {
    await stranger('theirs', ['2001:db8:f::1', '2001:db8:f::2', '2001:db8:f::3'])
    const first = await createSettled(installation, addresses('c').slice(0, 1))
    await rulesUntil(cluster('c'), (all) => all.length === 2)
    // Two of six rows are left, and many ask for them at once.
    const others = await Promise.all(
      Array.from({ length: 6 }, () => create(installation, addresses('c').slice(0, 1))),
    )
    await Promise.all(
      others.map((each) =>
        reported(
          installation,
          'us-east-1-c',
          each,
          ({ inEffect, cluster }) => inEffect || cluster.reason === 'ClusterFull',
        ),
      ),
    )
    const rules = await rulesIn(cluster('c'))
    expect(rules.flatMap(({ spec }) => spec.vipAddresses)).toHaveLength(6)
    const out = others.filter((each) => !rules.some(isOf(each)))
    expect(out).toHaveLength(4)
    const [waiting] = out
    if (waiting === undefined) throw new Error('none is out')
    const now = await shown(
      installation,
      waiting,
      ({ status }) => status.provisioned.reason === 'ClusterFull',
    )
    expect(now.status.ready).toMatchObject({ status: 'FALSE', reason: 'ClusterFull' })
    // One that has its row keeps it, whatever others do.
    await stranger('more', ['2001:db8:f::4'])
    await rulesUntil(cluster('c'), (all) => all.some(isOf(first)) && all.length === 5)
    await cluster('c').writer.remove(NETWORK_RULES, {
      name: 'theirs',
      namespace: DATA_PLANE_NAMESPACE,
    })
    await rulesUntil(cluster('c'), (all) => {
      const rows = all.flatMap(({ spec }) => spec.vipAddresses)
      return rows.length === 6 && !all.some(({ metadata }) => metadata.name === 'theirs')
    })
    const after = await rulesIn(cluster('c'))
    const ours = after.filter(({ metadata }) => metadata.labels?.[INSTANCE_LABEL] !== undefined)
    expect(new Set(ours.map(({ metadata }) => metadata.labels?.[LOAD_BALANCER_LABEL])).size).toBe(5)
  })
})
