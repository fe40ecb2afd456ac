import { beforeEach, describe, expect, it } from 'vitest'
import { acceptInventory } from '../../src/domain/clusters.ts'
import { VPC_ATTACHMENTS } from '../../src/rules/objects.ts'
import { accepted, SET_BACKENDS } from '../api/operations.ts'
import type { Passing } from '../support/gatekeeper.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import {
  attach,
  condition,
  createSettled,
  detach,
  isOf,
  known,
  listed,
  reported,
  shown,
  storedUntil,
  vipOf,
  witness,
} from './scene.ts'

const clusters = ['a', 'b'].map((letter) => ({
  name: `us-east-1-${letter}`,
  region: 'us-east-1',
  servesIPv4: false,
}))
const installation = useInstallation({
  clusters,
  guarded: true,
  limits: { settle: 50, confirm: 200, teardownPatience: 1_500 },
})
const cluster = (letter: string) => installation.fleet.get(`us-east-1-${letter}`)
const guard = (letter: string) => installation.gatekeeper(`us-east-1-${letter}`)

let places = 0
/** A backend of its own in some clusters. */
async function endpoint(...letters: string[]) {
  places += 1
  const address = `fd20:1::d:${places.toString(16)}`
  const where = new Map<string, { name: string; namespace: string }>()
  for (const letter of letters)
    where.set(letter, await attach(cluster(letter), { addresses: [address] }))
  const names = letters.map((letter) => `us-east-1-${letter}`)
  await known(installation, address, names)
  return {
    address,
    gone: (letter: string) =>
      detach(cluster(letter), where.get(letter) ?? { name: '', namespace: '' }),
  }
}

const inventory = (reason: string | string[], letter = 'a') =>
  storedUntil(
    () =>
      installation.store.prisma.cluster.findUniqueOrThrow({
        where: { name: `us-east-1-${letter}` },
      }),
    (row) => [reason].flat().includes(Object(row.inventory).reason),
  )

const endpoints = async (letter: string) => {
  const { rows } = await installation.store.pool.query<{ count: number }>(
    `SELECT count(*)::integer AS count FROM endpoint JOIN cluster ON cluster.id = cluster_id WHERE cluster.name = $1`,
    [`us-east-1-${letter}`],
  )
  return rows[0]?.count ?? 0
}

beforeEach(() => {
  for (const letter of ['a', 'b']) guard(letter).rule(undefined)
})

describe('a backend', () => {
  it('that moves to another cluster takes its rule along: added there first, removed here after', async () => {
    const { address, gone } = await endpoint('a')
    const made = await createSettled(installation, [address])
    const here = witness(cluster('a'), 'networkrules')
    const there = witness(cluster('b'), 'networkrules')
    const times = { added: 0, removed: 0 }
    const stop = [
      cluster('b').server.storage.observe('networkrules.network.datumapis.com', () => {
        times.added ||= performance.now()
      }),
      cluster('a').server.storage.observe('networkrules.network.datumapis.com', ({ object }) => {
        if (Object(object['metadata']).deletionTimestamp) times.removed ||= performance.now()
      }),
    ]
    // As a live migration does: it is there before it is gone here.
    await attach(cluster('b'), { addresses: [address] })
    await gone('a')
    await listed(cluster('b'), made, [address])
    await listed(cluster('a'), made, [])
    for (const end of [...stop, here.end, there.end]) end()
    expect(times.removed).toBeGreaterThan(times.added)
    await known(installation, address, ['us-east-1-b'])
    const now = await shown(installation, made, ({ status }) => status.ready.status === 'TRUE')
    expect(now.backends.nodes[0]).toMatchObject({ serving: true, resolved: { status: 'TRUE' } })
  })

  it('that is exchanged for one in another cluster is served until the other one is', async () => {
    const [one, two] = [await endpoint('a'), await endpoint('b')]
    const made = await createSettled(installation, [one.address])
    const hold = cluster('b').dataPlane
    hold.pause()
    await accepted(installation.api, SET_BACKENDS, {
      loadBalancer: made.id,
      backends: [{ address: two.address }],
    })
    await listed(cluster('b'), made, [two.address])
    await reported(installation, 'us-east-1-b', made, (report) => !report.inEffect)
    expect((await rulesIn(cluster('a'))).filter(isOf(made))).toMatchObject([
      { metadata: { name: expect.any(String) } },
    ])
    const [rule] = (await rulesIn(cluster('a'))).filter(isOf(made))
    expect(rule?.metadata.deletionTimestamp).toBeUndefined()
    hold.resume()
    await listed(cluster('a'), made, [])
    await installation.api.settled(made.id)
  })

  it('that appears later resolves by itself, and one that vanishes leaves the rule and says AddressUnknown', async () => {
    const stays = await endpoint('a')
    const late = `fd20:1::d:1a7e`
    const made = await createSettled(installation, [stays.address, late])
    await listed(cluster('a'), made, [stays.address])
    const before = await shown(installation, made, ({ status }) => status.phase === 'DEGRADED')
    expect(before.backends.nodes.map(({ resolved }) => resolved.reason)).toEqual([
      'Resolved',
      'AddressUnknown',
    ])
    const where = await attach(cluster('a'), { addresses: [late] })
    await listed(cluster('a'), made, [stays.address, late])
    await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
    await detach(cluster('a'), where)
    await listed(cluster('a'), made, [stays.address])
    const now = await shown(installation, made, ({ status }) => status.phase === 'DEGRADED')
    expect(now.backends.nodes.map(({ resolved }) => resolved.reason)).toEqual([
      'Resolved',
      'AddressUnknown',
    ])
    expect(now.status.ready.status).toBe('TRUE')
  })

  it('that was the last to leave takes the rule with it, and its binding that never goes is told', async () => {
    const { address, gone } = await endpoint('a')
    const made = await createSettled(installation, [address])
    await gone('a')
    await listed(cluster('a'), made, [])
    const now = await shown(
      installation,
      made,
      ({ status }) => status.provisioned.reason === 'TeardownStuck',
    )
    expect(now.backends.nodes[0]).toMatchObject({
      serving: false,
      resolved: { status: 'FALSE', reason: 'AddressUnknown' },
    })
    expect(now.status.phase).toBe('DEGRADED')
    const holds = await installation.store.prisma.hold.findMany({
      where: { vip: vipOf(made), goneAt: null },
    })
    expect(holds).toHaveLength(1)
    // The data plane finds its rows again once the address is back on the node.
    const report = await reported(installation, 'us-east-1-a', made, ({ inEffect }) => !inEffect)
    expect(report?.vips[vipOf(made)]?.provisioned.message).toMatch(/^lb-/)
  })

  it('that moves to another node is bound there', async () => {
    const { address } = await endpoint('a')
    const made = await createSettled(installation, [address])
    const attachments = await cluster('a').cluster.list(VPC_ATTACHMENTS)
    const mine = attachments.find((one) => JSON.stringify(one).includes(`"${address}/128"`))
    const { name = '', namespace = '' } = mine?.metadata ?? {}
    await cluster('a').writer.patchStatus(
      VPC_ATTACHMENTS,
      { name, namespace },
      { status: { node: 'moved' } },
    )
    await storedUntil(
      async () => cluster('a').dataPlane.rows(),
      (rows) => rows.some(({ node, vips }) => node === 'moved' && vips.includes(vipOf(made))),
    )
    const rules = (await rulesIn(cluster('a'))).filter(isOf(made))
    expect(rules).toHaveLength(1)
    // What the data plane has on the old node it can't find any more: told, never forced.
    await shown(installation, made, ({ status }) => status.provisioned.reason === 'TeardownStuck')
  })
})

describe('the brake: no rule is emptied', () => {
  const isAttachments = ({ path }: Passing) => path.includes('/vpcattachments')

  it('by a list that is refused, and endpoints are marked stale', async () => {
    const { address } = await endpoint('a')
    const made = await createSettled(installation, [address])
    const before = await endpoints('a')
    guard('a').rule((passing) =>
      isAttachments(passing) && passing.method === 'GET'
        ? {
            status: 403,
            body: {
              kind: 'Status',
              apiVersion: 'v1',
              status: 'Failure',
              reason: 'Forbidden',
              code: 403,
              message: 'vpcattachments is forbidden',
            },
          }
        : undefined,
    )
    guard('a').breakWatches()
    const row = await inventory('InventoryStale')
    expect(Object(row.inventory)).toMatchObject({
      status: 'FALSE',
      message: expect.stringContaining('forbidden'),
    })
    expect(await endpoints('a')).toBe(before)
    expect((await rulesIn(cluster('a'))).filter(isOf(made))).toHaveLength(1)
    guard('a').rule(undefined)
    await inventory('InventoryComplete')
  })

  it('by an empty list, however often it comes; an operator may believe it', async () => {
    const { address } = await endpoint('b')
    const made = await createSettled(installation, [address])
    const before = await endpoints('b')
    const empty = {
      apiVersion: 'cloud.datumapis.com/v1alpha1',
      kind: 'VPCAttachmentList',
      // Not one of the future: a watch from there would be silent once the server is honest again.
      metadata: { resourceVersion: '1' },
      items: [],
    }
    const expired = {
      kind: 'Status',
      apiVersion: 'v1',
      status: 'Failure',
      reason: 'Expired',
      code: 410,
      message: 'too old',
    }
    let lists = 0
    guard('b').rule((passing) => {
      if (!isAttachments(passing) || passing.method !== 'GET') return undefined
      if (passing.watch) return { status: 410, body: expired }
      lists += 1
      return { status: 200, body: empty }
    })
    guard('b').breakWatches()
    await inventory('InventoryDoubted', 'b')
    await storedUntil(
      async () => lists,
      (count) => count >= 3,
    )
    expect(await endpoints('b')).toBe(before)
    expect((await rulesIn(cluster('b'))).filter(isOf(made))).toHaveLength(1)
    // Also by a worker that begins meanwhile.
    await installation.restartWorkers()
    await storedUntil(
      async () => lists,
      (count) => count >= 6,
    )
    expect(await endpoints('b')).toBe(before)
    expect((await rulesIn(cluster('b'))).filter(isOf(made))).toHaveLength(1)
    const { id } = await installation.store.prisma.cluster.findUniqueOrThrow({
      where: { name: 'us-east-1-b' },
    })
    await acceptInventory(installation.store, id)
    await installation.workers.renew()
    await rulesUntil(cluster('b'), (all) => !all.some(isOf(made)))
    await shown(
      installation,
      made,
      ({ status }) =>
        condition({ ...made, status }, 'BackendsResolved')?.reason === 'AddressUnknown',
    )
    guard('b').rule(undefined)
    await known(installation, address, ['us-east-1-b'])
  }, 90_000)

  it('by half of a list, until a second look finds the same', async () => {
    const { address } = await endpoint('a')
    const others = [await endpoint('a'), await endpoint('a')]
    const made = await createSettled(installation, [address])
    // They vanish while nobody looks.
    await installation.workers.close()
    const all = await cluster('a').cluster.list(VPC_ATTACHMENTS)
    const gone = all.filter(({ metadata }) => metadata.namespace === 'demo')
    expect(gone.length).toBeGreaterThan(0.3 * all.length)
    for (const { metadata } of gone)
      await detach(cluster('a'), { name: metadata.name, namespace: metadata.namespace ?? '' })
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    let lists = 0
    guard('a').rule((passing) => {
      if (!isAttachments(passing) || passing.watch || passing.method !== 'GET') return undefined
      lists += 1
      return lists === 1 ? undefined : held
    })
    await installation.restartWorkers()
    await inventory('InventoryDoubted')
    expect((await rulesIn(cluster('a'))).filter(isOf(made))).toHaveLength(1)
    release()
    await rulesUntil(cluster('a'), (rules) => !rules.some(isOf(made)))
    await inventory('InventoryComplete')
    expect(others).toHaveLength(2)
  })

  it('by a definition that is deleted with all its objects, and put back', async () => {
    const { address } = await endpoint('b')
    const made = await createSettled(installation, [address])
    const before = await cluster('b').cluster.list(VPC_ATTACHMENTS)
    const definitions = {
      group: 'apiextensions.k8s.io',
      version: 'v1',
      plural: 'customresourcedefinitions',
      kind: 'CustomResourceDefinition',
    }
    const name = 'vpcattachments.cloud.datumapis.com'
    const [crd] = (await cluster('b').cluster.list(definitions)).filter(
      ({ metadata }) => metadata.name === name,
    )
    const known = await endpoints('b')
    await cluster('b').writer.remove(definitions, { name })
    // Its objects vanish, and then there is nothing to list: either may be found first.
    await inventory(['InventoryDoubted', 'InventoryStale'], 'b')
    const { spec } = Object(crd)
    await cluster('b').writer.create(definitions, { metadata: { name }, spec })
    expect(await endpoints('b')).toBe(known)
    expect((await rulesIn(cluster('b'))).filter(isOf(made))).toHaveLength(1)
    // As from a backup: the same names, other uids.
    for (const { metadata, ...rest } of before) {
      const { name: own, namespace, labels = {} } = metadata
      await cluster('b').writer.create(VPC_ATTACHMENTS, {
        metadata: { name: own, ...(namespace === undefined ? {} : { namespace }), labels },
        spec: Object(rest).spec,
      })
      await cluster('b').writer.patchStatus(
        VPC_ATTACHMENTS,
        { name: own, namespace },
        { status: Object(rest).status },
      )
    }
    await inventory('InventoryComplete', 'b')
    await storedUntil(
      () => endpoints('b'),
      (count) => count === known,
    )
    const [rule] = (await rulesIn(cluster('b'))).filter(isOf(made))
    expect(rule?.metadata.deletionTimestamp).toBeUndefined()
  })

  it('by attachments that all lose what an endpoint needs, as in a definition that lost a field', async () => {
    const { address } = await endpoint('b')
    const made = await createSettled(installation, [address])
    const known = await endpoints('b')
    const all = await cluster('b').cluster.list(VPC_ATTACHMENTS)
    const put = async (lost: boolean) => {
      for (const attachment of all) {
        const { metadata } = attachment
        const node = lost ? null : Object(attachment).status?.node
        await cluster('b').writer.patchStatus(VPC_ATTACHMENTS, metadata, { status: { node } })
      }
    }
    await put(true)
    await inventory('InventoryDoubted', 'b')
    // Also by a worker that begins meanwhile.
    await installation.restartWorkers()
    await createSettled(installation, [(await endpoint('a')).address])
    await inventory('InventoryDoubted', 'b')
    expect(await endpoints('b')).toBe(known)
    await put(false)
    await inventory('InventoryComplete', 'b')
    expect(await endpoints('b')).toBe(known)
    const [rule] = (await rulesIn(cluster('b'))).filter(isOf(made))
    expect(rule?.metadata).toMatchObject({ name: expect.any(String) })
    expect(rule?.metadata.deletionTimestamp).toBeUndefined()
  })
})
