import { describe, expect, it } from 'vitest'
import { servingLabel } from '../../src/rules/names.ts'
import {
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  VPC_ATTACHMENTS,
  type VpcAttachment,
} from '../../src/rules/objects.ts'
import { accepted, DELETE, REMOVE_BACKENDS, UPDATE_BACKENDS } from '../api/operations.ts'
import { useInstallation } from '../support/installation.ts'
import { objectsUntil, rulesUntil } from '../support/objects.ts'
import {
  add,
  attach,
  condition,
  create,
  createSettled,
  detach,
  isOf,
  known,
  shown,
  storeId,
  vipOf,
} from './scene.ts'

/** *selector* dialect: backends are chosen by labels on their attachments. */
const installation = useInstallation({
  clusters: [{ name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false, dialect: 'selector' }],
})
const cluster = () => installation.fleet.get('us-east-1-a')
const labelOf = ({ id }: { id: string }) => servingLabel(storeId(id))

let places = 0
async function endpoint(...suffixes: string[]) {
  places += 1
  const addresses = (suffixes.length > 0 ? suffixes : ['1']).map(
    (suffix) => `fd20:1::c:${places}:${suffix}`,
  )
  const { name } = await attach(cluster(), { addresses })
  for (const each of addresses) await known(installation, each, ['us-east-1-a'])
  return { name, addresses, address: addresses[0] ?? '', namespace: 'demo' }
}

const labelsUntil = async (
  satisfied: (labels: Record<string, Record<string, string>>) => boolean,
) =>
  objectsUntil<VpcAttachment>(
    cluster(),
    VPC_ATTACHMENTS,
    (all) =>
      satisfied(
        Object.fromEntries(all.map(({ metadata }) => [metadata.name, metadata.labels ?? {}])),
      ),
    {},
  )

const servedBy = (made: { addresses: { address: string }[] }) =>
  cluster()
    .dataPlane.rows()
    .filter(
      ({ direction, vips }) =>
        direction === 'ingress' && vips.includes(made.addresses[0]?.address ?? ''),
    )
    .map(({ backendAddress }) => backendAddress)
    .toSorted()

const resolvedAs =
  (reasons: Record<string, string>) =>
  ({ backends }: { backends: { nodes: { address: string; resolved: { reason: string } }[] } }) =>
    backends.nodes.every(
      ({ address, resolved }) => (reasons[address] ?? 'Resolved') === resolved.reason,
    )

describe('labels', () => {
  it('are put on the attachments of serving backends, and taken off with them', async () => {
    const [one, two] = [await endpoint(), await endpoint()]
    const made = await createSettled(installation, [one.address, two.address])
    await labelsUntil(
      (labels) =>
        labels[one.name]?.[labelOf(made)] === 'serving' &&
        labels[two.name]?.[labelOf(made)] === 'serving',
    )
    expect(servedBy(made)).toEqual([one.address, two.address].toSorted())
    const [rule] = (await rulesUntil(cluster(), () => true)).filter(isOf(made))
    expect(rule?.spec).toMatchObject({
      backendSelector: { matchLabels: { [labelOf(made)]: 'serving' } },
      backendPort: made.port,
    })
    await accepted(installation.api, UPDATE_BACKENDS, {
      loadBalancer: made.id,
      backends: [{ address: two.address, adminState: 'STANDBY' }],
    })
    await labelsUntil((labels) => labels[two.name]?.[labelOf(made)] === undefined)
    await installation.api.settled(made.id)
    expect(servedBy(made)).toEqual([one.address])
    await accepted(installation.api, DELETE, { id: made.id })
    await labelsUntil((labels) => labels[one.name]?.[labelOf(made)] === undefined)
  })

  it('of one load balancer leave those of another and foreign ones alone', async () => {
    const { address, name, namespace } = await endpoint()
    const foreign = { 'example.com/theirs': 'yes', app: 'web' }
    await cluster().writer.patch(
      VPC_ATTACHMENTS,
      { name, namespace },
      { metadata: { labels: foreign } },
    )
    const one = await createSettled(installation, [address])
    const two = await createSettled(installation, [address])
    const both = { ...foreign, [labelOf(one)]: 'serving', [labelOf(two)]: 'serving' }
    const now = await labelsUntil((labels) => Object.keys(labels[name] ?? {}).length === 4)
    expect(now.find(({ metadata }) => metadata.name === name)?.metadata.labels).toEqual(both)
    await accepted(installation.api, DELETE, { id: one.id })
    const after = await labelsUntil((labels) => labels[name]?.[labelOf(one)] === undefined)
    expect(after.find(({ metadata }) => metadata.name === name)?.metadata.labels).toEqual({
      ...foreign,
      [labelOf(two)]: 'serving',
    })
  })

  it('that somebody took off are put on again', async () => {
    const { address, name, namespace } = await endpoint()
    const made = await createSettled(installation, [address])
    const gone = { metadata: { labels: { [labelOf(made)]: null } } }
    await cluster().writer.patch(VPC_ATTACHMENTS, { name, namespace }, gone)
    await labelsUntil((labels) => labels[name]?.[labelOf(made)] === 'serving')
    await installation.api.settled(made.id)
  })

  it('are not put on a successor of the same name by mistake, but where it serves the address', async () => {
    const { address, name, namespace } = await endpoint()
    const made = await createSettled(installation, [address])
    await detach(cluster(), { name, namespace })
    await attach(cluster(), { addresses: ['fd20:1::dead'], name })
    await shown(installation, made, resolvedAs({ [address]: 'AddressUnknown' }))
    const now = await labelsUntil((labels) => labels[name] !== undefined)
    expect(now.find(({ metadata }) => metadata.name === name)?.metadata.labels ?? {}).toEqual({})
  })
})

describe('an attachment with several addresses', () => {
  it('serves only when all of them are wanted', async () => {
    const { addresses, name } = await endpoint('1', '2')
    const [one = '', two = ''] = addresses
    const other = await endpoint()
    const made = await createSettled(installation, [other.address, one])
    await shown(installation, made, resolvedAs({ [one]: 'AttachmentShared' }))
    expect(servedBy(made)).toEqual([other.address])
    await add(installation, made, two)
    await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
    expect(servedBy(made)).toEqual([one, two, other.address].toSorted())
    await accepted(installation.api, REMOVE_BACKENDS, { loadBalancer: made.id, addresses: [two] })
    await shown(installation, made, resolvedAs({ [one]: 'AttachmentShared' }))
    await labelsUntil((labels) => labels[name]?.[labelOf(made)] === undefined)
  })

  it('serves only while all of them are enabled', async () => {
    const { addresses } = await endpoint('1', '2')
    const [one = '', two = ''] = addresses
    const other = await endpoint()
    const made = await createSettled(installation, [other.address, one, two])
    expect(servedBy(made)).toHaveLength(3)
    await accepted(installation.api, UPDATE_BACKENDS, {
      loadBalancer: made.id,
      backends: [{ address: two, adminState: 'DISABLED' }],
    })
    const now = await shown(installation, made, ({ backends }) =>
      backends.nodes.some(({ resolved }) => resolved.reason === 'AttachmentShared'),
    )
    expect(now.status.phase).toBe('DEGRADED')
    await installation.api.settled(made.id)
    expect(servedBy(made)).toEqual([other.address])
  })

  it('that gets one more address serves no longer', async () => {
    const { address, name, namespace } = await endpoint()
    const other = await endpoint()
    const made = await createSettled(installation, [other.address, address])
    expect(servedBy(made)).toHaveLength(2)
    await cluster().writer.patch(
      VPC_ATTACHMENTS,
      { name, namespace },
      { spec: { interface: { addresses: [`${address}/128`, 'fd20:1::cc:9/128'] } } },
    )
    await shown(installation, made, resolvedAs({ [address]: 'AttachmentShared' }))
    await labelsUntil((labels) => labels[name]?.[labelOf(made)] === undefined)
  })
})

describe('a backend that an older load balancer uses for the same port', () => {
  it('says BackendsClaimed, and serves when the older one leaves', async () => {
    const [shared, alone] = [await endpoint(), await endpoint()]
    const older = await createSettled(installation, [shared.address])
    const younger = await createSettled(installation, [alone.address, shared.address], {
      protocol: { tcp: { port: older.port } },
    })
    const now = await shown(
      installation,
      younger,
      resolvedAs({ [shared.address]: 'BackendsClaimed' }),
    )
    expect(now.status.ready.status).toBe('TRUE')
    expect(servedBy(older)).toEqual([shared.address])
    const only = await createSettledBy(older.port, shared.address)
    const idle = await shown(
      installation,
      only,
      ({ status }) => status.provisioned.reason === 'BackendsClaimed',
    )
    expect(idle.status.ready).toMatchObject({ status: 'FALSE', reason: 'BackendsClaimed' })
    await accepted(installation.api, DELETE, { id: only.id })
    await accepted(installation.api, DELETE, { id: older.id })
    await shown(installation, younger, ({ status }) => status.phase === 'ACTIVE')
    expect(servedBy(younger)).toEqual([alone.address, shared.address].toSorted())
  })

  const createSettledBy = async (port: number, address: string) => {
    return create(installation, [address], { protocol: { tcp: { port } } })
  }
})

describe('bindings', () => {
  it('are left to the data plane', async () => {
    const { address } = await endpoint()
    const made = await createSettled(installation, [address])
    const bindings = await objectsUntil(cluster(), SERVICE_VIP_BINDINGS, (all) =>
      all.some((one) => Object(Object(one).spec).vipAddress === vipOf(made)),
    )
    const mine = bindings.filter((one) => Object(Object(one).spec).vipAddress === vipOf(made))
    expect(mine.map(({ metadata }) => metadata.labels?.['app.kubernetes.io/managed-by'])).toEqual([
      'galactic-router',
    ])
  })
})

describe('affinity', () => {
  it('says AffinityNotSupported where the schema has no field for it, and serves', async () => {
    const { address } = await endpoint()
    const made = await createSettled(installation, [address], { sessionAffinity: 'CLIENT_IP' })
    const now = await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
    expect(condition(now, 'AffinityHonoured')).toMatchObject({
      status: 'FALSE',
      reason: 'AffinityNotSupported',
    })
    const rules: NetworkRule[] = await rulesUntil(cluster(), (all) => all.some(isOf(made)))
    expect(rules.find(isOf(made))?.spec.sessionAffinity).toBeUndefined()
  })
})
