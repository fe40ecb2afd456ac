import { afterEach, beforeEach, expect, test } from 'vitest'
import { conditionOf, isTrue } from '../../../dev/dataplane/conditions.ts'
import { NETWORK_RULES, SERVICE_VIP_BINDINGS, VPC_ATTACHMENTS } from '../../../src/rules/objects.ts'
import { type Lab, openLab } from './lab.ts'

let lab: Lab
beforeEach(async () => {
  lab = await openLab({ dialect: 'selector' })
  await lab.attach('a1', 'fd20:1::1', 'n1')
  await lab.attach('a2', 'fd20:1::2', 'n2')
  await lab.label('a1', { app: 'web' })
})
afterEach(() => lab.close())

const condition = (rule: string, type: string) =>
  conditionOf(lab.rule(rule)?.status?.conditions, type)
const says = (rule: string, type: string, reason: string) =>
  lab.until(`${rule} ${type} ${reason}`, () => {
    const found = condition(rule, type)
    const current = found?.observedGeneration === lab.rule(rule)?.metadata.generation
    return found?.reason === reason && current && found
  })
const bindingsOf = (rule: string) =>
  [...lab.bindings.objects.values()].filter(
    ({ metadata }) => metadata.labels?.['galactic.datum.net/network-rule'] === rule,
  )

test('gateways and backend nodes report at the generation of the rule, again after each change', async () => {
  await lab.writeRule('r', {})
  expect((await says('r', 'g1/Programmed', 'Programmed')).status).toBe('True')
  await says('r', 'g2/Programmed', 'Programmed')
  expect((await says('r', 'n1/BackendsBound', 'Bound')).status).toBe('True')
  await lab.writeRule('r', { port: 81 })
  await lab.until('generation 2', () => lab.rule('r')?.metadata.generation === 2)
  await says('r', 'g1/Programmed', 'Programmed')
  await says('r', 'n1/BackendsBound', 'Bound')
  expect(condition('r', 'Accepted')?.observedGeneration).toBe(1)
})

test('the data plane writes the bindings itself, and takes them away with the rule', async () => {
  await lab.writeRule('r', {})
  const [binding] = await lab.until('bound', () => {
    const all = bindingsOf('r')
    return all.every(({ status }) => isTrue(status?.conditions, 'Bound')) && all.length > 0 && all
  })
  expect(binding?.spec).toEqual({
    targetRef: { kind: 'Node', name: 'n1' },
    vipAddress: '2001:db8::1',
    port: 80,
    protocol: 'tcp',
    backendAddress: 'fd20:1::1',
    backendPort: 80,
    egressKind: 'veth',
  })
  await lab.remove(NETWORK_RULES, 'r')
  await lab.until('rule gone', () => lab.rule('r') === undefined)
  await lab.until('bindings gone', () => bindingsOf('r').length === 0)
  await lab.until('withdrawn', () => lab.advertised('r').length === 0)
  expect(lab.plane.rows()).toEqual([])
})

test('a label put on an attachment adds it, and taken off removes it', async () => {
  await lab.writeRule('r', {})
  await says('r', 'n1/BackendsBound', 'Bound')
  await lab.label('a2', { app: 'web' })
  await says('r', 'n2/BackendsBound', 'Bound')
  await lab.label('a1', { app: null })
  await lab.until('n1 leaves', () => condition('r', 'n1/BackendsBound') === undefined)
  await lab.until('one binding', () => bindingsOf('r').length === 1)
})

test('several backends of one VPC on one node serve side by side', async () => {
  await lab.attach('a3', 'fd20:1::3', 'n1')
  await lab.label('a3', { app: 'web' })
  await lab.writeRule('r', {})
  await lab.until('two bindings', () => bindingsOf('r').length === 2)
  await says('r', 'n1/BackendsBound', 'Bound')
  expect(lab.plane.rows()).toHaveLength(4)
})

test('a rule without any backend is not loaded and not advertised', async () => {
  await lab.writeRule('r', { backendSelector: { matchLabels: { app: 'nobody' } } })
  expect((await says('r', 'g1/Programmed', 'InvalidRule')).status).toBe('False')
  expect(lab.advertised('r')).toEqual([])
})

test('a rule that loses its last backend is withdrawn', async () => {
  await lab.writeRule('r', {})
  await lab.until('advertised', () => lab.advertised('r').length === 2)
  await lab.label('a1', { app: null })
  await says('r', 'g1/Programmed', 'InvalidRule')
  await lab.until('withdrawn', () => lab.advertised('r').length === 0)
})

test('a backend that can not be resolved is left out and named; the others serve', async () => {
  await lab.writer.create(VPC_ATTACHMENTS, {
    metadata: { name: 'a4', namespace: 'v1', labels: { app: 'web' } },
    spec: { vpc: { name: 'vpc' }, interface: { name: 'eth0', addresses: ['fd20:1::4/128'] } },
  })
  await lab.writer.patchStatus(
    VPC_ATTACHMENTS,
    { name: 'a4', namespace: 'v1' },
    {
      status: { vpc: 'v1' },
    },
  )
  await lab.writeRule('r', {})
  const programmed = await says('r', 'g1/Programmed', 'BackendsUnresolved')
  expect(programmed.status).toBe('True')
  expect(programmed.message).toContain('v1/a4')
  await lab.until('advertised', () => lab.advertised('r').length === 2)
})

test('a backend serves the oldest rule that picks it; the next gets it when that one is gone', async () => {
  // Names decide among rules of the same second.
  await lab.writeRule('old', {})
  await says('old', 'n1/BackendsBound', 'Bound')
  await lab.writeRule('young', { vipAddresses: ['2001:db8::2'], port: 81 })
  const claimed = await says('young', 'n1/BackendsBound', 'BackendsClaimed')
  expect(claimed.message).toContain('old')
  expect((await says('young', 'g1/Programmed', 'InvalidRule')).message).toContain('old')
  await lab.remove(NETWORK_RULES, 'old')
  await says('young', 'n1/BackendsBound', 'Bound')
  await says('young', 'g1/Programmed', 'Programmed')
})

test('another backend port or another protocol claims nothing that is taken', async () => {
  await lab.writeRule('a', {})
  await lab.writeRule('b', { vipAddresses: ['2001:db8::2'], backendPort: 81 })
  await lab.writeRule('c', { vipAddresses: ['2001:db8::3'], protocol: 'udp' })
  await says('a', 'n1/BackendsBound', 'Bound')
  await says('b', 'n1/BackendsBound', 'Bound')
  await says('c', 'n1/BackendsBound', 'Bound')
})

test('a binding of somebody else that holds the row makes the own one say Conflict', async () => {
  await lab.bind('foreign', {})
  await lab.until('bound', () => isTrue(lab.binding('foreign')?.status?.conditions, 'Bound'))
  await lab.writeRule('r', {})
  await says('r', 'n1/BackendsBound', 'BindingsNotBound')
  const own = bindingsOf('r')[0]
  await lab.until('Conflict', () => {
    const found = lab.binding(own?.metadata.name ?? '')?.status?.conditions
    return conditionOf(found, 'Bound')?.reason === 'Conflict'
  })
  await lab.remove(SERVICE_VIP_BINDINGS, 'foreign')
  await says('r', 'n1/BackendsBound', 'Bound')
})

test('an IPv4 VIP is not loaded where IPv4 is not served, and the node is degraded', async () => {
  await lab.writeRule('r', { vipAddresses: ['198.51.100.1'] })
  expect((await says('r', 'g1/Programmed', 'LoadFailed')).status).toBe('False')
  await lab.until('degraded', () => {
    const ready = conditionOf(lab.gateway('g1')?.status?.conditions, 'Ready')
    return ready?.reason === 'EngineDegraded' && ready.message.includes('r')
  })
  expect(lab.advertised('r')).toEqual([])
})

test('where IPv4 is served, the rules of one load balancer share its backends', async () => {
  await lab.close()
  lab = await openLab({ dialect: 'selector', servesIPv4: true })
  await lab.attach('a1', 'fd20:1::1', 'n1')
  await lab.label('a1', { app: 'web' })
  await lab.writeRule('six', {}, 'lb1')
  await lab.writeRule('four', { vipAddresses: ['198.51.100.1'] }, 'lb1')
  await says('six', 'n1/BackendsBound', 'Bound')
  await says('four', 'n1/BackendsBound', 'Bound')
  await lab.writeRule('stranger', { vipAddresses: ['198.51.100.2'] }, 'lb2')
  await says('stranger', 'n1/BackendsBound', 'BackendsClaimed')
})

test('a rule of the other dialect is no rule until it is written anew; old bindings hold the rows', async () => {
  await lab.close()
  lab = await openLab()
  await lab.attach('a1', 'fd20:1::1', 'n1')
  await lab.label('a1', { app: 'web' })
  await lab.writeRule('r', {})
  await lab.bind('ours', {})
  await lab.until('bound', () => isTrue(lab.binding('ours')?.status?.conditions, 'Bound'))
  await lab.until('advertised', () => lab.advertised('r').length === 2)
  await lab.switchToSelector()
  await says('r', 'g1/Programmed', 'InvalidRule')
  await lab.until('withdrawn', () => lab.advertised('r').length === 0)
  await lab.writeRule('r', {})
  await says('r', 'g1/Programmed', 'Programmed')
  await says('r', 'n1/BackendsBound', 'BindingsNotBound')
  await lab.remove(SERVICE_VIP_BINDINGS, 'ours')
  await says('r', 'n1/BackendsBound', 'Bound')
  expect(condition('r', 'Accepted')?.observedGeneration).toBe(1)
})
