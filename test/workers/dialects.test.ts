import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { servingLabel } from '../../src/rules/names.ts'
import {
  INSTANCE_LABEL,
  LOAD_BALANCER_LABEL,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
  VPC_ATTACHMENTS,
  type VpcAttachment,
} from '../../src/rules/objects.ts'
import { accepted, UPDATE } from '../api/operations.ts'
import { useInstallation } from '../support/installation.ts'
import { objectsUntil, rulesIn, rulesUntil } from '../support/objects.ts'
import {
  bindingsUntil,
  condition,
  createSettled,
  isOf,
  listedIn,
  shown,
  storedUntil,
  storeId,
  vipOf,
  witness,
} from './scene.ts'

const clusters = ['a', 'b', 'c', 'd'].map((letter) => ({
  name: `us-east-1-${letter}`,
  region: 'us-east-1',
  servesIPv4: false,
}))
const installation = useInstallation({ clusters, limits: { rereadSchema: 150 } })
const cluster = (letter: string) => installation.fleet.get(`us-east-1-${letter}`)

describe('a cluster whose rules become selectors', () => {
  it('is followed: labels, then the same rule, then our bindings go when the data plane has its own', async () => {
    const addresses = installation.addresses('us-east-1-a')
    const made = await createSettled(installation, addresses)
    const label = servingLabel(storeId(made.id))
    const [before] = (await rulesIn(cluster('a'))).filter(isOf(made))
    const ours = await bindingsUntil(cluster('a'), (all) => all.length >= 2)
    expect(ours.every(({ metadata }) => metadata.labels?.[INSTANCE_LABEL])).toBe(true)
    const rules = witness(cluster('a'), 'networkrules')
    const bindings = witness(cluster('a'), 'servicevipbindings')

    await cluster('a').upgrade('selector', ['schema'])
    const rewritten = await rulesUntil(cluster('a'), (all) =>
      all.some((rule) => isOf(made)(rule) && 'backendSelector' in rule.spec),
    )
    const labelled = await objectsUntil<VpcAttachment>(
      cluster('a'),
      VPC_ATTACHMENTS,
      (all) => all.filter(({ metadata }) => metadata.labels?.[label] === 'serving').length === 2,
      {},
    )
    const last = Math.max(
      ...labelled
        .filter(({ metadata }) => metadata.labels?.[label])
        .map(({ metadata }) => Number(metadata.resourceVersion)),
    )
    const spec = rules.seen.find(
      ({ object }) => isOf(made)(object) && 'backendSelector' in object.spec,
    )
    expect(Number(spec?.object.metadata.resourceVersion)).toBeGreaterThan(last)
    // The old data plane still runs, and what it has of us still stands.
    expect(await bindingsUntil(cluster('a'), () => true)).toHaveLength(ours.length)

    await cluster('a').upgrade('selector', ['data plane'])
    const own = await bindingsUntil(
      cluster('a'),
      (all) => all.length === 2 && all.every(({ metadata }) => !metadata.labels?.[INSTANCE_LABEL]),
    )
    expect(own.map(({ spec }) => spec.backendAddress).toSorted()).toEqual(addresses.toSorted())
    await shown(
      installation,
      made,
      ({ status }) => status.phase === 'ACTIVE' && status.provisioned.status === 'TRUE',
    )
    bindings.end()
    rules.end()
    for (const { name } of ours.map(({ metadata }) => metadata)) {
      const gone = bindings.seen.findIndex(
        ({ type, name: other }) => type === 'DELETED' && other === name,
      )
      const node = ours.find(({ metadata }) => metadata.name === name)?.spec.targetRef.name
      const came = bindings.seen.findIndex(
        ({ type, object }) =>
          type === 'ADDED' &&
          object.spec.targetRef.name === node &&
          object.metadata.labels?.[INSTANCE_LABEL] === undefined,
      )
      expect(came).toBeGreaterThanOrEqual(0)
      expect(gone).toBeGreaterThan(came)
    }
    const [after] = rewritten.filter(isOf(made))
    expect(after?.metadata.uid).toBe(before?.metadata.uid)
    expect(
      rules.seen.filter(({ type, object }) => type === 'DELETED' && isOf(made)(object)),
    ).toEqual([])
    const rows = cluster('a')
      .dataPlane.rows()
      .filter(({ vips, direction }) => direction === 'ingress' && vips.includes(vipOf(made)))
    expect(rows.map(({ backendAddress }) => backendAddress).toSorted()).toEqual(
      addresses.toSorted(),
    )
    expect(
      own.every(({ metadata }) => metadata.labels?.[LOAD_BALANCER_LABEL] === storeId(made.id)),
    ).toBe(true)
  })
})

describe('a write of the wrong dialect', () => {
  it('is recognised, and the rule written in the right one at once', async () => {
    const made = await createSettled(installation, installation.addresses('us-east-1-b'))
    await cluster('b').upgrade('selector')
    const port = made.port + 20_000
    await accepted(installation.api, UPDATE, { id: made.id, protocol: { tcp: { port } } })
    const began = performance.now()
    const rules = await rulesUntil(cluster('b'), (all) =>
      all.some((rule) => isOf(made)(rule) && rule.spec.port === port),
    )
    expect(performance.now() - began).toBeLessThan(2_000)
    expect(rules.find(isOf(made))?.spec).toMatchObject({ port, backendPort: port })
    await installation.api.settled(made.id)
  })
})

describe('a cluster whose rules can tell an affinity', () => {
  it('is told it from then on', async () => {
    const made = await createSettled(installation, installation.addresses('us-east-1-c'), {
      sessionAffinity: 'CLIENT_IP',
    })
    const without = await shown(
      installation,
      made,
      (now) => condition(now, 'AffinityHonoured')?.reason === 'AffinityNotSupported',
    )
    expect(without.status).toMatchObject({ phase: 'ACTIVE', ready: { status: 'TRUE' } })
    const crd = new URL('../../dev/crds/affinity/networkrules.yaml', import.meta.url)
    cluster('c').server.storage.setCrd(await readFile(crd, 'utf8'))
    const affinityOf = async (affinity: string | undefined) =>
      rulesUntil(cluster('c'), (all) =>
        all.some((rule) => isOf(made)(rule) && rule.spec.sessionAffinity === affinity),
      )
    await affinityOf('ClientIP')
    await shown(installation, made, (now) => condition(now, 'AffinityHonoured')?.status === 'TRUE')
    await accepted(installation.api, UPDATE, {
      id: made.id,
      sessionAffinity: 'CLIENT_IP_AND_PROTOCOL',
    })
    await affinityOf('ClientIPAndProtocol')
    await accepted(installation.api, UPDATE, { id: made.id, reset: ['SESSION_AFFINITY'] })
    await affinityOf(undefined)
    await installation.api.settled(made.id)
  })
})

describe('a cluster without a schema for rules', () => {
  it('says SchemaMissing while its rules stay, and goes on when it is back', async () => {
    const made = await createSettled(installation, installation.addresses('us-east-1-d'))
    const crd = new URL('../../dev/crds/networkrules.yaml', import.meta.url)
    const text = await readFile(crd, 'utf8')
    cluster('d').server.storage.setCrd(
      text.replace('backends:', 'others:').replace('required: [backends,', 'required: ['),
    )
    await storedUntil(
      () => installation.store.prisma.cluster.findUniqueOrThrow({ where: { name: 'us-east-1-d' } }),
      ({ dialect }) => dialect === null,
    )
    await shown(installation, made, ({ status }) => status.provisioned.reason === 'SchemaMissing')
    expect((await rulesIn(cluster('d'))).filter(isOf(made))).toHaveLength(1)
    cluster('d').server.storage.setCrd(text)
    await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
    const [rule] = (await rulesIn(cluster('d'))).filter(isOf(made))
    expect(listedIn(rule)).toHaveLength(2)
  })

  it('lets a binding stand that is written while its definition lacks a field, and makes it whole afterwards', async () => {
    const made = await createSettled(installation, installation.addresses('us-east-1-d'))
    const { cluster: client, server } = cluster('d')
    const bound = async () =>
      (await client.list<ServiceVIPBinding>(SERVICE_VIP_BINDINGS))
        .filter(({ spec }) => spec.vipAddress === vipOf(made))
        .map(({ metadata: { name, namespace, uid, deletionTimestamp } }) => ({
          ...{ name, namespace, uid, deletionTimestamp },
        }))
    const before = await bound()
    const crd = new URL('../../dev/crds/servicevipbindings.yaml', import.meta.url)
    const text = await readFile(crd, 'utf8')
    server.storage.setCrd(text.replace('backendPort:', 'anotherPort:'))
    for (const { name, namespace = '' } of before)
      await client.merge(
        SERVICE_VIP_BINDINGS,
        { name, namespace },
        { metadata: { labels: { seen: 'anew' } } },
      )
    await shown(installation, made, ({ status }) => status.provisioned.reason === 'SchemaMissing')
    expect(await bound()).toEqual(before)
    server.storage.setCrd(text)
    await shown(installation, made, ({ status }) => status.provisioned.reason === 'InEffect')
    expect(await bound()).toEqual(before)
  })

  it('lets its bindings stand while their definition lacks a field, also for a worker that begins meanwhile', async () => {
    const made = await createSettled(installation, installation.addresses('us-east-1-d'))
    const bound = async () =>
      (await cluster('d').cluster.list<ServiceVIPBinding>(SERVICE_VIP_BINDINGS))
        .filter(({ spec }) => spec.vipAddress === vipOf(made))
        .map(({ metadata: { uid, deletionTimestamp } }) => ({ uid, deletionTimestamp }))
    const before = await bound()
    const crd = new URL('../../dev/crds/servicevipbindings.yaml', import.meta.url)
    const text = await readFile(crd, 'utf8')
    cluster('d').server.storage.setCrd(text.replace('backendPort:', 'anotherPort:'))
    await installation.restartWorkers()
    await shown(installation, made, ({ status }) => status.provisioned.reason === 'SchemaMissing')
    expect(await bound()).toEqual(before)
    cluster('d').server.storage.setCrd(text)
    await shown(installation, made, ({ status }) => status.provisioned.reason === 'InEffect')
    expect(await bound()).toHaveLength(before.length)
  })
})
