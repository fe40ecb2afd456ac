import { expect, test } from 'vitest'
import { previewFlow } from '../../src/domain/flows/preview.ts'
import type { LoadBalancerRecord } from '../../src/domain/records.ts'

/** What of a record a preview rests on. */
const loadBalancer = {
  port: 80,
  protocol: 'TCP',
  sessionAffinity: 'CLIENT_IP',
  backends: ['a', 'b', 'c'].map((id, index) => ({ id, address: `fd00::${index + 1}` })),
} as LoadBalancerRecord

const client = { address: '2001:db8::1', port: 40_000 }
const preview = (...serving: Parameters<typeof previewFlow>[1]) =>
  previewFlow(loadBalancer, serving, client)

test('clusters with the same table answer together, those of most of them first', () => {
  const answers = preview(
    { affinity: 'NONE', backends: ['c'] },
    { affinity: 'NONE', backends: ['a', 'b'] },
    { affinity: 'NONE', backends: ['b', 'a'] },
  )
  expect(answers).toMatchObject([
    { clusters: 2, share: 2 / 3 },
    { clusters: 1, share: 1 / 3, backend: { id: 'c' } },
  ])
})

test('the same table with another affinity is another answer', () => {
  const answers = preview(
    { affinity: 'NONE', backends: ['a', 'b'] },
    { affinity: 'CLIENT_IP', backends: ['a', 'b'] },
  )
  expect(answers).toMatchObject([
    { clusters: 1, hashedOver: ['CLIENT_ADDRESS', 'CLIENT_PORT'] },
    { clusters: 1, hashedOver: ['CLIENT_ADDRESS'] },
  ])
})

test('backends that were removed since a cluster was heard of are in no table', () => {
  expect(preview({ affinity: 'NONE', backends: ['gone'] })).toMatchObject([
    { backend: null, slot: null, clusters: 0, share: 0 },
  ])
  expect(preview({ affinity: 'NONE', backends: ['gone', 'b'] })).toMatchObject([
    { backend: { id: 'b' }, clusters: 1, share: 1 },
  ])
})

test('the port is needed where any cluster hashes it', () => {
  const serving = [
    { affinity: 'CLIENT_IP', backends: ['a'] },
    { affinity: 'NONE', backends: ['b'] },
  ] as const
  const unknown = { address: client.address, port: undefined }
  const clusters = serving.map(({ affinity, backends }) => ({ affinity, backends: [...backends] }))
  expect(previewFlow(loadBalancer, clusters, unknown)).toBe('PORT_NEEDED')
  expect(previewFlow(loadBalancer, clusters.slice(0, 1), unknown)).toMatchObject([{ clusters: 1 }])
  expect(previewFlow(loadBalancer, [], unknown)).toMatchObject([{ backend: null }])
})
