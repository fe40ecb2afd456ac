import { expect, test } from 'vitest'
import { type Row, TranslationTable } from '../../../dev/dataplane/translation.ts'
import { LOAD_BALANCER_LABEL, type ServiceVIPBinding } from '../../../src/rules/objects.ts'

const keyed = { rows: 'keyed', shared: false } as const

function binding(
  name: string,
  spec: Partial<ServiceVIPBinding['spec']> = {},
  loadBalancer?: string,
): ServiceVIPBinding {
  return {
    apiVersion: 'network.datumapis.com/v1alpha1',
    kind: 'ServiceVIPBinding',
    metadata: {
      name,
      ...(loadBalancer === undefined ? {} : { labels: { [LOAD_BALANCER_LABEL]: loadBalancer } }),
    },
    spec: {
      targetRef: { kind: 'Node', name: 'n1' },
      vipAddress: '2001:db8::1',
      port: 80,
      protocol: 'tcp',
      backendAddress: 'fd20::1',
      backendPort: 80,
      egressKind: 'veth',
      ...spec,
    },
  }
}

function register(table: TranslationTable, one: ServiceVIPBinding): string | undefined {
  return table.register(one, 'v1', one.spec.vipAddress, one.spec.backendAddress ?? '')
}

function unregister(table: TranslationTable, one: ServiceVIPBinding): void {
  table.unregister(one, 'v1', one.spec.vipAddress, one.spec.backendAddress ?? '')
}

function ingress(table: TranslationTable): string[] {
  const to = ({ vips, vipPort, backendAddress }: Row) =>
    `${vips.join('+')}:${vipPort} -> ${backendAddress}`
  return table.rows.filter(({ direction }) => direction === 'ingress').map(to)
}

test('of two backends on one node and port the later registration silently wins', () => {
  const table = new TranslationTable(keyed)
  expect(register(table, binding('a'))).toBeUndefined()
  expect(register(table, binding('b', { backendAddress: 'fd20::2' }))).toBeUndefined()
  expect(ingress(table)).toEqual(['2001:db8::1:80 -> fd20::2'])
})

test('of two VIPs on one node and port the later one silently wins', () => {
  const table = new TranslationTable(keyed)
  register(table, binding('a'))
  register(table, binding('b', { vipAddress: '2001:db8::2' }))
  expect(ingress(table)).toEqual(['2001:db8::2:80 -> fd20::1'])
})

test('another node, protocol or port has rows of its own', () => {
  const table = new TranslationTable(keyed)
  register(table, binding('a'))
  register(table, binding('b', { targetRef: { kind: 'Node', name: 'n2' } }))
  register(table, binding('c', { protocol: 'udp' }))
  register(table, binding('d', { port: 81, backendPort: 81 }))
  expect(table.rows).toHaveLength(8)
})

test('unbinding the loser takes the row of the winner away', () => {
  const table = new TranslationTable(keyed)
  const [loser, winner] = [binding('a'), binding('b', { backendAddress: 'fd20::2' })]
  register(table, loser)
  register(table, winner)
  unregister(table, loser)
  expect(table.rows).toEqual([])
})

test('VIPs of one load balancer share a row where that is so, those of two do not', () => {
  const table = new TranslationTable({ rows: 'keyed', shared: true })
  const [six, four] = [binding('a', {}, 'lb1'), binding('b', { vipAddress: '198.51.100.1' }, 'lb1')]
  register(table, six)
  register(table, four)
  expect(ingress(table)).toEqual(['2001:db8::1+198.51.100.1:80 -> fd20::1'])
  unregister(table, six)
  expect(ingress(table)).toEqual(['198.51.100.1:80 -> fd20::1'])
  register(table, binding('c', { vipAddress: '198.51.100.2' }, 'lb2'))
  expect(ingress(table)).toEqual(['198.51.100.2:80 -> fd20::1'])
})

test('where rows are claimed the older binding keeps its own', () => {
  const table = new TranslationTable({ rows: 'claimed', shared: false })
  register(table, binding('a'))
  expect(register(table, binding('b', { backendAddress: 'fd20::2' }))).toBeUndefined()
  expect(register(table, binding('c', { vipAddress: '2001:db8::2' }))).toBe('a')
  unregister(table, binding('c', { vipAddress: '2001:db8::2' }))
  expect(ingress(table)).toEqual(['2001:db8::1:80 -> fd20::1', '2001:db8::1:80 -> fd20::2'])
})
