import { expect, onTestFinished, test } from 'vitest'
import { startApiServer } from '../../dev/kube/server.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import {
  BGP_ADVERTISEMENTS,
  DATA_PLANE_NAMESPACE,
  INSTANCE_LABEL,
  LOAD_BALANCER_LABEL,
  NAMESPACES,
  NETWORK_RULES,
  type NetworkRule,
  type Resource,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import { ClusterView } from '../../src/workers/clusterView.ts'
import { contextOf } from '../clusters/kubeconfigs.ts'
import { ownCrds } from '../support/crds.ts'

const namespace = DATA_PLANE_NAMESPACE

/** A cluster with the data plane's namespace. */
async function start() {
  const server = await startApiServer({ crds: await ownCrds() })
  onTestFinished(() => server.close())
  const context = await contextOf({
    server: server.url,
    cluster: { 'insecure-skip-tls-verify': true },
    user: { token: server.token },
  })
  const mishandled: unknown[] = []
  const cluster = new KubernetesCluster('it', context, {
    onHandlerError: (error) => mishandled.push(error),
  })
  onTestFinished(() => cluster.close())
  await cluster.apply(NAMESPACES, {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: namespace },
  })
  return { cluster, mishandled }
}

/** What is seen of it, and the load balancers that it touched. */
async function look(cluster: KubernetesCluster) {
  const touched = new Set<string>()
  const view = new ClusterView(cluster, 'ours', {
    touched: (ids) => {
      for (const id of ids) touched.add(id)
    },
    touchedAll: () => undefined,
    attachmentChanged: () => undefined,
    placeFreed: () => undefined,
    roomFreed: () => undefined,
    acceptRelist: () => true,
    failing: () => undefined,
  })
  await view.synced()
  return { view, touched }
}

test('objects without a spec, which the CRDs take, are no part of what is seen and stop nothing', async () => {
  const { cluster, mishandled } = await start()
  const labels = { [INSTANCE_LABEL]: 'ours', [LOAD_BALANCER_LABEL]: 'lb' }
  const object = (resource: Resource, name: string) => ({
    apiVersion: `${resource.group}/${resource.version}`,
    kind: resource.kind,
    metadata: { name, namespace, labels },
  })
  const empty = () =>
    Promise.all(
      [NETWORK_RULES, SERVICE_VIP_BINDINGS, BGP_ADVERTISEMENTS].map((resource) =>
        cluster.apply(resource, object(resource, 'empty')),
      ),
    )
  await empty()
  const { view, touched } = await look(cluster)
  for (const resource of [NETWORK_RULES, SERVICE_VIP_BINDINGS, BGP_ADVERTISEMENTS])
    await cluster.remove(resource, { name: 'empty', namespace })
  await empty()
  const rule: NetworkRule = {
    ...object(NETWORK_RULES, 'full'),
    spec: {
      vpcRef: 'v',
      vpcAttachmentRef: 'a',
      vipAddresses: ['2001:db8::1'],
      protocol: 'tcp',
      port: 80,
      backends: [{ address: 'fd00::1', port: 80 }],
    },
  }
  await cluster.apply(NETWORK_RULES, rule)
  await expect.poll(() => view.rows()).toBe(1)
  // As when somebody takes it away: then it is to be written again.
  await cluster.merge(NETWORK_RULES, { name: 'full', namespace }, { spec: null })
  await expect.poll(() => view.rows()).toBe(0)
  const seen = view.observed('lb', { rules: ['empty', 'full'], vips: ['2001:db8::1'] })
  expect(seen).toMatchObject({ rules: [], bindings: [], advertisements: [] })
  expect([...touched]).toContain('lb')
  expect(mishandled).toEqual([])
  await view.close()
})

test('what becomes of an address touches whoever was looked for by it, until that is forgotten', async () => {
  const { cluster } = await start()
  const { view, touched } = await look(cluster)
  const bind = (vipAddress: string, port: number) =>
    cluster.apply<ServiceVIPBinding>(SERVICE_VIP_BINDINGS, {
      apiVersion: `${SERVICE_VIP_BINDINGS.group}/${SERVICE_VIP_BINDINGS.version}`,
      kind: SERVICE_VIP_BINDINGS.kind,
      metadata: { name: `b-${vipAddress.replaceAll(':', '-')}`, namespace },
      spec: {
        ...{ vipAddress, port, protocol: 'tcp', egressKind: 'veth' },
        targetRef: { kind: 'Node', name: 'node-1' },
      },
    })
  view.observed('one', { rules: [], vips: ['2001:db8::1'] })
  view.observed('other', { rules: [], vips: ['2001:db8::2'] })
  await bind('2001:db8::1', 80)
  await expect.poll(() => [...touched]).toEqual(['one'])
  view.forget('one')
  touched.clear()
  await bind('2001:db8::1', 81)
  await bind('2001:db8::2', 80)
  await expect.poll(() => [...touched]).toEqual(['other'])
  await view.close()
})
