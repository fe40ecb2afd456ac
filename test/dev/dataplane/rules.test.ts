import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { conditionOf, isTrue } from '../../../dev/dataplane/conditions.ts'
import {
  BGP_ADVERTISEMENTS,
  DATA_PLANE_NAMESPACE,
  NETWORK_GATEWAYS,
  NETWORK_RULES,
  SERVICE_VIP_BINDINGS,
} from '../../../src/rules/objects.ts'
import { type Lab, openLab } from './lab.ts'

const FINALIZER = 'galactic.datum.net/networkrule-teardown'

let lab: Lab
beforeEach(async () => {
  lab = await openLab()
  await lab.attach('a1', 'fd20:1::1', 'n1')
  await lab.attach('a2', 'fd20:1::2', 'n2')
})
afterEach(() => lab.close())

const reasonOf = (gateway: string) =>
  conditionOf(lab.gateway(gateway)?.status?.conditions, 'Ready')?.reason

const live = (rule: string) =>
  lab
    .advertised(rule)
    .filter(({ metadata, status }) => isTrue(status?.conditions, 'Advertised', metadata.generation))

const advertisedTwice = (rule: string) =>
  lab.until(`${rule} advertised by both gateways`, () => live(rule).length === 2 && live(rule))

test('every gateway node says that its engine is healthy', async () => {
  await lab.until('g1', () => reasonOf('g1') === 'EngineHealthy')
  await lab.until('g2', () => isTrue(lab.gateway('g2')?.status?.conditions, 'Ready', 1))
  expect(lab.gateway('g1')?.spec).toEqual({ targetRef: { kind: 'Node', name: 'g1' } })
})

test('a rule gets the finalizer, is accepted, and each gateway advertises exactly its prefix', async () => {
  await lab.writeRule('r', {})
  const advertisements = await advertisedTwice('r')
  expect(lab.rule('r')?.metadata.finalizers).toEqual([FINALIZER])
  expect(conditionOf(lab.rule('r')?.status?.conditions, 'Accepted')).toMatchObject({
    status: 'True',
    reason: 'GatewayNodesRegistered',
    observedGeneration: 1,
  })
  expect(advertisements.map(({ metadata }) => metadata.name).sort()).toEqual(['r-g1-v6', 'r-g2-v6'])
  for (const { metadata, spec, status } of advertisements) {
    expect(spec.prefixes).toEqual(['2001:db8::1/128'])
    expect(isTrue(status?.conditions, 'Ready', metadata.generation)).toBe(true)
    expect(status?.advertisedPrefixes).toBe(1)
  }
  expect([...lab.plane.loaded()]).toEqual([
    ['g1', ['r']],
    ['g2', ['r']],
  ])
})

test('objects without a spec are as good as none, until they have one', async () => {
  const metadata = { name: 'empty', namespace: DATA_PLANE_NAMESPACE }
  for (const kind of [NETWORK_RULES, SERVICE_VIP_BINDINGS, BGP_ADVERTISEMENTS, NETWORK_GATEWAYS])
    await lab.writer.create(kind, { metadata })
  await lab.writeRule('r', {})
  await advertisedTwice('r')
  expect(lab.rule('empty')?.status).toBeUndefined()
  await lab.writeRule('empty', { vipAddresses: ['2001:db8::5'] })
  await advertisedTwice('empty')
})

test('Accepted keeps its first generation through later changes of the spec', async () => {
  await lab.writeRule('r', {})
  await advertisedTwice('r')
  await lab.writeRule('r', { vipAddresses: ['2001:db8::2'], port: 81 })
  await lab.until('the other prefix', () =>
    live('r').every(({ spec }) => spec.prefixes?.[0] === '2001:db8::2/128'),
  )
  expect(lab.rule('r')?.metadata.generation).toBe(2)
  expect(conditionOf(lab.rule('r')?.status?.conditions, 'Accepted')?.observedGeneration).toBe(1)
})

test('an advertisement that changed is advertised at its own new generation', async () => {
  await lab.writeRule('r', {})
  await advertisedTwice('r')
  await lab.writeRule('r', { vipAddresses: ['2001:db8::1', '2001:db8::2'] })
  await lab.until('two prefixes', () =>
    live('r').every(
      ({ metadata, status }) => metadata.generation === 2 && status?.advertisedPrefixes === 2,
    ),
  )
})

test('an advertisement deleted by hand is written again', async () => {
  await lab.writeRule('r', {})
  const [first] = await advertisedTwice('r')
  const name = first?.metadata.name ?? ''
  await lab.remove(BGP_ADVERTISEMENTS, name)
  await lab.until('another one', () =>
    live('r').some(
      ({ metadata }) => metadata.name === name && metadata.uid !== first?.metadata.uid,
    ),
  )
})

test('without a gateway a rule is refused with NoGatewayNodes, until one comes', async () => {
  await Promise.all([lab.plane.dropGateway('g1'), lab.plane.dropGateway('g2')])
  await lab.until('no gateways', () => lab.gateways.objects.size === 0)
  await lab.writeRule('r', {})
  await lab.until('NoGatewayNodes', () => {
    const accepted = conditionOf(lab.rule('r')?.status?.conditions, 'Accepted')
    return accepted?.status === 'False' && accepted.reason === 'NoGatewayNodes'
  })
  expect(lab.rule('r')?.metadata.finalizers ?? []).toEqual([])
  await lab.plane.addGateway('g3')
  await lab.until('advertised', () => live('r').length === 1)
  expect(isTrue(lab.rule('r')?.status?.conditions, 'Accepted')).toBe(true)
})

test('a gateway that leaves withdraws what it advertised, and its rules stay with the others', async () => {
  await lab.writeRule('r', {})
  await advertisedTwice('r')
  await lab.plane.dropGateway('g1')
  const [left] = await lab.until('one left', () => live('r').length === 1 && live('r'))
  expect(left?.metadata.name).toBe('r-g2-v6')
  expect(isTrue(lab.rule('r')?.status?.conditions, 'Accepted')).toBe(true)
})

test('a deleted rule is withdrawn everywhere before it goes', async () => {
  await lab.writeRule('r', {})
  await advertisedTwice('r')
  const release = lab.plane.hold('teardown', 'r')
  await lab.remove(NETWORK_RULES, 'r')
  await lab.until('deletion', () => lab.rule('r')?.metadata.deletionTimestamp)
  expect(live('r')).toHaveLength(2)
  release()
  await lab.until('gone', () => lab.rule('r') === undefined)
  await lab.until('withdrawn', () => lab.advertised('r').length === 0)
})

test('a rule whose last gateway left stays in deletion until a gateway is back', async () => {
  await lab.writeRule('r', {})
  await advertisedTwice('r')
  await Promise.all([lab.plane.dropGateway('g1'), lab.plane.dropGateway('g2')])
  await lab.until('withdrawn', () => lab.advertised('r').length === 0)
  await lab.remove(NETWORK_RULES, 'r')
  await lab.until('deletion', () => lab.rule('r')?.metadata.deletionTimestamp)
  // Something the data plane answers later than it would have answered the deletion.
  await lab.writeRule('later', {})
  await lab.until('NoGatewayNodes', () => lab.rule('later')?.status?.conditions?.length)
  expect(lab.rule('r')?.metadata.finalizers).toEqual([FINALIZER])
  await lab.plane.addGateway('g1')
  await lab.until('gone', () => lab.rule('r') === undefined)
})

describe('a rule that names a backend nobody has in this cluster', () => {
  const stranger = { address: 'fd20:1::99', port: 80 }
  const known = { address: 'fd20:1::1', port: 80 }

  test('is accepted and never advertised, without a word', async () => {
    await lab.writeRule('r', { backends: [known, stranger] })
    await lab.writeRule('witness', { vipAddresses: ['2001:db8::9'] })
    await advertisedTwice('witness')
    await lab.until('accepted', () => isTrue(lab.rule('r')?.status?.conditions, 'Accepted'))
    expect(lab.advertised('r')).toEqual([])
    expect(lab.plane.loaded().get('g1')).toEqual(['witness'])
    expect(reasonOf('g1')).toBe('EngineHealthy')
  })

  test('stays advertised with nothing behind it where it served before', async () => {
    await lab.writeRule('r', {})
    await advertisedTwice('r')
    await lab.writeRule('r', { backends: [known, stranger] })
    await lab.writeRule('witness', { vipAddresses: ['2001:db8::9'] })
    await advertisedTwice('witness')
    expect(lab.plane.loaded().get('g1')).toEqual(['witness'])
    expect(live('r')).toHaveLength(2)
  })

  test('serves as soon as that backend comes', async () => {
    await lab.writeRule('r', { backends: [known, stranger] })
    await lab.until('accepted', () => isTrue(lab.rule('r')?.status?.conditions, 'Accepted'))
    await lab.attach('a99', stranger.address, 'n9')
    await advertisedTwice('r')
  })

  test('is killed by an address of another VPC as by any other', async () => {
    await lab.attach('foreign', 'fd20:2::1', 'n1', 'v2')
    await lab.writeRule('r', { backends: [{ address: 'fd20:2::1', port: 80 }] })
    await lab.writeRule('witness', { vipAddresses: ['2001:db8::9'] })
    await advertisedTwice('witness')
    expect(lab.advertised('r')).toEqual([])
  })
})

describe('a rule that gateways fail to load', () => {
  test('degrades every gateway node for as long as it exists, and is advertised all the same', async () => {
    const twice = { address: 'fd20:1::1', port: 80 }
    await lab.writeRule('good', { vipAddresses: ['2001:db8::9'] })
    await lab.writeRule('bad', { backends: [twice, twice] })
    await lab.until('degraded', () => reasonOf('g1') === 'EngineDegraded')
    await lab.until('degraded', () => reasonOf('g2') === 'EngineDegraded')
    await advertisedTwice('bad')
    expect(lab.plane.loaded().get('g1')).toEqual(['good'])
    await lab.remove(NETWORK_RULES, 'bad')
    await lab.until('healthy', () => reasonOf('g1') === 'EngineHealthy')
  })

  test('is one with an IPv4 VIP, or with an IPv4 backend, where IPv4 is not served', async () => {
    await lab.writeRule('vip', { vipAddresses: ['198.51.100.1'] })
    await lab.until('degraded', () => reasonOf('g1') === 'EngineDegraded')
    await lab.remove(NETWORK_RULES, 'vip')
    await lab.until('healthy', () => reasonOf('g1') === 'EngineHealthy')
    await lab.attach('four', '10.0.0.1', 'n1')
    await lab.writeRule('backend', { backends: [{ address: '10.0.0.1', port: 80 }] })
    await lab.until('degraded', () => reasonOf('g1') === 'EngineDegraded')
  })
})

test('a rule name that is no label value leaves the rule unadvertised and the node says so', async () => {
  await lab.writeRule('x'.repeat(64), {})
  await lab.until('AdvertisementFailed', () => reasonOf('g1') === 'AdvertisementFailed')
})

test('a gateway says what a test has it say, and the truth again', async () => {
  await lab.until('healthy', () => reasonOf('g1') === 'EngineHealthy')
  lab.plane.setGatewayReady('g1', 'EngineReconcileFailed')
  await lab.until('said', () => reasonOf('g1') === 'EngineReconcileFailed')
  expect(reasonOf('g2')).toBe('EngineHealthy')
  lab.plane.setGatewayReady('g1', undefined)
  await lab.until('healthy', () => reasonOf('g1') === 'EngineHealthy')
})

test('a paused data plane answers nothing, and catches up when it is resumed', async () => {
  lab.plane.pause()
  await lab.writeRule('r', {})
  await lab.until('written', () => lab.rule('r'))
  expect(lab.rule('r')?.status).toBeUndefined()
  lab.plane.resume()
  await advertisedTwice('r')
})

test('a step held back for one rule holds no other back', async () => {
  const release = lab.plane.hold('accept', 'late')
  await lab.writeRule('late', {})
  await lab.writeRule('r', { vipAddresses: ['2001:db8::2'] })
  await advertisedTwice('r')
  expect(lab.rule('late')?.status).toBeUndefined()
  release()
  await advertisedTwice('late')
})

test('a data plane that starts again finds its rules as they are', async () => {
  await lab.writeRule('r', {})
  await advertisedTwice('r')
  const before = lab.rule('r')?.metadata.resourceVersion
  await lab.restartPlane()
  await lab.writeRule('witness', { vipAddresses: ['2001:db8::9'] })
  await advertisedTwice('witness')
  expect(lab.rule('r')?.metadata.resourceVersion).toBe(before)
  expect(lab.plane.loaded().get('g1')?.sort()).toEqual(['r', 'witness'])
})

test('a rule that lost its gateways says so, and is accepted anew by the next', async () => {
  await lab.writeRule('r', {})
  await advertisedTwice('r')
  await lab.writeRule('r', { port: 81 })
  await Promise.all(['g1', 'g2'].map((name) => lab.remove(NETWORK_GATEWAYS, name)))
  await lab.until('NoGatewayNodes', () => {
    return conditionOf(lab.rule('r')?.status?.conditions, 'Accepted')?.reason === 'NoGatewayNodes'
  })
  await lab.plane.addGateway('g1')
  await lab.until('accepted', () => isTrue(lab.rule('r')?.status?.conditions, 'Accepted', 2))
})
