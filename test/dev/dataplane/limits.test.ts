import { afterEach, expect, test } from 'vitest'
import { conditionOf, isTrue } from '../../../dev/dataplane/conditions.ts'
import { NETWORK_RULES } from '../../../src/rules/objects.ts'
import { type Lab, openLab } from './lab.ts'

let lab: Lab
afterEach(() => lab.close())

const ready = () => conditionOf(lab.gateway('g1')?.status?.conditions, 'Ready')?.reason
const advertised = (rule: string) =>
  lab
    .advertised(rule)
    .filter(({ metadata, status }) => isTrue(status?.conditions, 'Advertised', metadata.generation))

test('where IPv4 is served an IPv4 VIP is advertised as /32', async () => {
  lab = await openLab({ servesIPv4: true })
  await lab.attach('a1', 'fd20:1::1', 'n1')
  await lab.writeRule('r', { vipAddresses: ['198.51.100.1'] })
  await lab.until('advertised', () => advertised('r').length === 2)
  expect(
    lab
      .advertised('r')
      .map(({ metadata }) => metadata.name)
      .sort(),
  ).toEqual(['r-g1-v4', 'r-g2-v4'])
  expect(lab.advertised('r')[0]?.spec.prefixes).toEqual(['198.51.100.1/32'])
  expect(ready()).toBe('EngineHealthy')
})

test('past its last VIP row a gateway is degraded for everybody until there is room', async () => {
  lab = await openLab({ limits: { vipRows: 2 } })
  await lab.attach('a1', 'fd20:1::1', 'n1')
  for (const index of [1, 2, 3]) {
    await lab.writeRule(`r${index}`, { vipAddresses: [`2001:db8::${index}`] })
    await lab.until('advertised', () => advertised(`r${index}`).length === 2)
  }
  await lab.until('degraded', () => ready() === 'EngineDegraded')
  expect(lab.plane.loaded().get('g1')).toEqual(['r1', 'r2'])
  await lab.remove(NETWORK_RULES, 'r1')
  await lab.until('healthy', () => ready() === 'EngineHealthy')
  expect(lab.plane.loaded().get('g1')).toEqual(['r2', 'r3'])
})

test('steps take as long as they are told to', async () => {
  lab = await openLab({ delays: { accept: 150 } })
  await lab.attach('a1', 'fd20:1::1', 'n1')
  const begun = performance.now()
  await lab.writeRule('r', {})
  await lab.until('accepted', () => isTrue(lab.rule('r')?.status?.conditions, 'Accepted'))
  expect(performance.now() - begun).toBeGreaterThan(140)
})
