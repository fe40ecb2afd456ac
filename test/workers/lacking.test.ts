import { afterEach, describe, expect, it } from 'vitest'
import {
  DATA_PLANE_NAMESPACE,
  NAMESPACES,
  NETWORK_GATEWAYS,
  NETWORK_RULES,
  type Resource,
  VPC_ATTACHMENTS,
  VPCS,
} from '../../src/rules/objects.ts'
import { accepted, DELETE, type LoadBalancer } from '../api/operations.ts'
import { clusterCalled } from '../api/operators.ts'
import type { Passing, Ruling } from '../support/gatekeeper.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { create, createSettled, isOf, reported, shown } from './scene.ts'

const [well = '', ill = ''] = ['us-east-1-a', 'us-east-1-b']
const installation = useInstallation({
  clusters: [well, ill].map((name) => ({ name, region: 'us-east-1', servesIPv4: false })),
  guarded: true,
})
const cluster = () => installation.fleet.get(ill)
const gatekeeper = () => installation.gatekeeper(ill)
const both = () => [...installation.addresses(well), ...installation.addresses(ill)]
const reachable = async () => (await clusterCalled(installation.operators, ill)).reachable
const reachableUntil = (status: string, reason: string) =>
  expect.poll(reachable, { timeout: 30_000 }).toMatchObject({ status, reason })

const inventoryUntil = (status: string, reason: string) =>
  expect
    .poll(async () => (await clusterCalled(installation.operators, ill)).inventory, {
      timeout: 30_000,
    })
    .toEqual({ status, reason })

const isServed = ({ status }: LoadBalancer) => status.provisioned.status === 'TRUE'
const saysFor =
  (reason: string) =>
  ({ status }: LoadBalancer) =>
    status.provisioned.reason === reason

/** The kinds are told apart by what stands between the group and the name. */
const isAbout = ({ path }: Passing, { plural }: Resource) => new RegExp(`/${plural}\\b`).test(path)
/** As the authorizer of an API server says it, in words that nobody should read. */
const forbidden: Ruling = {
  status: 403,
  body: {
    kind: 'Status',
    apiVersion: 'v1',
    status: 'Failure',
    message: 'no such words',
    reason: 'Forbidden',
    code: 403,
    details: { group: NETWORK_RULES.group, kind: 'some' },
  },
}

afterEach(async () => {
  gatekeeper().rule(undefined)
  await reachableUntil('TRUE', 'ClusterAnswers')
})

describe('a cluster without the namespace of the rules', () => {
  it('says so, and what is placed there too; all else goes on, and it serves when it is back', async () => {
    await cluster().cluster.remove(NAMESPACES, { name: DATA_PLANE_NAMESPACE })
    await reachableUntil('FALSE', 'NamespaceMissing')
    const made = await create(installation, both())
    await reported(installation, well, made, ({ inEffect }) => inEffect)
    await reported(installation, ill, made, (it) => it.cluster.reason === 'NamespaceMissing')
    await shown(installation, made, saysFor('NamespaceMissing'))
    await cluster().writer.create(NAMESPACES, { metadata: { name: DATA_PLANE_NAMESPACE } })
    await cluster().upgrade('backends', ['data plane'])
    await reachableUntil('TRUE', 'ClusterAnswers')
    await shown(installation, made, isServed)
    await accepted(installation.api, DELETE, { id: made.id })
  }, 90_000)
})

describe('a cluster that refuses what is written for want of rights', () => {
  it('says so, and what is placed there too; all else goes on, until it may', async () => {
    gatekeeper().rule((passing) =>
      passing.method === 'PATCH' && isAbout(passing, NETWORK_RULES) ? forbidden : undefined,
    )
    const made = await create(installation, both())
    await reported(installation, well, made, ({ inEffect }) => inEffect)
    await reported(installation, ill, made, (it) => it.cluster.reason === 'RightsMissing')
    await reachableUntil('FALSE', 'RightsMissing')
    await shown(installation, made, saysFor('RightsMissing'))
    gatekeeper().rule(undefined)
    await shown(installation, made, isServed)
    await reachableUntil('TRUE', 'ClusterAnswers')
    await accepted(installation.api, DELETE, { id: made.id })
  }, 60_000)

  it('says so no longer once nothing is left that it refused', async () => {
    gatekeeper().rule((passing) =>
      passing.method === 'PATCH' && isAbout(passing, NETWORK_RULES) ? forbidden : undefined,
    )
    const made = await create(installation, installation.addresses(ill))
    await reachableUntil('FALSE', 'RightsMissing')
    await accepted(installation.api, DELETE, { id: made.id })
    await reachableUntil('TRUE', 'ClusterAnswers')
  }, 60_000)
})

describe('a cluster that refuses to show', () => {
  const refuse = (kind: Resource) => {
    gatekeeper().rule((passing) =>
      passing.method === 'GET' && isAbout(passing, kind) ? forbidden : undefined,
    )
    gatekeeper().breakWatches()
  }

  it('gateways serves we know not what: unknown, for want of rights, with its rules kept', async () => {
    const made = await createSettled(installation, both())
    refuse(NETWORK_GATEWAYS)
    await reachableUntil('FALSE', 'RightsMissing')
    const now = await shown(installation, made, saysFor('RightsMissing'))
    expect(now.status.provisioned.status).toBe('UNKNOWN')
    expect(now.status.ready.status).toBe('TRUE')
    expect((await rulesIn(cluster())).filter(isOf(made))).toHaveLength(1)
    gatekeeper().rule(undefined)
    await shown(installation, made, isServed)
    await accepted(installation.api, DELETE, { id: made.id })
  }, 90_000)

  it('attachments says so, and serves on what was known', async () => {
    const made = await createSettled(installation, both())
    refuse(VPC_ATTACHMENTS)
    await reachableUntil('FALSE', 'RightsMissing')
    const { status } = await shown(installation, made, () => true)
    expect([status.provisioned.status, status.ready.status]).toEqual(['TRUE', 'TRUE'])
    await accepted(installation.api, DELETE, { id: made.id })
  }, 90_000)
})

describe('a cluster without a kind of the inventory', () => {
  const away = (kind: Resource) => {
    gatekeeper().rule((passing) => (isAbout(passing, kind) ? { status: 404, body: {} } : undefined))
    gatekeeper().breakWatches()
  }

  it.each([VPCS, VPC_ATTACHMENTS])(
    'says so of $plural, and serves on what was known, until it is there again',
    async (kind) => {
      const made = await createSettled(installation, both())
      away(kind)
      await reachableUntil('FALSE', 'SchemaMissing')
      expect((await reachable()).message).toContain(kind.plural)
      await inventoryUntil('FALSE', 'InventoryStale')
      const { status } = await shown(installation, made, () => true)
      expect([status.provisioned.status, status.ready.status]).toEqual(['TRUE', 'TRUE'])
      const later = await createSettled(installation, both())
      await shown(installation, later, isServed)
      gatekeeper().rule(undefined)
      await reachableUntil('TRUE', 'ClusterAnswers')
      await inventoryUntil('TRUE', 'InventoryComplete')
      for (const { id } of [made, later]) await accepted(installation.api, DELETE, { id })
    },
    90_000,
  )

  it('is not served by a worker that begins then; all else goes on, and it is once that is there', async () => {
    const before = await createSettled(installation, both())
    const rules = async () => (await rulesIn(cluster())).map(({ metadata }) => metadata.uid)
    const kept = await rules()
    away(VPCS)
    await installation.restartWorkers()
    await reachableUntil('FALSE', 'SchemaMissing')
    const made = await create(installation, both())
    await reported(installation, well, made, ({ inEffect }) => inEffect)
    expect(await rules()).toEqual(kept)
    gatekeeper().rule(undefined)
    await reachableUntil('TRUE', 'ClusterAnswers')
    for (const one of [before, made]) await shown(installation, one, isServed)
    for (const { id } of [before, made]) await accepted(installation.api, DELETE, { id })
  }, 90_000)
})

describe('a cluster that did not answer', () => {
  it('and now refuses everything says what it refuses for', async () => {
    gatekeeper().rule(() => 'reset')
    const made = await create(installation, installation.addresses(ill))
    await reachableUntil('FALSE', 'ClusterUnreachable')
    gatekeeper().breakWatches()
    gatekeeper().rule(() => forbidden)
    await reachableUntil('FALSE', 'RightsMissing')
    gatekeeper().rule(undefined)
    await shown(installation, made, isServed)
    await accepted(installation.api, DELETE, { id: made.id })
  }, 90_000)
})
