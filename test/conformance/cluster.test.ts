import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { readCapabilities } from '../../src/clusters/capabilities.ts'
import { ApiFailure, type Cluster, Unreachable } from '../../src/clusters/cluster.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import {
  type BackendsRuleSpec,
  type KubeObject,
  NETWORK_RULES,
  type NetworkRule,
  VPC_ATTACHMENTS,
} from '../../src/rules/objects.ts'
import { base64, contextOf, fail, folder } from '../clusters/kubeconfigs.ts'
import { Plugin } from '../clusters/plugin.ts'
import { Recorder } from '../clusters/recorder.ts'
import { selectorCrd } from '../support/crds.ts'
import { onEachOwnServer, onEachServer, type Reach, type Tested } from './servers.ts'

/** The product's own client against both servers. */

const USERS = {
  certificate: async ({ clientCertificate, clientKey }: Reach) => ({
    'client-certificate-data': base64(clientCertificate),
    'client-key-data': base64(clientKey),
  }),
  token: async ({ token }: Reach) => ({ token }),
  program: async ({ token }: Reach) => (await Plugin.create(await folder(), { token })).user,
}

/** A cluster, as a user of one of the kinds that kubeconfigs have. */
async function connect(server: Reach, by: keyof typeof USERS = 'certificate') {
  const context = await contextOf({
    server: server.url,
    cluster: { 'certificate-authority-data': base64(server.ca) },
    user: await USERS[by](server),
  })
  const cluster = new KubernetesCluster('tested', context, { onHandlerError: fail })
  onTestFinished(() => cluster.close())
  return cluster
}

const rules = ({ namespace }: Pick<Tested<Reach>, 'namespace'>) => {
  const rule = (
    name: string,
    port = 443,
    metadata: Partial<KubeObject['metadata']> = {},
  ): NetworkRule => {
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
      metadata: { name, namespace, ...metadata },
      spec,
    }
  }
  const put = (cluster: Cluster, name: string, port?: number) =>
    cluster.apply(NETWORK_RULES, rule(name, port, { labels: { set: namespace } }))
  return { rule, put, selection: { namespace, labelSelector: `set=${namespace}` } }
}

onEachServer((tested) => {
  const { rule, put, selection } = rules(tested)
  const { namespace } = tested

  test('a rule is created, left alone, changed, and deleted', async () => {
    const cluster = await connect(tested.server)
    const created = await put(cluster, 'a')
    expect(created.metadata).toMatchObject({ generation: 1, labels: { set: namespace } })
    const same = await put(cluster, 'a')
    expect(same.metadata.resourceVersion).toBe(created.metadata.resourceVersion)
    const changed = await put(cluster, 'a', 80)
    expect(changed.metadata).toMatchObject({ generation: 2, uid: created.metadata.uid })
    const where = { name: 'a', namespace }
    expect(await cluster.remove(NETWORK_RULES, { ...where, uid: 'another' })).toBe('absent')
    const patch = { metadata: { finalizers: ['example.com/teardown'] } }
    expect((await cluster.merge(NETWORK_RULES, where, patch))?.metadata.finalizers).toHaveLength(1)
    expect(await cluster.remove(NETWORK_RULES, where)).toBe('deleting')
    expect(await cluster.remove(NETWORK_RULES, where)).toBe('deleting')
    await cluster.merge(NETWORK_RULES, where, { metadata: { finalizers: null } })
    expect(await cluster.remove(NETWORK_RULES, where)).toBe('absent')
    expect(await cluster.merge(NETWORK_RULES, where, patch)).toBeUndefined()
    await put(cluster, 'a')
    expect(await cluster.remove(NETWORK_RULES, where)).toBe('deleted')
  })

  test('refusals are told by code and reason, a schema that lacks a field by its own mark', async () => {
    const cluster = await connect(tested.server)
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
    const nothing = { ...NETWORK_RULES, plural: 'networkrulers' }
    await expect(cluster.remove(nothing, { name: 'a', namespace })).rejects.toBeInstanceOf(
      ApiFailure,
    )
  })

  test.each(['token', 'program'] as const)(
    'a %s serves as well as a certificate, and a wrong one is 401',
    async (by) => {
      const cluster = await connect(tested.server, by)
      expect((await put(cluster, `by-${by}`)).metadata.name).toBe(`by-${by}`)
      const wrong = await connect({ ...tested.server, token: 'wrong' }, by)
      await expect(wrong.list(NETWORK_RULES, selection)).rejects.toMatchObject({ code: 401 })
      await cluster.remove(NETWORK_RULES, { name: `by-${by}`, namespace })
    },
  )

  describe('many rules', () => {
    const names = Array.from({ length: 1_003 }, (_, n) => `r${String(n).padStart(4, '0')}`)
    beforeAll(async () => {
      const left = names.values()
      const one = async () => {
        for (const name of left) {
          const labels = { set: namespace }
          await tested.client.apply(`${tested.rules}/${name}`, rule(name, 443, { labels }))
        }
      }
      await Promise.all(Array.from({ length: 16 }, one))
    })
    afterAll(() => tested.client.call('DELETE', tested.rules))

    test('are listed whole, page by page, by namespace and by label', async () => {
      const cluster = await connect(tested.server)
      await cluster.apply(NETWORK_RULES, rule('other', 443, { labels: { set: 'theirs' } }))
      expect(await cluster.list(NETWORK_RULES, { namespace })).toHaveLength(1_004)
      const ours = await cluster.list(NETWORK_RULES, selection)
      expect(ours.map(({ metadata }) => metadata.name)).toEqual(names)
      expect(await cluster.list(NETWORK_RULES, { namespace: 'kube-public' })).toEqual([])
      expect(await cluster.list(VPC_ATTACHMENTS, { namespace })).toEqual([])
    })
  })

  test('a follow sees what is created, changed and deleted, and knows a write from its answer', async () => {
    const cluster = await connect(tested.server)
    const before = await put(cluster, 'before')
    const recorder = new Recorder()
    const follow = cluster.follow<KubeObject>(NETWORK_RULES, selection, recorder)
    await follow.synced
    const first = await put(cluster, 'a')
    follow.learn(first)
    const second = await put(cluster, 'a', 80)
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

  test('a follow tells another object under an old name as gone, then as new', async () => {
    const cluster = await connect(tested.server)
    const old = await put(cluster, 'again')
    const recorder = new Recorder()
    const follow = cluster.follow<KubeObject>(NETWORK_RULES, selection, recorder)
    await follow.synced
    const begun = recorder.lines.length
    await cluster.remove(NETWORK_RULES, { name: 'again', namespace })
    const fresh = await put(cluster, 'again')
    expect(fresh.metadata.uid).not.toBe(old.metadata.uid)
    await recorder.said(`+again@${fresh.metadata.resourceVersion}`)
    expect(recorder.lines.slice(begun)).toEqual([
      '-again',
      `+again@${fresh.metadata.resourceVersion}`,
    ])
  })

  test('an object that leaves the selection is gone for the follow', async () => {
    const cluster = await connect(tested.server)
    await put(cluster, 'leaves')
    const recorder = new Recorder()
    const follow = cluster.follow<KubeObject>(NETWORK_RULES, selection, recorder)
    await follow.synced
    const where = { name: 'leaves', namespace }
    await cluster.merge(NETWORK_RULES, where, { metadata: { labels: { set: 'theirs' } } })
    await recorder.said('-leaves')
    const back = await put(cluster, 'leaves')
    await recorder.said(`+leaves@${back.metadata.resourceVersion}`)
    await cluster.remove(NETWORK_RULES, where)
  })
})

onEachOwnServer((tested) => {
  const { put, selection } = rules(tested)
  const { namespace } = tested

  describe('a server that forgets, restarts and changes', () => {
    test('a follow whose version was forgotten lists anew and misses nothing', async () => {
      const cluster = await connect(tested.server)
      await put(cluster, 'a')
      const recorder = new Recorder()
      const follow = cluster.follow<KubeObject>(NETWORK_RULES, selection, recorder)
      await follow.synced
      await put(cluster, 'b')
      await cluster.remove(NETWORK_RULES, { name: 'a', namespace })
      await tested.server.forget()
      const last = await put(cluster, 'c')
      await recorder.said(`+c@${last.metadata.resourceVersion}`)
      expect([...follow.objects.keys()].sort()).toEqual([`${namespace}/b`, `${namespace}/c`])
    })

    test('a follow survives a restart, and calls fail only while the server is away', async () => {
      const cluster = await connect(tested.server)
      const before = await cluster.list(NETWORK_RULES, selection)
      const recorder = new Recorder()
      const follow = cluster.follow<KubeObject>(NETWORK_RULES, selection, recorder)
      await follow.synced
      await tested.server.restart(
        async () => {
          await recorder.said('failing Unreachable')
          await expect(cluster.list(NETWORK_RULES)).rejects.toBeInstanceOf(Unreachable)
        },
        { cold: true },
      )
      await recorder.said('works')
      const added = await put(cluster, 'after')
      await recorder.said(`+after@${added.metadata.resourceVersion}`)
      expect(follow.objects.size).toBe(before.length + 1)
      expect(recorder.lines.filter((line) => line.startsWith('-'))).toEqual([])
    })

    test('the dialect is read from the published schema, also after it changed', async () => {
      const cluster = await connect(tested.server)
      expect(await readCapabilities(cluster)).toEqual({
        dialect: 'backends',
        sessionAffinity: false,
      })
      const recorder = new Recorder()
      const follow = cluster.follow<KubeObject>(NETWORK_RULES, selection, recorder)
      await follow.synced
      const known = follow.objects.size
      await tested.server.setCrd(await selectorCrd())
      expect((await readCapabilities(cluster)).dialect).toBe('selector')
      expect(await cluster.openapi('nobody.example.com', 'v1')).toBeUndefined()
      await expect(put(cluster, 'a')).rejects.toMatchObject({ code: 500, schemaMismatch: true })
      expect(await cluster.list(NETWORK_RULES, selection)).toHaveLength(known)
      expect(recorder.lines.filter((line) => line.startsWith('-'))).toEqual([])
    })
  })
})
