import { expect, test } from 'vitest'
import { GatewayEngine, type Load } from '../../../dev/dataplane/engine.ts'

const limits = { servesIPv4: false, vipRows: 4096, rulesPerVpc: 64, backends: 64 }

function load(rule: string, overrides: Partial<Load> = {}): Load {
  return {
    rule,
    vpc: 'v1',
    protocol: 'tcp',
    port: 80,
    vips: ['2001:db8::1'],
    backends: [{ address: 'fd20::1', port: 80 }],
    ...overrides,
  }
}

test('the same backend twice is an error, and what was loaded before stays loaded', () => {
  const engine = new GatewayEngine(limits)
  expect(engine.apply(load('a'))).toBeUndefined()
  const twice = { address: 'fd20::2', port: 80 }
  expect(engine.apply(load('a', { backends: [twice, twice] }))).toContain('duplicate')
  expect(engine.active.get('a')?.backends).toEqual([{ address: 'fd20::1', port: 80 }])
  expect([...engine.errors.keys()]).toEqual(['a'])
})

test('64 backends are loaded and 65 are not', () => {
  const backends = Array.from({ length: 65 }, (_, index) => ({
    address: `fd20::${index}`,
    port: 80,
  }))
  const engine = new GatewayEngine(limits)
  expect(engine.apply(load('a', { backends: backends.slice(0, 64) }))).toBeUndefined()
  expect(engine.apply(load('a', { backends }))).toContain('64')
})

test('no backend at all is an error', () => {
  expect(new GatewayEngine(limits).apply(load('a', { backends: [] }))).toContain('no backends')
})

test('an IPv4 VIP or backend is an error where IPv4 is not served', () => {
  const engine = new GatewayEngine(limits)
  expect(engine.apply(load('a', { vips: ['198.51.100.1'] }))).toContain('198.51.100.1')
  const backends = [{ address: '10.0.0.1', port: 80 }]
  expect(engine.apply(load('b', { backends }))).toContain('10.0.0.1')
  const serving = new GatewayEngine({ ...limits, servesIPv4: true })
  expect(serving.apply(load('a', { vips: ['198.51.100.1'] }))).toBeUndefined()
})

test('past the last VIP row a rule finds no room until another goes', () => {
  const engine = new GatewayEngine({ ...limits, vipRows: 2 })
  engine.apply(load('a'))
  engine.apply(load('b'))
  expect(engine.apply(load('c'))).toContain('2 rows')
  // The rule that has rows already may be loaded again.
  expect(engine.apply(load('b', { port: 81 }))).toBeUndefined()
  engine.remove('a')
  expect(engine.apply(load('c'))).toBeUndefined()
  expect(engine.errors.size).toBe(0)
})

test('a VPC has a number of rules on a gateway of its own', () => {
  const engine = new GatewayEngine({ ...limits, rulesPerVpc: 1 })
  engine.apply(load('a'))
  expect(engine.apply(load('b'))).toContain('quota')
  expect(engine.apply(load('c', { vpc: 'v2' }))).toBeUndefined()
  expect(engine.apply(load('a', { port: 81 }))).toBeUndefined()
})
