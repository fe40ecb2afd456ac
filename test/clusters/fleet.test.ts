import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Credentials } from '../../src/clusters/credentials.ts'
import { Fleet } from '../../src/clusters/fleet.ts'
import { Kubeconfig } from '../../src/clusters/kubeconfig.ts'
import { type KubeObject, NETWORK_RULES } from '../../src/rules/objects.ts'
import { Authority } from './certificates.ts'
import { listOf, rule, watchOf } from './follow-setup.ts'
import { base64, type Entry, fail, folder, kubeconfigText } from './kubeconfigs.ts'
import { Recorder } from './recorder.ts'
import { json, ScriptedServer, status } from './scripted-server.ts'
import { TestClock } from './test-clock.ts'

async function serve(
  name: string,
  tls?: Parameters<typeof ScriptedServer.start>[1],
): Promise<ScriptedServer> {
  const server = await ScriptedServer.start((call) => {
    const answer = call.query.has('watch') ? watchOf() : listOf(5, rule(name, 1))
    return answer(call)
  }, tls)
  onTestFinished(() => server.close())
  return server
}

async function openFleet(paths: string, onProblem: (error: Error) => void = fail) {
  const kubeconfig = await Kubeconfig.open(paths, { onProblem, pollMs: 0 })
  const fleet = new Fleet(kubeconfig, { onHandlerError: fail, deadlineMs: 2_000 })
  onTestFinished(async () => {
    await fleet.close()
    kubeconfig.close()
  })
  const names = async (context: string) => {
    const listed = await fleet.get({ name: context, context }).list(NETWORK_RULES)
    return listed.map(({ metadata }) => metadata.name)
  }
  return { kubeconfig, fleet, names }
}

/** Writes beside and renames, as mounted secrets and careful editors do. */
async function replace(file: string, entries: Record<string, Entry>): Promise<void> {
  await writeFile(`${file}.new`, kubeconfigText(entries))
  await rename(`${file}.new`, file)
}

test('each context reaches its own server with its own credentials, though names repeat', async () => {
  const dir = await folder()
  const [one, two] = [await serve('one'), await serve('two')]
  const shared = { clusterName: 'kubernetes', userName: 'admin' }
  const files = [join(dir, 'one'), join(dir, 'two')]
  await writeFile(
    files[0] ?? '',
    kubeconfigText({ a: { server: one.url, user: { token: 'first' }, ...shared } }),
  )
  await writeFile(
    files[1] ?? '',
    kubeconfigText({ b: { server: two.url, user: { token: 'second' }, ...shared } }),
  )
  const { kubeconfig, names, fleet } = await openFleet(files.join(':'))
  expect(kubeconfig.names()).toEqual(['a', 'b'])
  expect(await names('a')).toEqual(['one'])
  expect(await names('b')).toEqual(['two'])
  expect(one.calls.map(({ headers }) => headers.authorization)).toEqual(['Bearer first'])
  expect(two.calls.map(({ headers }) => headers.authorization)).toEqual(['Bearer second'])
  expect(fleet.get({ name: 'a', context: 'a' })).toBe(fleet.get({ name: 'a', context: 'a' }))
})

test('two users with token files in one kubeconfig keep their own tokens', async () => {
  const dir = await folder()
  const server = await serve('it')
  const entry = async (name: string): Promise<Entry> => {
    const tokenFile = join(dir, `${name}-token`)
    await writeFile(tokenFile, `token-of-${name}\n`)
    const user = { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } }
    return { server: server.url, user }
  }
  const file = join(dir, 'config')
  await writeFile(file, kubeconfigText({ a: await entry('a'), b: await entry('b') }))
  const { names } = await openFleet(file)
  for (const context of ['a', 'b', 'a']) await names(context)
  expect(server.calls.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer token-of-a',
    'Bearer token-of-b',
    'Bearer token-of-a',
  ])
})

test("a user's token file, beside its kubeconfig, counts before its token, and is read again", async () => {
  const dir = await folder()
  const server = await serve('it')
  const [file, tokenFile] = [join(dir, 'config'), join(dir, 'token')]
  await writeFile(tokenFile, 'first\n')
  const user = { tokenFile: 'token', token: 'old' }
  await writeFile(file, kubeconfigText({ it: { server: server.url, user } }))
  const { names } = await openFleet(file)
  await names('it')
  expect(server.calls[0]?.headers.authorization).toBe('Bearer first')

  const context = (await Kubeconfig.open(file, { onProblem: fail, pollMs: 0 })).context('it')
  if (context === undefined) throw new Error('the context is not there')
  const clock = new TestClock()
  const credentials = new Credentials(context, clock)
  const token = async () => (await credentials.access()).headers['authorization']
  expect(await token()).toBe('Bearer first')
  await writeFile(tokenFile, 'second')
  clock.advance(10_001)
  expect(await token()).toBe('Bearer second')
  // One caught between truncation and writing is no token; the next call looks again.
  await writeFile(tokenFile, '')
  clock.advance(10_001)
  await expect(token()).rejects.toThrow('is empty')
  await writeFile(tokenFile, 'third')
  expect(await token()).toBe('Bearer third')
})

test('who acts as somebody else says so in every call, with uid, groups and what else there is', async () => {
  const server = await serve('it')
  const user = {
    token: 'mine',
    as: 'jane',
    'as-uid': 'u-1',
    'as-groups': ['developers', 'admins'],
    'as-user-extra': { 'acme.com/Project': ['one', 'two'] },
  }
  const file = join(await folder(), 'config')
  const abroad = { as: 'Jürgen', 'as-groups': ['größe', '東'], 'as-user-extra': { '(Ü%)': ['§'] } }
  const mine = { token: 'mine', as: '', 'as-groups': [] }
  const entries = { jane: user, abroad, mine, nobody: { ...user, as: '' } }
  const contexts = Object.entries(entries).map(([name, user]) => [
    name,
    { server: server.url, user },
  ])
  await writeFile(file, kubeconfigText(Object.fromEntries(contexts)))
  const { names } = await openFleet(file)
  for (const context of ['jane', 'abroad', 'mine']) await names(context)
  // As somebody without a name: who that is meant to be can't be told.
  await expect(names('nobody')).rejects.toThrow('no usable context nobody')
  const said = server.calls.map(({ headers }) =>
    Object.fromEntries(
      Object.entries(headers).flatMap(([name, value]) =>
        // Node reads a byte as a character.
        name.startsWith('impersonate')
          ? [[name, Buffer.from(`${value}`, 'latin1').toString()]]
          : [],
      ),
    ),
  )
  expect(said).toEqual([
    {
      'impersonate-user': 'jane',
      'impersonate-uid': 'u-1',
      'impersonate-group': 'developers, admins',
      'impersonate-extra-acme.com%2fproject': 'one, two',
    },
    {
      'impersonate-user': 'Jürgen',
      'impersonate-group': 'größe, 東',
      'impersonate-extra-%28%c3%bc%25%29': '§',
    },
    // Without a name there is nobody to act as.
    {},
  ])
})

test('a server is trusted by its own CA only, and by the name the context gives', async () => {
  const dir = await folder()
  const [ca, other] = [await Authority.create('ca'), await Authority.create('other')]
  const byAddress = await serve('address', await ca.issue('s', { ip: ['127.0.0.1'] }))
  const byName = await serve('name', await ca.issue('s', { dns: ['kube.internal'] }))
  const trust = (authority: Authority, more = {}) => ({
    cluster: { 'certificate-authority-data': base64(authority.cert), ...more },
  })
  await writeFile(join(dir, 'ca.pem'), ca.cert)
  const file = join(dir, 'config')
  await writeFile(
    file,
    kubeconfigText({
      right: { server: byAddress.url, ...trust(ca) },
      path: { server: byAddress.url, cluster: { 'certificate-authority': 'ca.pem' } },
      wrong: { server: byAddress.url, ...trust(other) },
      named: { server: byName.url, ...trust(ca, { 'tls-server-name': 'kube.internal' }) },
      unnamed: { server: byName.url, ...trust(ca) },
    }),
  )
  const { names } = await openFleet(file)
  expect(await names('right')).toEqual(['address'])
  expect(await names('path')).toEqual(['address'])
  expect(await names('named')).toEqual(['name'])
  await expect(names('wrong')).rejects.toMatchObject({ name: 'Unreachable' })
  await expect(names('unnamed')).rejects.toMatchObject({ name: 'Unreachable' })
})

test('client certificates are presented, and renewed ones get new connections', async () => {
  const dir = await folder()
  const ca = await Authority.create('ca')
  const server = await serve('it', {
    ...(await ca.issue('s', { ip: ['127.0.0.1'] })),
    ca: ca.cert,
  })
  const entry = async (name: string): Promise<Entry> => {
    const { cert, key } = await ca.issue(name)
    return {
      server: server.url,
      cluster: { 'certificate-authority-data': base64(ca.cert) },
      user: { 'client-certificate-data': base64(cert), 'client-key-data': base64(key) },
    }
  }
  const file = join(dir, 'config')
  await writeFile(file, kubeconfigText({ it: await entry('first') }))
  const { names, kubeconfig } = await openFleet(file)
  await names('it')
  await replace(file, { it: await entry('second') })
  await kubeconfig.refresh()
  await names('it')
  expect(server.calls.map(({ peer }) => peer)).toEqual(['first', 'second'])
})

test('when the kubeconfig names another server, follows go on there', async () => {
  const dir = await folder()
  const [one, two] = [await serve('one'), await serve('two')]
  const file = join(dir, 'config')
  await writeFile(file, kubeconfigText({ it: { server: one.url, user: { token: 'x' } } }))
  const { fleet, kubeconfig } = await openFleet(file)
  const recorder = new Recorder()
  const cluster = fleet.get({ name: 'it', context: 'it' })
  const follow = cluster.follow<KubeObject>(NETWORK_RULES, {}, recorder)
  await one.received(2)
  await replace(file, { it: { server: two.url, user: { token: 'y' } } })
  await kubeconfig.refresh()
  await recorder.said('listed 1/1')
  expect(recorder.lines).toEqual([
    '+one@1',
    'listed 1/0',
    'accept 1/1?',
    '-one',
    '+two@1',
    'listed 1/1',
  ])
  expect([...follow.objects.keys()]).toEqual(['n/two'])
  await one.calls[1]?.gone
  expect(fleet.get({ name: 'it', context: 'it' })).toBe(cluster)
})

test('an unchanged context is left alone when another one in the file changes', async () => {
  const dir = await folder()
  const server = await serve('it')
  const file = join(dir, 'config')
  const it = { server: server.url, user: { token: 'x' } }
  await writeFile(file, kubeconfigText({ it }))
  const { names, kubeconfig } = await openFleet(file)
  await names('it')
  await replace(file, { it, more: { server: server.url } })
  await kubeconfig.refresh()
  await names('it')
  expect(kubeconfig.names()).toEqual(['it', 'more'])
  expect(server.accepted).toBe(1)
})

test('a context that is not there is unreachable until the file holds it', async () => {
  const dir = await folder()
  const server = await serve('it')
  const file = join(dir, 'config')
  await writeFile(file, kubeconfigText({ other: { server: server.url } }))
  const { names, kubeconfig } = await openFleet(file)
  await expect(names('it')).rejects.toMatchObject({
    name: 'Unreachable',
    message: 'the kubeconfig has no usable context it',
  })
  await replace(file, { it: { server: server.url } })
  await kubeconfig.refresh()
  expect(await names('it')).toEqual(['it'])
})

test.each([
  ['empty', ''],
  ['broken', '{"clusters": ['],
  ['a list', '- 1'],
])(
  'a kubeconfig that turns out %s is reported, and what was read before stays',
  async (_, text) => {
    const dir = await folder()
    const server = await serve('it')
    const file = join(dir, 'config')
    await writeFile(file, kubeconfigText({ it: { server: server.url } }))
    const problems: Error[] = []
    const { names, kubeconfig } = await openFleet(file, (error) => problems.push(error))
    const before = await readFile(file, 'utf8')
    await writeFile(file, text)
    await kubeconfig.refresh()
    expect(problems).toHaveLength(1)
    expect(await names('it')).toEqual(['it'])
    await writeFile(file, before)
    await kubeconfig.refresh()
    expect(problems).toHaveLength(1)
  },
)

test('a changed file is noticed without being told', async () => {
  const dir = await folder()
  const server = await serve('it')
  const file = join(dir, 'config')
  await writeFile(file, kubeconfigText({ one: { server: server.url } }))
  const kubeconfig = await Kubeconfig.open(file, { onProblem: fail, pollMs: 10 })
  onTestFinished(() => kubeconfig.close())
  const { promise, resolve } = Promise.withResolvers<void>()
  kubeconfig.onChange(resolve)
  await replace(file, { two: { server: server.url } })
  await promise
  expect(kubeconfig.names()).toEqual(['two'])
})

test('a token that the server refuses is read again, once', async () => {
  const dir = await folder()
  const server = await ScriptedServer.start((call) => {
    if (call.headers.authorization === 'Bearer new') return listOf(1)(call)
    json(call.answer, 401, status(401, 'Unauthorized'))
  })
  onTestFinished(() => server.close())
  const tokenFile = join(dir, 'token')
  await writeFile(tokenFile, 'old')
  const user = { 'auth-provider': { name: 'tokenFile', config: { tokenFile } } }
  const file = join(dir, 'config')
  await writeFile(file, kubeconfigText({ it: { server: server.url, user } }))
  const { names } = await openFleet(file)
  await expect(names('it')).rejects.toMatchObject({ code: 401 })
  expect(server.calls).toHaveLength(2)
  await expect(names('it')).rejects.toMatchObject({ code: 401 })
  expect(server.calls).toHaveLength(3)
})

test('a token renewed on disk serves the call that the old one failed', async () => {
  const dir = await folder()
  const tokenFile = join(dir, 'token')
  const server = await ScriptedServer.start(async (call) => {
    if (call.headers.authorization === 'Bearer new') return listOf(1, rule('it', 1))(call)
    await writeFile(tokenFile, 'new')
    json(call.answer, 401, status(401, 'Unauthorized'))
  })
  onTestFinished(() => server.close())
  await writeFile(tokenFile, 'old')
  const file = join(dir, 'config')
  await writeFile(file, kubeconfigText({ it: { server: server.url, user: { tokenFile } } }))
  const { names } = await openFleet(file)
  expect(await names('it')).toEqual(['it'])
})

test('a server behind a path is asked below it', async () => {
  const dir = await folder()
  const server = await serve('it')
  const file = join(dir, 'config')
  await writeFile(file, kubeconfigText({ it: { server: `${server.url}/k8s/clusters/c-1/` } }))
  const { names } = await openFleet(file)
  await names('it')
  expect(server.calls[0]?.path).toBe(
    '/k8s/clusters/c-1/apis/network.datumapis.com/v1alpha1/networkrules',
  )
})
