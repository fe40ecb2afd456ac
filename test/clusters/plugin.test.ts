import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Kubeconfig } from '../../src/clusters/kubeconfig.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import { NETWORK_RULES } from '../../src/rules/objects.ts'
import { Authority } from './certificates.ts'
import { listOf } from './follow-setup.ts'
import { base64, contextOf, type Entry, fail, folder, kubeconfigText } from './kubeconfigs.ts'
import { Plugin } from './plugin.ts'
import { json, ScriptedServer, status } from './scripted-server.ts'

async function serve(...options: Parameters<typeof ScriptedServer.start>): Promise<ScriptedServer> {
  const server = await ScriptedServer.start(...options)
  onTestFinished(() => server.close())
  return server
}

async function connect(entry: Entry): Promise<KubernetesCluster> {
  const cluster = new KubernetesCluster('k', await contextOf(entry), { onHandlerError: fail })
  onTestFinished(() => cluster.close())
  return cluster
}

test('what a program hands out is used until it expires, by all calls, and the next from then on', async () => {
  const server = await serve(listOf(1))
  const expires = Date.now() + 1_500
  const plugin = await Plugin.create(await folder(), { token: 'first', expires })
  const cluster = await connect({ server: server.url, user: plugin.user })
  /** The tokens of some calls at once. */
  const tokens = async () => {
    const before = server.calls.length
    await Promise.all(Array.from({ length: 20 }, () => cluster.list(NETWORK_RULES)))
    const sent = server.calls.slice(before).map(({ headers }) => headers.authorization)
    return [...new Set(sent)]
  }
  expect(await tokens()).toEqual(['Bearer first'])
  expect(await plugin.runs()).toBe(1)
  await plugin.hand({ token: 'second', expires: expires + 60_000 })
  for (let isOver = false; !isOver; ) {
    isOver = Date.now() > expires
    const sent = await tokens()
    if (isOver) expect(sent).toEqual(['Bearer second'])
  }
  expect(await plugin.runs()).toBe(2)
})

test('a token that the server takes no more fails none of the calls under way, and is asked for once', async () => {
  let revoked = 'none'
  const server = await serve((call) => {
    if (call.headers.authorization !== `Bearer ${revoked}`) return listOf(1)(call)
    json(call.answer, 401, status(401, 'Unauthorized'))
  })
  const plugin = await Plugin.create(await folder(), {
    token: 'first',
    expires: Date.now() + 60_000,
  })
  const cluster = await connect({ server: server.url, user: plugin.user })
  await cluster.list(NETWORK_RULES)
  revoked = 'first'
  await plugin.hand({ token: 'second', expires: Date.now() + 60_000 })
  const calls = Array.from({ length: 50 }, () => cluster.list(NETWORK_RULES))
  expect(await Promise.all(calls)).toHaveLength(50)
  expect(await plugin.runs()).toBe(2)
})

test('a program that is named by a path is looked for beside its kubeconfig', async () => {
  const server = await serve(listOf(1))
  const dir = await folder()
  await Plugin.create(dir, { token: 'first' })
  const file = join(dir, 'config')
  const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: './program' }
  await writeFile(file, kubeconfigText({ it: { server: server.url, user: { exec } } }))
  const kubeconfig = await Kubeconfig.open(file, { onProblem: fail, pollMs: 0 })
  const context = kubeconfig.context('it') ?? { missing: 'it' }
  const cluster = new KubernetesCluster('k', context, { onHandlerError: fail })
  onTestFinished(() => cluster.close())
  await cluster.list(NETWORK_RULES)
  expect(server.calls[0]?.headers.authorization).toBe('Bearer first')
})

test('certificates that a program hands out get new connections when they expire', async () => {
  const ca = await Authority.create('ca')
  const server = await serve(listOf(1), {
    ...(await ca.issue('s', { ip: ['127.0.0.1'] })),
    ca: ca.cert,
  })
  const plugin = await Plugin.create(await folder(), {
    ...(await ca.issue('first')),
    expires: Date.now() + 1_000,
  })
  const cluster = await connect({
    server: server.url,
    cluster: { 'certificate-authority-data': base64(ca.cert) },
    user: plugin.user,
  })
  await cluster.list(NETWORK_RULES)
  await plugin.hand({ ...(await ca.issue('second')), expires: Date.now() + 60_000 })
  await expect
    .poll(async () => {
      await cluster.list(NETWORK_RULES)
      return server.calls.at(-1)?.peer
    })
    .toBe('second')
  expect(server.calls[0]?.peer).toBe('first')
  expect(server.accepted).toBe(2)
})
