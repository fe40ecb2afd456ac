import { expect, test } from 'vitest'
import { identifyLoopback } from '../../../dev/start/identity.ts'
import type { Credentials } from '../../../src/server/caller.ts'

const identify = identifyLoopback(['demo', 'other'])
const local: Credentials = { headers: { host: '127.0.0.1:4000' }, remoteAddress: '127.0.0.1' }
const withHeaders = (headers: Credentials['headers']): Credentials => ({
  ...local,
  headers: { ...local.headers, ...headers },
})

test('a call from this machine without a token is the demo user, editor of both projects and operator', async () => {
  const caller = await identify(local, 'demo')
  expect([...(caller?.projects.keys() ?? [])]).toEqual(['demo', 'other', '*'])
  expect(caller?.projects.get('demo')).toContain('networking.datumapis.com/loadbalancers.create')
  expect(caller?.projects.get('*')).toContain('networking.datumapis.com/clusters.update')
  expect(await identify({ ...local, remoteAddress: '::ffff:127.0.0.1' }, 'demo')).not.toBeNull()
  expect(await identify(withHeaders({ host: 'localhost:4000' }), 'demo')).not.toBeNull()
  expect(await identify(withHeaders({ origin: 'http://127.0.0.1:4000' }), 'demo')).not.toBeNull()
})

test.each([
  ['from another machine', { ...local, remoteAddress: '192.0.2.1' }],
  ['with a token', withHeaders({ authorization: 'Bearer x' })],
  ['that a proxy passed on', withHeaders({ 'x-forwarded-for': '192.0.2.1' })],
  ['to a name that was bent to this machine', withHeaders({ host: 'evil.example:4000' })],
  ["by somebody else's page", withHeaders({ origin: 'https://evil.example' })],
  ['by a page of another port', withHeaders({ origin: 'http://127.0.0.1:8080' })],
])('a call %s is nobody', async (_, credentials) => {
  expect(await identify(credentials, 'demo')).toBeNull()
})
