import { expect, test } from 'vitest'
import { byReviews } from '../../../src/server/identity/reviews.ts'
import type { Token } from '../../../src/server/identity/tokens.ts'
import { listen } from './issuer.ts'

const GROUP = 'networking.datumapis.com'
const PROJECT = [`${GROUP}/loadbalancers.get`, `${GROUP}/ipv4reservations.use`]
const OPERATORS = [`${GROUP}/regions.create`]

const tokenOf = (text: string): Token => ({
  text,
  subject: text,
  email: null,
  expiresAt: Number.MAX_SAFE_INTEGER,
  claims: {},
})

type Asked = { path: string; authorization: string | undefined; attributes: unknown }
type Answer = { status: number; body: unknown }
const allowed: Answer = { status: 201, body: { status: { allowed: true } } }

/** A control plane that answers reviews as it is told, and the reviewing of it. */
async function reviewing(answer: (asked: Asked) => Answer) {
  const asked: Asked[] = []
  const state = { answer }
  const { url } = await listen(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { kind, apiVersion, spec } = JSON.parse(Buffer.concat(chunks).toString())
    expect([kind, apiVersion]).toEqual(['SelfSubjectAccessReview', 'authorization.k8s.io/v1'])
    const { authorization } = request.headers
    const one = { path: request.url ?? '', authorization, attributes: spec.resourceAttributes }
    asked.push(one)
    const { status, body } = state.answer(one)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  const time = { now: 0 }
  const errors: unknown[] = []
  const authorize = byReviews({
    url,
    permissions: { project: PROJECT, operators: OPERATORS },
    onError: (error) => void errors.push(error),
    now: () => time.now,
  })
  return { authorize, asked, state, time, errors }
}

test("a project's control plane is asked with the caller's own token, for each permission", async () => {
  const { authorize, asked } = await reviewing(({ attributes }) =>
    JSON.stringify(attributes).includes('loadbalancers')
      ? allowed
      : { status: 201, body: { status: { allowed: false } } },
  )
  const grants = await authorize(tokenOf('alice'), 'alpha')
  expect(grants).toEqual(new Map([['alpha', new Set([PROJECT[0]])]]))
  const path =
    '/apis/resourcemanager.miloapis.com/v1alpha1/projects/alpha/control-plane/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'
  const authorization = 'Bearer alice'
  const byResource = (a: Asked, b: Asked) =>
    JSON.stringify(a.attributes).localeCompare(JSON.stringify(b.attributes))
  expect(asked.sort(byResource)).toEqual([
    {
      path,
      authorization,
      attributes: { group: GROUP, resource: 'ipv4reservations', verb: 'use' },
    },
    { path, authorization, attributes: { group: GROUP, resource: 'loadbalancers', verb: 'get' } },
  ])
})

test('operators are asked about at the platform itself', async () => {
  const { authorize, asked } = await reviewing(() => allowed)
  expect(await authorize(tokenOf('root'), '*')).toEqual(new Map([['*', new Set(OPERATORS)]]))
  expect(asked.map(({ path }) => path)).toEqual([
    '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
  ])
})

test('an answer holds for 15 s, for its token and its project only', async () => {
  const { authorize, asked, state, time } = await reviewing(() => allowed)
  await Promise.all([authorize(tokenOf('alice'), 'alpha'), authorize(tokenOf('alice'), 'alpha')])
  expect(asked).toHaveLength(2)
  await authorize(tokenOf('alice'), 'beta')
  await authorize(tokenOf('bob'), 'alpha')
  expect(asked).toHaveLength(6)
  state.answer = () => ({ status: 201, body: { status: { allowed: false } } })
  time.now = 14_999
  expect((await authorize(tokenOf('alice'), 'alpha')).size).toBe(1)
  time.now = 15_000
  expect((await authorize(tokenOf('alice'), 'alpha')).size).toBe(0)
})

test.each([
  [
    'denies what something else allows',
    { status: 201, body: { status: { allowed: true, denied: true } } },
  ],
  ['does not let them in', { status: 401, body: {} }],
  ['forbids them to ask', { status: 403, body: {} }],
  ['does not know the project', { status: 404, body: {} }],
  ['says nothing clear', { status: 201, body: { status: { allowed: 'yes' } } }],
])('a control plane that %s grants nothing', async (_, answer) => {
  const { authorize } = await reviewing(() => answer)
  expect(await authorize(tokenOf('alice'), 'alpha')).toEqual(new Map())
})

test.each([
  ['fails', { status: 500, body: {} }],
  ['is overloaded', { status: 429, body: {} }],
  ['answers something else', { status: 200, body: { kind: 'Status' } }],
])('while the control plane %s nobody is let in, and it is soon asked again', async (_, answer) => {
  const { authorize, asked, state, time, errors } = await reviewing(() => answer)
  await expect(authorize(tokenOf('alice'), 'alpha')).rejects.toThrow()
  expect(errors).toHaveLength(1)
  state.answer = () => allowed
  const before = asked.length
  await expect(authorize(tokenOf('alice'), 'alpha')).rejects.toThrow()
  expect(asked).toHaveLength(before)
  time.now = 1_000
  expect((await authorize(tokenOf('alice'), 'alpha')).get('alpha')).toEqual(new Set(PROJECT))
})

test('one review that fails fails the whole, and lets nobody in by halves', async () => {
  const { authorize } = await reviewing(({ attributes }) =>
    JSON.stringify(attributes).includes('loadbalancers') ? allowed : { status: 503, body: {} },
  )
  await expect(authorize(tokenOf('alice'), 'alpha')).rejects.toThrow()
})
