import { createHmac } from 'node:crypto'
import { exportSPKI, importJWK } from 'jose'
import { beforeAll, expect, test } from 'vitest'
import { byClaims } from '../../../src/server/identity/authorize.ts'
import { identifyBearer } from '../../../src/server/identity/bearer.ts'
import { IssuerKeys } from '../../../src/server/identity/keys.ts'
import { Tokens } from '../../../src/server/identity/tokens.ts'
import { AUDIENCE, type Issuer, startIssuer } from './issuer.ts'

let issuer: Issuer
beforeAll(async () => {
  issuer = await startIssuer()
})

const CREATE = 'networking.datumapis.com/loadbalancers.create'
const GET = 'networking.datumapis.com/loadbalancers.get'

/** Identifies at a time that tests may move. */
function identifying(of: { url: string } = issuer, jwksUrl?: string) {
  const time = { now: Date.now() }
  const now = () => time.now
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  const keys = new IssuerKeys({ issuer: of.url, jwksUrl, onError, now })
  const tokens = new Tokens({ issuer: of.url, audience: AUDIENCE, keys: keys.get, now })
  const identify = identifyBearer(tokens, byClaims)
  const as = async (token: string | undefined, where = 'alpha') => {
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return identify({ headers: authorization, remoteAddress: undefined }, where)
  }
  return { time, errors, as }
}

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')

test('a good token names its subject and what they may do where', async () => {
  const { as, time } = identifying()
  const permissions = [`alpha:${CREATE}`, `alpha:${GET}`, `beta:${GET}`, `*:${GET}`]
  const caller = await as(await issuer.issue({ permissions }))
  expect(caller).toMatchObject({
    subject: 'u-1',
    email: 'alice@example.com',
    actor: { kind: 'USER', name: 'alice@example.com' },
  })
  expect(caller?.projects).toEqual(
    new Map([
      ['alpha', new Set([CREATE, GET])],
      ['beta', new Set([GET])],
      ['*', new Set([GET])],
    ]),
  )
  expect(caller?.expiresAt).toBeGreaterThan(time.now)
})

test('whoever acts for the platform, or is a program, is recorded as such', async () => {
  const { as } = identifying()
  const person = await issuer.issue()
  expect((await as(person, '*'))?.actor.kind).toBe('OPERATOR')
  const program = await issuer.issue({ sub: 'ci', client_id: 'ci', email: undefined })
  expect((await as(program))?.actor).toEqual({ kind: 'SERVICE_ACCOUNT', name: 'ci' })
})

test('what is no entry of a project and a permission grants nothing', async () => {
  const { as } = identifying()
  const wrong = [
    'alpha',
    `:${GET}`,
    `alpha:`,
    `al pha:${GET}`,
    `**:${GET}`,
    7,
    null,
    { alpha: GET },
  ]
  for (const permissions of [wrong, `alpha:${GET}`, { alpha: [GET] }, null]) {
    expect((await as(await issuer.issue({ permissions })))?.projects).toEqual(new Map())
  }
})

test('tokens of others, for others, of other times or without a subject are refused', async () => {
  const { as } = identifying()
  expect(await as(await issuer.issue())).not.toBeNull()
  const refused = {
    issuer: await issuer.issue({ iss: 'https://elsewhere.example.com' }),
    'no issuer': await issuer.issue({ iss: undefined }),
    audience: await issuer.issue({ aud: 'another-api' }),
    'no audience': await issuer.issue({ aud: undefined }),
    expired: await issuer.issue({}, { expires: -31 }),
    early: await issuer.issue({}, { after: 120 }),
    endless: await issuer.issue({ exp: undefined }),
    nobody: await issuer.issue({ sub: undefined }),
    empty: await issuer.issue({ sub: '' }),
    'none at all': undefined,
    words: 'not a token',
    dots: '..',
  }
  for (const [why, token] of Object.entries(refused)) {
    expect([why, await as(token)]).toEqual([why, null])
  }
})

test('clocks may differ by half a minute', async () => {
  const { as } = identifying()
  expect(await as(await issuer.issue({}, { expires: -20 }))).not.toBeNull()
  expect(await as(await issuer.issue({}, { after: 20 }))).not.toBeNull()
})

test('a token that was good is refused once it has expired', async () => {
  const { as, time } = identifying()
  const token = await issuer.issue({}, { expires: 5 })
  expect(await as(token)).not.toBeNull()
  time.now += 36_000
  expect(await as(token)).toBeNull()
})

test('`none`, shared secrets, altered claims and signatures of other keys are refused', async () => {
  const { as } = identifying()
  const good = await issuer.issue()
  const [header = '', payload = '', signature = ''] = good.split('.')
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString())
  const publicKey = await importJWK(issuer.publicKey(), 'RS256', { extractable: true })
  if (publicKey instanceof Uint8Array) throw new Error('an RSA key is no secret')
  // The classic: the public key taken for a shared secret.
  const signed = `${base64({ alg: 'HS256', kid: 'first' })}.${payload}`
  const hmac = createHmac('sha256', await exportSPKI(publicKey))
    .update(signed)
    .digest('base64url')
  const other = await startIssuer()
  const tokens = [
    `${base64({ alg: 'none' })}.${payload}.`,
    `${base64({ alg: 'none', kid: 'first' })}.${payload}.${signature}`,
    `${signed}.${hmac}`,
    `${header}.${base64({ ...claims, sub: 'admin' })}.${signature}`,
    `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
    `${header}.${payload}.`,
    await other.issue({ iss: issuer.url }),
    `${base64({ alg: 'RS256', kid: 'first', crit: ['b64'], b64: false })}.${payload}.${signature}`,
    `${base64({ alg: 'RS256', kid: 'first', jwk: other.publicKey() })}.${payload}.${signature}`,
  ]
  for (const token of tokens) expect([token, await as(token)]).toEqual([token, null])
})

test('a new key is found, and one that was withdrawn is forgotten', async () => {
  const rotating = await startIssuer()
  const { as, time } = identifying(rotating)
  const old = await rotating.issue()
  expect(await as(old)).not.toBeNull()
  await rotating.addKey('second')
  const fresh = await rotating.issue({}, { kid: 'second' })
  // Within the cool-down it isn't looked for.
  expect(await as(fresh)).toBeNull()
  time.now += 10_001
  expect(await as(fresh)).not.toBeNull()
  rotating.withdrawKey('first')
  time.now += 600_001
  const later = { now: time.now }
  // What is known is used while it is fetched anew; from then on the old key is unknown.
  await as(await rotating.issue({}, { kid: 'second', ...later }))
  await expect.poll(() => rotating.state.fetches).toBe(3)
  await expect
    .poll(async () => as(await rotating.issue({ jti: `${Math.random()}` }, later)))
    .toBeNull()
})

test('made-up keys do not flood the issuer', async () => {
  const asked = await startIssuer()
  const { as } = identifying(asked)
  await as(await asked.issue())
  const payload = (await asked.issue()).split('.')[1]
  const tokens = Array.from(
    { length: 50 },
    (_, index) => `${base64({ alg: 'RS256', kid: `made-up-${index}` })}.${payload}.AAAA`,
  )
  expect(await Promise.all(tokens.map((token) => as(token)))).toEqual(tokens.map(() => null))
  expect(asked.state.fetches).toBe(1)
})

test('while the issuer is out of reach known keys serve on, and others can not be told', async () => {
  const failing = await startIssuer()
  const { as, time, errors } = identifying(failing)
  const unavailable = { extensions: { code: 'INTERNAL_SERVER_ERROR', http: { status: 503 } } }
  failing.state.failing = true
  const first = await failing.issue()
  await expect(as(first)).rejects.toMatchObject(unavailable)
  expect(errors).toHaveLength(1)
  // Nor is it asked again by every request.
  await expect(as(first)).rejects.toMatchObject(unavailable)
  expect(errors).toHaveLength(1)
  failing.state.failing = false
  time.now += 10_001
  expect(await as(first)).not.toBeNull()
  failing.state.failing = true
  time.now += 3_600_000
  expect(await as(await failing.issue({}, { now: time.now }))).not.toBeNull()
  await failing.addKey('unknown')
  time.now += 10_001
  const unknown = await failing.issue({}, { kid: 'unknown', now: time.now })
  await expect(as(unknown)).rejects.toMatchObject(unavailable)
})

test('a discovery document of another issuer is not believed', async () => {
  const imposed = { url: issuer.url.replace('127.0.0.1', 'localhost') }
  const { as, errors } = identifying(imposed)
  await expect(as(await issuer.issue({ iss: imposed.url }))).rejects.toBeDefined()
  expect(String(errors[0])).toContain('another issuer')
  const given = identifying(imposed, `${issuer.url}/keys`)
  expect(await given.as(await issuer.issue({ iss: imposed.url }))).not.toBeNull()
})
