import { afterEach, beforeEach, expect, test } from 'vitest'
import { conditionOf, isTrue } from '../../../dev/dataplane/conditions.ts'
import type { Row } from '../../../dev/dataplane/translation.ts'
import { SERVICE_VIP_BINDINGS } from '../../../src/rules/objects.ts'
import { type Lab, openLab } from './lab.ts'

let lab: Lab
beforeEach(async () => {
  lab = await openLab()
  await lab.attach('a1', 'fd20:1::1', 'n1')
  await lab.attach('a2', 'fd20:1::2', 'n1')
})
afterEach(() => lab.close())

const boundAt = (name: string, generation: number) =>
  lab.until(`${name} bound`, () =>
    isTrue(lab.binding(name)?.status?.conditions, 'Bound', generation),
  )
const bound = (name: string) => conditionOf(lab.binding(name)?.status?.conditions, 'Bound')

const ingress = () => {
  const told = ({ node, vips, vipPort, backendAddress, backendPort }: Row) =>
    `${node} ${vips.join('+')} ${vipPort} -> ${backendAddress} ${backendPort}`
  return lab.plane
    .rows()
    .filter(({ direction }) => direction === 'ingress')
    .map(told)
}

test('a binding gets the finalizer and is bound at its own generation', async () => {
  await lab.bind('b', {})
  await boundAt('b', 1)
  expect(lab.binding('b')?.metadata.finalizers).toEqual([
    'galactic.datum.net/servicevipbinding-teardown',
  ])
  expect(lab.binding('b')?.status?.observedGeneration).toBe(1)
  expect(ingress()).toEqual(['n1 2001:db8::1 80 -> fd20:1::1 80'])
})

test('of two backends on one node and port the later one silently wins, and both say Bound', async () => {
  await lab.bind('b1', {})
  await boundAt('b1', 1)
  await lab.bind('b2', { vipAddress: '2001:db8::2', backendAddress: 'fd20:1::2' })
  await boundAt('b2', 1)
  expect(bound('b1')?.status).toBe('True')
  expect(ingress()).toEqual(['n1 2001:db8::2 80 -> fd20:1::2 80'])
})

test('unbinding the one that lost takes the row of the winner along', async () => {
  await lab.bind('b1', {})
  await boundAt('b1', 1)
  await lab.bind('b2', { vipAddress: '2001:db8::2', backendAddress: 'fd20:1::2' })
  await boundAt('b2', 1)
  await lab.remove(SERVICE_VIP_BINDINGS, 'b1')
  await lab.until('gone', () => lab.binding('b1') === undefined)
  expect(ingress()).toEqual([])
  expect(bound('b2')?.status).toBe('True')
})

test('an edited binding leaves its old rows where they were', async () => {
  await lab.bind('b', {})
  await boundAt('b', 1)
  await lab.bind('b', { port: 81, backendPort: 81 })
  await boundAt('b', 2)
  expect(ingress()).toEqual([
    'n1 2001:db8::1 80 -> fd20:1::1 80',
    'n1 2001:db8::1 81 -> fd20:1::1 81',
  ])
})

test('a binding without a backend fails to bind', async () => {
  await lab.writer.create(SERVICE_VIP_BINDINGS, {
    metadata: { name: 'b', namespace: 'galactic-system' },
    spec: {
      targetRef: { kind: 'Node', name: 'n1' },
      vipAddress: '2001:db8::1',
      port: 80,
      protocol: 'tcp',
      egressKind: 'veth',
    },
  })
  await lab.until('BindFailed', () => bound('b')?.reason === 'BindFailed')
  expect(bound('b')).toMatchObject({ status: 'False', observedGeneration: 1 })
})

test('a backend that is not on that node fails to bind until it is', async () => {
  await lab.bind('b', { targetRef: { kind: 'Node', name: 'n2' }, backendAddress: 'fd20:1::3' })
  await lab.until('BindFailed', () => bound('b')?.reason === 'BindFailed')
  await lab.attach('a3', 'fd20:1::3', 'n2')
  await boundAt('b', 1)
})

test('an address that two VPCs have on one node can not be bound', async () => {
  await lab.attach('twin', 'fd20:1::1', 'n1', 'v2')
  await lab.bind('b', {})
  await lab.until('BindFailed', () => bound('b')?.reason === 'BindFailed')
})

test('a binding whose backend vanished first stays in deletion until it is back', async () => {
  await lab.bind('b', {})
  await boundAt('b', 1)
  await lab.detach('a1')
  await lab.bind('other', { vipAddress: '2001:db8::9', backendAddress: 'fd20:1::1' })
  await lab.until('the data plane saw it go', () => bound('other')?.reason === 'BindFailed')
  await lab.remove(SERVICE_VIP_BINDINGS, 'b')
  await lab.until('deletion', () => lab.binding('b')?.metadata.deletionTimestamp)
  // Something answered later than the deletion would have been.
  await lab.bind('witness', { vipAddress: '2001:db8::8', backendAddress: 'fd20:1::2' })
  await boundAt('witness', 1)
  expect(lab.binding('b')?.metadata.finalizers).toHaveLength(1)
  await lab.attach('a1', 'fd20:1::1', 'n1')
  await lab.until('gone', () => lab.binding('b') === undefined)
})

test('the step of a binding can be held back by its VIP', async () => {
  const release = lab.plane.hold('bind', '2001:db8::1')
  await lab.bind('b', {})
  await lab.bind('witness', { vipAddress: '2001:db8::2', backendAddress: 'fd20:1::2' })
  await boundAt('witness', 1)
  expect(lab.binding('b')?.status).toBeUndefined()
  release()
  await boundAt('b', 1)
})

test('VIPs of one load balancer share a backend where IPv4 is served', async () => {
  await lab.close()
  lab = await openLab({ servesIPv4: true })
  await lab.attach('a1', 'fd20:1::1', 'n1')
  await lab.bind('b6', {}, 'lb1')
  await lab.bind('b4', { vipAddress: '198.51.100.1' }, 'lb1')
  await boundAt('b6', 1)
  await boundAt('b4', 1)
  expect(ingress()).toHaveLength(1)
  expect(lab.plane.rows()[0]?.vips.sort()).toEqual(['198.51.100.1', '2001:db8::1'])
})
