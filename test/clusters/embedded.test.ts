import { expect, onTestFinished, test } from 'vitest'
import { type ApiServer, startApiServer } from '../../dev/kube/server.ts'
import type { Cluster } from '../../src/clusters/cluster.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import {
  type BackendsRuleSpec,
  DATA_PLANE_NAMESPACE,
  type KubeObject,
  NAMESPACES,
  NETWORK_RULES,
  type NetworkRule,
} from '../../src/rules/objects.ts'
import { ownCrds } from '../support/crds.ts'
import { base64, contextOf, fail } from './kubeconfigs.ts'
import { Recorder } from './recorder.ts'

/** What only a server in the same process can be made to do; all else is in test/conformance. */

const namespace = DATA_PLANE_NAMESPACE

async function start(): Promise<ApiServer> {
  const server = await startApiServer({ crds: await ownCrds() })
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
  // Hundreds of calls at once wait for connections, for as long as a busy machine needs.
  const options = { onHandlerError: fail, deadlineMs: 60_000 }
  const cluster = new KubernetesCluster('embedded', context, options)
  onTestFinished(() => cluster.close())
  await cluster.apply(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  })
  return cluster
}

function rule(name: string): NetworkRule {
  const spec: BackendsRuleSpec = {
    vpcRef: 'v1',
    vpcAttachmentRef: 'a1',
    vipAddresses: ['2001:db8::1'],
    protocol: 'tcp',
    port: 443,
    backends: [{ address: '2001:db8:1::1', port: 8080 }],
  }
  return {
    apiVersion: 'network.datumapis.com/v1alpha1',
    kind: 'NetworkRule',
    metadata: { name, namespace, labels: { set: 'ours' } },
    spec,
  }
}

async function applyMany(cluster: Cluster, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, n) => `r${String(n).padStart(4, '0')}`)
  await Promise.all(names.map((name) => cluster.apply(NETWORK_RULES, rule(name))))
}

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
