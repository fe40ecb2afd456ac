import { readdir, readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { type ApiServer, type ApiServerOptions, startApiServer } from '../../dev/kube/server.ts'
import { readCapabilities } from '../../src/clusters/capabilities.ts'
import { type Cluster, Unreachable } from '../../src/clusters/cluster.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import {
  type BackendsRuleSpec,
  DATA_PLANE_NAMESPACE,
  type KubeObject,
  NAMESPACES,
  NETWORK_RULES,
  type NetworkRule,
  VPC_ATTACHMENTS,
} from '../../src/rules/objects.ts'
import { base64, contextOf, fail, folder } from './kubeconfigs.ts'
import { Recorder } from './recorder.ts'

const crdFolder = fileURLToPath(new URL('../../dev/crds/', import.meta.url))
const namespace = DATA_PLANE_NAMESPACE

async function crds(): Promise<string[]> {
  const files = (await readdir(crdFolder)).filter((name) => name.endsWith('.yaml'))
  return Promise.all(files.map((name) => readFile(`${crdFolder}${name}`, 'utf8')))
}

async function start(options: Partial<ApiServerOptions> = {}): Promise<ApiServer> {
  const server = await startApiServer({ crds: await crds(), ...options })
  onTestFinished(() => server.close())
  return server
}

/** A cluster by client certificate, with the data plane's namespace. */
async function connect(server: ApiServer): Promise<KubernetesCluster> {
  const context = await contextOf({
    server: server.url,
    cluster: { 'certificate-authority-data': base64(server.ca) },
    user: {
      'client-certificate-data': base64(server.clientCertificate),
      'client-key-data': base64(server.clientKey),
    },
  })
  const cluster = new KubernetesCluster('embedded', context, { onHandlerError: fail })
  onTestFinished(() => cluster.close())
  await cluster.apply(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  })
  return cluster
}

function rule(name: string, port = 443, more: Partial<KubeObject['metadata']> = {}): NetworkRule {
  const spec: BackendsRuleSpec = {
    vpcRef: 'v1',
    vpcAttachmentRef: 'a1',
    vipAddresses: ['2001:db8::1'],
    protocol: 'tcp',
    port,
    backends: [{ address: '2001:db8:1::1', port: 8080 }],
  }
  return {
    apiVersion: 'network.datumapis.com/v1alpha1',
    kind: 'NetworkRule',
    metadata: { name, namespace, labels: { set: 'ours' }, ...more },
    spec,
  }
}

async function applyMany(cluster: Cluster, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, n) => `r${String(n).padStart(4, '0')}`)
  await Promise.all(names.map((name) => cluster.apply(NETWORK_RULES, rule(name))))
}

test('a rule is created, left alone, changed, and deleted', async () => {
  const cluster = await connect(await start())
  const created = await cluster.apply(NETWORK_RULES, rule('a'))
  expect(created.metadata).toMatchObject({ generation: 1, labels: { set: 'ours' } })
  const same = await cluster.apply(NETWORK_RULES, rule('a'))
  expect(same.metadata.resourceVersion).toBe(created.metadata.resourceVersion)
  const changed = await cluster.apply(NETWORK_RULES, rule('a', 80))
  expect(changed.metadata).toMatchObject({ generation: 2, uid: created.metadata.uid })
  const where = { name: 'a', namespace }
  expect(await cluster.remove(NETWORK_RULES, { ...where, uid: 'another' })).toBe('absent')
  const patch = { metadata: { finalizers: ['example.com/teardown'] } }
  expect((await cluster.merge(NETWORK_RULES, where, patch))?.metadata.finalizers).toHaveLength(1)
  expect(await cluster.remove(NETWORK_RULES, where)).toBe('deleting')
  await cluster.merge(NETWORK_RULES, where, { metadata: { finalizers: null } })
  expect(await cluster.remove(NETWORK_RULES, where)).toBe('absent')
  expect(await cluster.merge(NETWORK_RULES, where, patch)).toBeUndefined()
  await cluster.apply(NETWORK_RULES, rule('a'))
  expect(await cluster.remove(NETWORK_RULES, where)).toBe('deleted')
})

test('refusals are told by code and reason, a schema that lacks a field by its own mark', async () => {
  const cluster = await connect(await start())
  await expect(
    cluster.apply(NETWORK_RULES, rule('a', 443, { namespace: 'nowhere' })),
  ).rejects.toMatchObject({ code: 404, reason: 'NotFound' })
  await expect(cluster.apply(NETWORK_RULES, rule('a', 0))).rejects.toMatchObject({
    code: 422,
    reason: 'Invalid',
    schemaMismatch: false,
  })
  const wrong = { ...rule('a'), spec: { ...rule('a').spec, sessionAffinity: 'CLIENT_IP' } }
  await expect(cluster.apply(NETWORK_RULES, wrong)).rejects.toMatchObject({
    code: 500,
    schemaMismatch: true,
  })
})

test('the dialect is read from the published schema, also after it changed', async () => {
  const server = await start()
  const cluster = await connect(server)
  expect(await readCapabilities(cluster)).toEqual({ dialect: 'backends', sessionAffinity: false })
  server.storage.setCrd(await readFile(`${crdFolder}selector/networkrules.yaml`, 'utf8'))
  expect((await readCapabilities(cluster)).dialect).toBe('selector')
  expect(await cluster.openapi('nobody.example.com', 'v1')).toBeUndefined()
})

test('a list of many pages is whole, by namespace and by label', async () => {
  const cluster = await connect(await start())
  await applyMany(cluster, 1_203)
  await cluster.apply(NETWORK_RULES, rule('other', 443, { labels: { set: 'theirs' } }))
  expect(await cluster.list(NETWORK_RULES, { namespace })).toHaveLength(1_204)
  const ours = await cluster.list(NETWORK_RULES, { labelSelector: 'set=ours' })
  expect(new Set(ours.map(({ metadata }) => metadata.name)).size).toBe(1_203)
  expect(await cluster.list(NETWORK_RULES, { namespace: 'default' })).toEqual([])
  expect(await cluster.list(VPC_ATTACHMENTS)).toEqual([])
})

test('a follow sees what is created, changed and deleted, and knows a write from its answer', async () => {
  const cluster = await connect(await start())
  const before = await cluster.apply(NETWORK_RULES, rule('before'))
  const recorder = new Recorder()
  const follow = cluster.follow<KubeObject>(NETWORK_RULES, { labelSelector: 'set=ours' }, recorder)
  await follow.synced
  const first = await cluster.apply(NETWORK_RULES, rule('a'))
  follow.learn(first)
  const second = await cluster.apply(NETWORK_RULES, rule('a', 80))
  await recorder.said(`~a@${second.metadata.resourceVersion}`)
  await cluster.apply(NETWORK_RULES, rule('other', 443, { labels: { set: 'theirs' } }))
  await cluster.remove(NETWORK_RULES, { name: 'a', namespace })
  await recorder.said('-a')
  follow.learn(second)
  expect(recorder.lines).toEqual([
    `+before@${before.metadata.resourceVersion}`,
    'listed 1/0',
    `+a@${first.metadata.resourceVersion}`,
    `~a@${second.metadata.resourceVersion}`,
    '-a',
  ])
  expect([...follow.objects.keys()]).toEqual([`${namespace}/before`])
})

test('a watch whose version was compacted away lists anew and misses nothing', async () => {
  const server = await start()
  const cluster = await connect(server)
  await cluster.apply(NETWORK_RULES, rule('a'))
  const recorder = new Recorder()
  const follow = cluster.follow<KubeObject>(NETWORK_RULES, {}, recorder)
  await follow.synced
  // All in one turn of the event loop: the watch can't resume before the history is gone.
  const write = cluster.apply(NETWORK_RULES, rule('b'))
  server.storage.endWatches()
  await write
  await cluster.remove(NETWORK_RULES, { name: 'a', namespace })
  server.storage.compact()
  server.storage.endWatches()
  await recorder.until((lines) => lines.includes('-a') && lines.some((one) => one.startsWith('+b')))
  expect([...follow.objects.keys()]).toEqual([`${namespace}/b`])
})

test('a follow survives a restart of the server, and calls fail only while it is away', async () => {
  const dataFile = `${await folder()}/data`
  const first = await startApiServer({ crds: await crds(), dataFile })
  const cluster = await connect(first)
  await cluster.apply(NETWORK_RULES, rule('a'))
  const recorder = new Recorder()
  const follow = cluster.follow<KubeObject>(NETWORK_RULES, {}, recorder)
  await follow.synced
  await first.close()
  await recorder.said('failing Unreachable')
  await expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)
  const second = await start({ dataFile, port: first.port, initializingMs: 300 })
  await recorder.said('works')
  const added = await cluster.apply(NETWORK_RULES, rule('b'))
  await recorder.said(`+b@${added.metadata.resourceVersion}`)
  expect([...follow.objects.keys()]).toEqual([`${namespace}/a`, `${namespace}/b`])
  expect(recorder.lines).not.toContain('-a')
  expect(second.port).toBe(first.port)
})

test('many ended watches and many calls leave few connections', async () => {
  const server = await start()
  const cluster = await connect(server)
  const recorder = new Recorder()
  const follow = cluster.follow<KubeObject>(NETWORK_RULES, {}, recorder)
  await follow.synced
  for (let round = 0; round < 12; round++) {
    server.storage.endWatches()
    const written = await cluster.apply(NETWORK_RULES, rule(`r${round}`))
    await recorder.said(`+r${round}@${written.metadata.resourceVersion}`)
  }
  await applyMany(cluster, 300)
  const open = process.getActiveResourcesInfo().filter((kind) => kind === 'TLSWrap')
  // At most 32 for calls and 2 for the watch, each counted at both of its ends.
  expect(open.length).toBeLessThanOrEqual(2 * 34)
  await cluster.close()
})
