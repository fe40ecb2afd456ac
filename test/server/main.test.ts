import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterEach, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../src/db/client.ts'
import { setProjectRelease } from '../../src/domain/operators/projects.ts'
import { useDatabase } from '../support/database.ts'
import { bareEnvironment } from '../support/environment.ts'
import { AUDIENCE, type Issuer, listen, startIssuer } from './identity/issuer.ts'

const main = new URL('../../src/server/main.ts', import.meta.url).pathname
const database = useDatabase()
let issuer: Issuer
beforeAll(async () => {
  issuer = await startIssuer()
  const store = openStore({ connectionString: database.url })
  await setProjectRelease(store, { project: 'alpha', released: true })
  await store.close()
})

const running: ChildProcess[] = []
afterEach(async () => {
  for (const child of running.splice(0)) {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    expect(await ended).toEqual([0, null])
  }
})

/** Starts the process as production does; answers where it says that it listens. */
async function start(environment: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, [main], {
    env: {
      ...bareEnvironment(),
      ...{ PORT: '0', HOST: '127.0.0.1', METRICS_PORT: '0' },
      ...{ DATABASE_URL: database.url, OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE },
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  running.push(child)
  for await (const line of createInterface(child.stdout)) {
    const { url } = JSON.parse(line)
    if (typeof url === 'string') return url
  }
  throw new Error('it ended without listening')
}

async function permissions(url: string, token: string | null) {
  const answer = await fetch(`${url}/projects/alpha/graphql`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ query: '{ caller { permissions } }' }),
  })
  const { data, errors } = await answer.json()
  return data?.caller.permissions ?? [answer.status, errors[0].extensions.code]
}

const GET = 'networking.datumapis.com/loadbalancers.get'

test('the process serves whom the tokens of its identity provider name', async () => {
  const url = await start({})
  expect(await permissions(url, await issuer.issue({ permissions: [`alpha:${GET}`] }))).toEqual([
    GET,
  ])
  expect(await permissions(url, await issuer.issue())).toEqual([403, 'FORBIDDEN'])
  expect(await permissions(url, 'x.y.z')).toEqual([401, 'UNAUTHENTICATED'])
  expect(await permissions(url, null)).toEqual([401, 'UNAUTHENTICATED'])
})

test('with AUTHZ=sar it serves whom the control plane lets in, and nobody while that fails', async () => {
  let status = 201
  const plane = await listen(async (request, response) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk)
    const { resource, verb } = JSON.parse(Buffer.concat(chunks).toString()).spec.resourceAttributes
    const allowed = resource === 'loadbalancers' && verb === 'get'
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ status: { allowed } }))
  })
  const url = await start({ AUTHZ: 'sar', AUTHZ_KUBE_URL: plane.url })
  // What the token itself says doesn't count then.
  const claims = { permissions: ['alpha:networking.datumapis.com/loadbalancers.create'] }
  expect(await permissions(url, await issuer.issue(claims))).toEqual([GET])
  status = 500
  expect(await permissions(url, await issuer.issue({ jti: 'another' }))).toEqual([
    503,
    'INTERNAL_SERVER_ERROR',
  ])
})

test.each([
  [{ DATABASE_URL: 'postgres://127.0.0.1:1/none' }, /^OIDC_ISSUER: expected .*\n$/],
  [{ PORT: 'many' }, /^PORT: expected .*\n$/],
  [
    { OIDC_ISSUER: 'https://auth.example.com', OIDC_AUDIENCE: 'lb' },
    /^DATABASE_URL: expected .*\n$/,
  ],
])('a process that can not start says why in one line: %o', async (environment, line) => {
  const started = promisify(execFile)(process.execPath, [main], {
    env: { ...bareEnvironment(), ...environment },
  })
  await expect(started).rejects.toMatchObject({ code: 1, stdout: '' })
  await expect(started).rejects.toMatchObject({ stderr: expect.stringMatching(line) })
})
