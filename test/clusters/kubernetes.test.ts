import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect as connectTo, createServer as createTcpServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { readCapabilities } from '../../src/clusters/capabilities.ts'
import { ApiFailure, Unreachable } from '../../src/clusters/cluster.ts'
import { KubernetesCluster, type KubernetesOptions } from '../../src/clusters/kubernetes.ts'
import { type KubeObject, NAMESPACES, NETWORK_RULES } from '../../src/rules/objects.ts'
import { Authority } from './certificates.ts'
import { listOf, watchOf } from './follow-setup.ts'
import { base64, contextOf, type Entry, fail, folder } from './kubeconfigs.ts'
import { Recorder } from './recorder.ts'
import { json, ScriptedServer, status } from './scripted-server.ts'
import { TestClock } from './test-clock.ts'

const namespace = 'galactic-system'
const rules = `/apis/network.datumapis.com/v1alpha1/namespaces/${namespace}/networkrules`

function rule(name: string, more: Partial<KubeObject['metadata']> = {}): KubeObject {
  return {
    apiVersion: 'network.datumapis.com/v1alpha1',
    kind: 'NetworkRule',
    metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: '7', ...more },
  }
}

async function serve(handle: ScriptedServer['handle']): Promise<ScriptedServer> {
  const server = await ScriptedServer.start(handle)
  onTestFinished(() => server.close())
  return server
}

async function connect(
  server: { url: string },
  options: Partial<KubernetesOptions> = {},
  entry: Partial<Entry> = {},
): Promise<KubernetesCluster> {
  const context = await contextOf({ server: server.url, ...entry })
  const cluster = new KubernetesCluster('k', context, { onHandlerError: fail, ...options })
  onTestFinished(() => cluster.close())
  return cluster
}

async function failureOf(call: Promise<unknown>): Promise<ApiFailure> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof ApiFailure)) throw new Error('expected an ApiFailure', { cause: error })
  return error
}

test('an apply is a forced server-side apply by our field manager', async () => {
  const server = await serve(({ answer }) => json(answer, 200, rule('a', { generation: 3 })))
  const cluster = await connect(server, {}, { user: { token: 'secret' } })
  const applied = await cluster.apply(NETWORK_RULES, rule('a'))
  expect(applied.metadata.generation).toBe(3)
  const [call] = server.calls
  expect(call?.method).toBe('PATCH')
  expect(call?.path).toBe(`${rules}/a`)
  expect(Object.fromEntries(call?.query ?? [])).toEqual({
    fieldManager: 'network-load-balancers',
    force: 'true',
  })
  expect(call?.headers['content-type']).toBe('application/apply-patch+yaml')
  expect(call?.headers.authorization).toBe('Bearer secret')
  expect(JSON.parse(call?.body ?? '')).toEqual(rule('a'))
})

test('removing tells gone, going and not there apart', async () => {
  const server = await serve(({ path, answer }) => {
    if (path.endsWith('/gone')) json(answer, 200, { kind: 'Status', status: 'Success' })
    else if (path.endsWith('/going'))
      json(answer, 200, rule('going', { deletionTimestamp: 'now', finalizers: ['x'] }))
    else if (path.endsWith('/other')) json(answer, 409, status(409, 'Conflict'))
    else json(answer, 404, status(404, 'NotFound'))
  })
  const cluster = await connect(server)
  const remove = (name: string, uid?: string) =>
    cluster.remove(NETWORK_RULES, { name, namespace, ...(uid === undefined ? {} : { uid }) })
  expect(await remove('gone')).toBe('deleted')
  expect(await remove('going')).toBe('deleting')
  expect(await remove('missing')).toBe('absent')
  expect(await remove('other', 'u1')).toBe('absent')
  expect(JSON.parse(server.calls.at(-1)?.body ?? '')).toMatchObject({
    preconditions: { uid: 'u1' },
  })
  expect((await failureOf(remove('other'))).code).toBe(409)
})

test('a 404 of a kind that is not served is no word about an object', async () => {
  const server = await serve(({ answer }) => {
    answer.writeHead(404, { 'content-type': 'text/plain' })
    answer.end('404 page not found\n')
  })
  const cluster = await connect(server)
  const where = { name: 'a', namespace }
  const message = '404 page not found'
  const writes = [cluster.remove(NETWORK_RULES, where), cluster.merge(NETWORK_RULES, where, {})]
  for (const write of writes) {
    const told = { code: 404, reason: undefined, message: `networkrules: ${message}` }
    expect(await failureOf(write)).toMatchObject(told)
  }
  const failure = await failureOf(cluster.list(NETWORK_RULES))
  expect(failure).toMatchObject({ code: 404, reason: undefined, message })
  expect(await cluster.openapi('network.datumapis.com', 'v1alpha1')).toBeUndefined()
})

test('a merge patches what exists and creates nothing', async () => {
  const server = await serve(({ path, answer }) =>
    path.endsWith('/a')
      ? json(answer, 200, rule('a', { labels: { x: 'y' } }))
      : json(answer, 404, status(404, 'NotFound')),
  )
  const cluster = await connect(server)
  const patch = { metadata: { labels: { x: 'y', z: null } } }
  const merged = await cluster.merge(NETWORK_RULES, { name: 'a', namespace }, patch)
  expect(merged?.metadata.labels).toEqual({ x: 'y' })
  expect(server.calls[0]?.headers['content-type']).toBe('application/merge-patch+json')
  expect(JSON.parse(server.calls[0]?.body ?? '')).toEqual(patch)
  expect(await cluster.merge(NETWORK_RULES, { name: 'b', namespace }, patch)).toBeUndefined()
})

test('a list is read in pages, and its items say what they are', async () => {
  const server = await serve(({ query, answer }) => {
    const token = query.get('continue')
    json(answer, 200, {
      kind: 'NamespaceList',
      apiVersion: 'v1',
      metadata: { resourceVersion: '9', continue: token === null ? 'more+/=' : '' },
      items: [{ metadata: { name: token === null ? 'one' : 'two', resourceVersion: '1' } }],
    })
  })
  const cluster = await connect(server)
  const listed = await cluster.list(NAMESPACES, { labelSelector: 'a in (b,c)' })
  expect(listed.map(({ kind, apiVersion, metadata }) => [kind, apiVersion, metadata.name])).toEqual(
    [
      ['Namespace', 'v1', 'one'],
      ['Namespace', 'v1', 'two'],
    ],
  )
  const [first, second] = server.calls
  expect(first?.path).toBe('/api/v1/namespaces')
  expect(first?.query.get('limit')).toBe('500')
  expect(first?.query.get('labelSelector')).toBe('a in (b,c)')
  expect(second?.query.get('continue')).toBe('more+/=')
  expect(second?.query.get('labelSelector')).toBe('a in (b,c)')
})

test('a list that expires between pages begins anew, three times at most', async () => {
  let expiries = 2
  const server = await serve(({ query, answer }) => {
    if (query.has('continue') && expiries-- > 0) {
      json(answer, 410, status(410, 'Expired'))
      return
    }
    const more = query.has('continue') ? {} : { continue: 'c' }
    const name = query.has('continue') ? 'b' : 'a'
    const metadata = { resourceVersion: '9', ...more }
    json(answer, 200, { kind: 'NetworkRuleList', metadata, items: [rule(name)] })
  })
  const cluster = await connect(server)
  expect((await cluster.list(NETWORK_RULES)).map((one) => one.metadata.name)).toEqual(['a', 'b'])
  expect(server.calls).toHaveLength(6)
  expiries = 99
  expect((await failureOf(cluster.list(NETWORK_RULES))).code).toBe(410)
  expect(server.calls).toHaveLength(12)
})

test.each([
  ['an empty document', '{}'],
  ['another kind', '{"kind":"PodList","metadata":{"resourceVersion":"1"},"items":[]}'],
  ['a page of a proxy', '<html></html>'],
  ['no version', '{"kind":"NetworkRuleList","metadata":{},"items":[]}'],
  ['half a list', '{"kind":"NetworkRuleList","metadata":{"resourceVersion":"1"},"items":[{'],
  [
    'items without names',
    '{"kind":"NetworkRuleList","metadata":{"resourceVersion":"1"},"items":[{}]}',
  ],
])('%s with status 200 is not read as an empty list', async (_, text) => {
  const server = await serve(({ answer }) => {
    answer.end(text)
  })
  const cluster = await connect(server)
  await expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)
})

test('a failure carries code, reason and when to come back', async () => {
  const server = await serve(({ path, answer }) => {
    if (path.endsWith('/busy'))
      json(answer, 429, status(429, 'TooManyRequests', 'later', { retryAfterSeconds: 3 }))
    else if (path.endsWith('/header')) json(answer, 503, {}, { 'retry-after': '2' })
    else json(answer, 500, status(500, undefined, 'etcdserver: request is too large'))
  })
  const cluster = await connect(server)
  const apply = (name: string) => failureOf(cluster.apply(NETWORK_RULES, rule(name)))
  expect(await apply('busy')).toMatchObject({
    code: 429,
    reason: 'TooManyRequests',
    message: 'later',
    retryAfterSeconds: 3,
  })
  expect(await apply('header')).toMatchObject({
    code: 503,
    reason: undefined,
    retryAfterSeconds: 2,
  })
  expect(await apply('large')).toMatchObject({ code: 500, schemaMismatch: false })
})

test('a field that the schema lacks is told from a server in trouble', async () => {
  const message =
    'failed to create typed patch object (galactic-system/a; network.datumapis.com/v1alpha1, Kind=NetworkRule): .spec.backends: field not declared in schema'
  const server = await serve(({ answer }) => json(answer, 500, status(500, undefined, message)))
  const cluster = await connect(server)
  const failure = await failureOf(cluster.apply(NETWORK_RULES, rule('a')))
  expect(failure).toMatchObject({ code: 500, schemaMismatch: true })
})

test('a server that never answers is unreachable after the deadline', async () => {
  const server = await serve(() => undefined)
  const cluster = await connect(server, { deadlineMs: 80 })
  const call = cluster.list(NETWORK_RULES)
  await expect(call).rejects.toBeInstanceOf(Unreachable)
  await expect(call).rejects.toThrow('no answer within 80 ms')
  await server.calls[0]?.gone
})

test('an answer that stops half-way is unreachable after the deadline', async () => {
  const server = await serve(({ answer }) => {
    answer.writeHead(200, { 'content-type': 'application/json' })
    answer.write('{"kind":')
  })
  const cluster = await connect(server, { deadlineMs: 80 })
  await expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)
  await server.calls[0]?.gone
})

test('calls that wait for a connection are under the deadline too', async () => {
  const server = await serve(() => undefined)
  const cluster = await connect(server, { deadlineMs: 80, connections: 2 })
  const calls = Array.from({ length: 6 }, () => cluster.list(NETWORK_RULES))
  const settled = Promise.allSettled(calls)
  // From then on a connection that was closed with its call may be replaced for one that waits.
  await expect(Promise.race(calls)).rejects.toBeInstanceOf(Unreachable)
  expect(server.accepted).toBeLessThanOrEqual(2)
  expect((await settled).every(({ status }) => status === 'rejected')).toBe(true)
})

test('a signal ends a call early, and one that is aborted already makes none', async () => {
  const server = await serve(() => undefined)
  const cluster = await connect(server)
  const controller = new AbortController()
  const call = cluster.list(NETWORK_RULES, {}, { signal: controller.signal })
  const rejected = expect(call).rejects.toBeInstanceOf(Unreachable)
  await server.received(1)
  controller.abort()
  await rejected
  await server.calls[0]?.gone
  const again = cluster.list(NETWORK_RULES, {}, { signal: controller.signal })
  await expect(again).rejects.toBeInstanceOf(Unreachable)
  expect(server.calls).toHaveLength(1)
})

test('refused, reset and closed are unreachable', async () => {
  const server = await serve(({ answer }) => {
    answer.destroy()
  })
  const cluster = await connect(server)
  await expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)
  const nobody = await connect({ url: 'http://127.0.0.1:1' })
  await expect(nobody.list(NETWORK_RULES)).rejects.toThrow(/ECONNREFUSED/)
  await nobody.close()
  await expect(nobody.list(NETWORK_RULES)).rejects.toThrow('the cluster was closed')
})

test('a hundred calls at once share a bounded number of kept-alive connections', async () => {
  const server = await serve(({ answer }) => json(answer, 200, rule('a')))
  const cluster = await connect(server, { connections: 8 })
  for (let round = 0; round < 3; round++) {
    await Promise.all(Array.from({ length: 100 }, () => cluster.apply(NETWORK_RULES, rule('a'))))
  }
  expect(server.calls).toHaveLength(300)
  expect(server.accepted).toBeLessThanOrEqual(8)
  await cluster.close()
})

test('failed calls leave no connection behind that cannot be used again', async () => {
  const server = await serve(({ answer }) => json(answer, 500, status(500, 'InternalError')))
  const cluster = await connect(server, { connections: 2 })
  for (let round = 0; round < 20; round++) await failureOf(cluster.list(NETWORK_RULES))
  expect(server.accepted).toBeLessThanOrEqual(2)
})

test('what a cluster can do is read from the document it publishes', async () => {
  const fields = ['vpcRef', 'vipAddresses', 'protocol', 'port', 'vpcAttachmentRef', 'backends']
  const schema = {
    properties: { spec: { properties: Object.fromEntries(fields.map((field) => [field, {}])) } },
    'x-kubernetes-group-version-kind': [
      { group: 'network.datumapis.com', version: 'v1alpha1', kind: 'NetworkRule' },
    ],
  }
  const server = await serve(({ answer }) =>
    json(answer, 200, { components: { schemas: { schema } } }),
  )
  const cluster = await connect(server)
  expect(await readCapabilities(cluster)).toEqual({ dialect: 'backends', sessionAffinity: false })
  expect(server.calls[0]?.path).toBe('/openapi/v3/apis/network.datumapis.com/v1alpha1')
})

test('closing ends calls and follows at once and leaves no connection', async () => {
  const server = await serve(() => undefined)
  const cluster = await connect(server)
  const call = expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)
  const follow = cluster.follow(NETWORK_RULES, {}, { changed: fail })
  await server.received(2)
  await cluster.close()
  await call
  await expect(follow.synced).rejects.toBeInstanceOf(Unreachable)
  await Promise.all(server.calls.map(({ gone }) => gone))
  expect(server.sockets.size).toBe(0)
  const late = cluster.follow(NETWORK_RULES, {}, { changed: fail })
  await expect(late.synced).rejects.toBeInstanceOf(Unreachable)
})

test('calls under way end in peace when the credentials change', async () => {
  const server = await serve(async ({ headers, answer }) => {
    if (headers.authorization === 'Bearer old') await changed
    json(answer, 200, rule('a'))
  })
  const cluster = await connect(server, {}, { user: { token: 'old' } })
  const slow = cluster.apply(NETWORK_RULES, rule('a'))
  await server.received(1)
  cluster.use(await contextOf({ server: server.url, user: { token: 'new' } }))
  await cluster.apply(NETWORK_RULES, rule('a'))
  change()
  expect((await slow).metadata.name).toBe('a')
  expect(server.calls.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer old',
    'Bearer new',
  ])
})
const { promise: changed, resolve: change } = Promise.withResolvers<void>()

test('a certificate renewed on disk is used for new connections without being told', async () => {
  const dir = await folder()
  const ca = await Authority.create('ca')
  const server = await ScriptedServer.start(({ answer }) => json(answer, 200, rule('a')), {
    ...(await ca.issue('s', { ip: ['127.0.0.1'] })),
    ca: ca.cert,
  })
  onTestFinished(() => server.close())
  const renew = async (name: string) => {
    const { cert, key } = await ca.issue(name)
    await writeFile(join(dir, 'client.crt'), cert)
    await writeFile(join(dir, 'client.key'), key)
  }
  await renew('first')
  const clock = new TestClock()
  const cluster = await connect(
    server,
    { clock },
    {
      cluster: { 'certificate-authority-data': base64(ca.cert) },
      user: {
        'client-certificate': join(dir, 'client.crt'),
        'client-key': join(dir, 'client.key'),
      },
    },
  )
  for (let call = 0; call < 3; call++) {
    await cluster.apply(NETWORK_RULES, rule('a'))
    await renew('second')
    clock.advance(6_000)
  }
  expect(server.calls.map(({ peer }) => peer)).toEqual(['first', 'first', 'second'])
})

test('an authority renewed on disk is trusted from then on, and the one before no more', async () => {
  const dir = await folder()
  const [old, next] = [await Authority.create('old'), await Authority.create('next')]
  const names = { ip: ['127.0.0.1'] }
  const answers = listOf(1, rule('a'))
  const server = await ScriptedServer.start(
    (call) => (call.query.has('watch') ? watchOf()(call) : answers(call)),
    await old.issue('s', names),
  )
  onTestFinished(() => server.close())
  const ca = join(dir, 'ca.crt')
  await writeFile(ca, old.cert)
  const clock = new TestClock(0)
  const cluster = await connect(server, { clock }, { cluster: { 'certificate-authority': ca } })
  const recorder = new Recorder()
  const follow = cluster.follow<KubeObject>(NETWORK_RULES, {}, recorder)
  await follow.synced
  await server.received(2)

  server.showCertificate(await next.issue('s', names))
  await recorder.said('failing Unreachable')
  await expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)
  await writeFile(ca, next.cert)
  clock.advance(40_000)
  await recorder.said('works')
  expect(await cluster.list(NETWORK_RULES)).toHaveLength(1)

  server.showCertificate(await old.issue('s', names))
  await recorder.said('failing Unreachable', 2)
  await expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)
  // Another certificate of the same authority is as good as the last.
  server.showCertificate(await next.issue('s', names))
  clock.advance(40_000)
  await recorder.said('works', 2)
  expect(recorder.lines.filter((one) => one.startsWith('-'))).toEqual([])
})

test('a cluster whose credentials come from a program gets its token', async () => {
  const dir = await folder()
  const program = join(dir, 'program')
  const credential = { kind: 'ExecCredential', status: { token: 'from-a-program' } }
  await writeFile(program, `#!/bin/sh\necho '${JSON.stringify(credential)}'\n`, { mode: 0o755 })
  const server = await serve(({ answer }) => json(answer, 200, rule('a')))
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: program }
  const cluster = await connect(server, {}, { user: { exec } })
  await cluster.apply(NETWORK_RULES, rule('a'))
  expect(server.calls[0]?.headers.authorization).toBe('Bearer from-a-program')
  const broken = await connect(
    server,
    {},
    { user: { exec: { ...exec, command: `${program}-not` } } },
  )
  await expect(broken.apply(NETWORK_RULES, rule('a'))).rejects.toBeInstanceOf(Unreachable)
})

test('closing also ends calls under way with credentials of before', async () => {
  const server = await serve(() => undefined)
  const cluster = await connect(server, {}, { user: { token: 'old' } })
  const calls = [expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)]
  await server.received(1)
  cluster.use(await contextOf({ server: server.url, user: { token: 'new' } }))
  calls.push(expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable))
  await server.received(2)
  await cluster.close()
  await Promise.all(calls)
  await Promise.all(server.calls.map(({ gone }) => gone))
})

test('a server at an IPv6 address is reached', async () => {
  const ca = await Authority.create('ca')
  const tls = await ca.issue('s', { ip: ['::1'] })
  const server = await ScriptedServer.start(
    ({ answer }) => json(answer, 200, rule('a')),
    tls,
    '::1',
  )
  onTestFinished(() => server.close())
  const cluster = await connect(
    { url: `https://[::1]:${server.port}` },
    {},
    {
      cluster: { 'certificate-authority-data': base64(ca.cert) },
    },
  )
  expect((await cluster.apply(NETWORK_RULES, rule('a'))).metadata.name).toBe('a')
})

/** A way to a server that begins by two questions, as SOCKS 5 has it. */
async function socksTo(port: number): Promise<{ url: string; asked: Buffer[] }> {
  const asked: Buffer[] = []
  const proxy = createTcpServer((socket) => {
    socket.once('data', () => {
      // No credentials are asked for.
      socket.write(Buffer.from([5, 0]))
      socket.once('data', (wish: Buffer) => {
        asked.push(wish)
        const through = connectTo(port, '127.0.0.1', () => {
          socket.write(Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]))
          through.pipe(socket).pipe(through)
        })
        through.on('error', () => socket.destroy())
      })
    })
    socket.on('error', () => undefined)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => void proxy.close())
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  return { url: `socks5://127.0.0.1:${address.port}`, asked }
}

test('a cluster behind a SOCKS proxy is reached through it, by its name and its authority', async () => {
  const ca = await Authority.create('ca')
  const tls = await ca.issue('s', { dns: ['kube.internal'] })
  const server = await ScriptedServer.start(({ answer }) => json(answer, 200, rule('a')), tls)
  onTestFinished(() => server.close())
  const proxy = await socksTo(server.port)
  const trusting = async (authority: Authority) =>
    connect(
      { url: `https://kube.internal:${server.port}` },
      {},
      {
        cluster: {
          'certificate-authority-data': base64(authority.cert),
          'proxy-url': proxy.url,
        },
      },
    )
  const cluster = await trusting(ca)
  expect((await cluster.apply(NETWORK_RULES, rule('a'))).metadata.name).toBe('a')
  expect(proxy.asked[0]?.toString('latin1')).toContain('kube.internal')
  const other = await trusting(await Authority.create('other'))
  await expect(other.apply(NETWORK_RULES, rule('a'))).rejects.toBeInstanceOf(Unreachable)
})

test('a cluster behind a proxy is reached through it', async () => {
  const ca = await Authority.create('ca')
  const tls = await ca.issue('s', { ip: ['127.0.0.1'] })
  const server = await ScriptedServer.start(({ answer }) => json(answer, 200, rule('a')), tls)
  onTestFinished(() => server.close())
  const asked: string[] = []
  const proxy = createServer()
  proxy.on('connect', (request, socket) => {
    asked.push(request.url ?? '')
    const through = connectTo(server.port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      through.pipe(socket).pipe(through)
    })
    for (const end of [through, socket]) end.on('error', () => undefined)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  onTestFinished(() => void proxy.close())
  const address = proxy.address()
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port')
  const cluster = await connect(
    server,
    {},
    {
      cluster: {
        'certificate-authority-data': base64(ca.cert),
        'proxy-url': `http://127.0.0.1:${address.port}`,
      },
    },
  )
  expect((await cluster.apply(NETWORK_RULES, rule('a'))).metadata.name).toBe('a')
  expect(asked).toEqual([`127.0.0.1:${server.port}`])
})
