import { expect, test } from 'vitest'
import { identifyEither, identifyLoopback } from '../../../dev/start/identity.ts'
import { createIssuer, demoTokens } from '../../../dev/start/issuer.ts'
import { welcome } from '../../../dev/start/welcome.ts'

test('the tokens that are printed name a tenant of each project and an operator', async () => {
  const issuer = await createIssuer()
  const identify = identifyEither(identifyLoopback(['demo', 'other']), issuer.identify)
  const tokens = await demoTokens(issuer, ['demo', 'other'])
  const as = (name: string, where: string) =>
    identify(
      {
        headers: { host: '127.0.0.1:4000', authorization: `Bearer ${tokens.get(name)}` },
        remoteAddress: '192.0.2.1',
      },
      where,
    )
  const create = 'networking.datumapis.com/loadbalancers.create'
  const tenant = await as('demo', 'demo')
  expect(tenant?.email).toBe('tenant@demo.example.com')
  expect([...(tenant?.projects.keys() ?? [])]).toEqual(['demo'])
  expect(tenant?.projects.get('demo')).toContain(create)
  expect([...((await as('other', 'other'))?.projects.keys() ?? [])]).toEqual(['other'])
  const operator = await as('operator', '*')
  expect(operator?.actor.kind).toBe('OPERATOR')
  expect(operator?.projects.get('*')).toContain('networking.datumapis.com/regions.create')
  expect(operator?.projects.get('*')).not.toContain(create)
  const hours = ((tenant?.expiresAt ?? 0) - Date.now()) / 3_600_000
  expect(hours).toBeGreaterThan(11.9)
  expect(hours).toBeLessThan(12.1)

  const printed = welcome({
    ...{ url: 'http://127.0.0.1:4000', project: 'demo', vpcId: 'v', region: 'us-east-1' },
    ...{ backends: [], dataDir: '.data/', tokens, seconds: 1 },
    ...{ kubeconfig: '.data/kubeconfig', cluster: 'us-east-1-a' },
  })
  for (const [name, token] of tokens) {
    expect(printed).toContain(`${name.toUpperCase()}=${token}\n`)
  }
})

test('who has no token has to be on this machine, and a wrong token is not made good by that', async () => {
  const issuer = await createIssuer()
  const identify = identifyEither(identifyLoopback(['demo']), issuer.identify)
  const headers = { host: '127.0.0.1:4000' }
  expect(await identify({ headers, remoteAddress: '127.0.0.1' }, 'demo')).not.toBeNull()
  expect(await identify({ headers, remoteAddress: '192.0.2.1' }, 'demo')).toBeNull()
  const wrong = { ...headers, authorization: 'Bearer x.y.z' }
  expect(await identify({ headers: wrong, remoteAddress: '127.0.0.1' }, 'demo')).toBeNull()
})
