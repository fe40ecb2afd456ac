import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type DataPlane,
  type DataPlaneOptions,
  startDataPlane,
} from '../../../dev/dataplane/dataPlane.ts'
import { Writer } from '../../../dev/dataplane/writer.ts'
import { writeKubeconfig } from '../../../dev/fleet/kubeconfig.ts'
import type { EndpointLayout } from '../../../dev/fleet/layout.ts'
import { seedAttachment, seedCluster } from '../../../dev/fleet/seed.ts'
import { startApiServer } from '../../../dev/kube/server.ts'
import type { Follow } from '../../../src/clusters/cluster.ts'
import { type ClusterContext, Kubeconfig } from '../../../src/clusters/kubeconfig.ts'
import { KubernetesCluster } from '../../../src/clusters/kubernetes.ts'
import {
  type BackendsRuleSpec,
  BGP_ADVERTISEMENTS,
  type BGPAdvertisement,
  DATA_PLANE_NAMESPACE,
  type KubeObject,
  LOAD_BALANCER_LABEL,
  NETWORK_GATEWAYS,
  NETWORK_RULES,
  type NetworkGateway,
  type NetworkRule,
  type Resource,
  SERVICE_VIP_BINDINGS,
  type SelectorRuleSpec,
  type ServiceVIPBinding,
  VPC_ATTACHMENTS,
} from '../../../src/rules/objects.ts'

const API = 'network.datumapis.com/v1alpha1'
const crds = new URL('../../../dev/crds/', import.meta.url)
/** What no test should take; a condition that never comes is told as such. */
const PATIENCE_MS = 10_000

type RulePart = Partial<BackendsRuleSpec> & Partial<SelectorRuleSpec>

/** One cluster with an API server, its data plane, and what a test needs to look and to meddle. */
export type Lab = {
  plane: DataPlane
  cluster: KubernetesCluster
  writer: Writer
  rules: Follow<NetworkRule>
  gateways: Follow<NetworkGateway>
  advertisements: Follow<BGPAdvertisement>
  bindings: Follow<ServiceVIPBinding>
  /** Resolves with what `look` finds as soon as it finds something. */
  until<T>(what: string, look: () => T | undefined | false): Promise<T>
  rule(name: string): NetworkRule | undefined
  binding(name: string): ServiceVIPBinding | undefined
  gateway(name: string): NetworkGateway | undefined
  /** The advertisements that carry a rule's label. */
  advertised(rule: string): BGPAdvertisement[]
  writeRule(name: string, spec: RulePart, loadBalancer?: string): Promise<NetworkRule>
  bind(
    name: string,
    spec: Partial<ServiceVIPBinding['spec']>,
    loadBalancer?: string,
  ): Promise<ServiceVIPBinding>
  remove(resource: Resource, name: string): Promise<unknown>
  /** Makes an attachment at `address` on `node`. */
  attach(name: string, address: string, node: string, vpc?: string): Promise<void>
  /** Merges labels into an attachment's. */
  label(name: string, labels: Record<string, string | null>): Promise<unknown>
  detach(name: string): Promise<unknown>
  /** The data plane's process ends, and another is started on the same cluster. */
  restartPlane(): Promise<void>
  /** The cluster gets the later NetworkRule, and a data plane that reads it. */
  switchToSelector(): Promise<void>
  close(): Promise<void>
}

/** Starts a lab with gateways g1 and g2 and no attachments. */
export async function openLab(options: Partial<DataPlaneOptions> = {}): Promise<Lab> {
  let dialect = options.dialect ?? 'backends'
  const server = await startApiServer({ crds: await readCrds(dialect) })
  const directory = await mkdtemp(join(tmpdir(), 'lab-'))
  const file = join(directory, 'kubeconfig')
  await writeKubeconfig(file, new Map([['lab', server]]))
  const kubeconfig = await Kubeconfig.open(file, { onProblem: fail, pollMs: 0 })
  const context = kubeconfig.context('lab')
  if (context === undefined) throw new Error('the kubeconfig has no context lab')
  const writer = new Writer(context, 'lab')
  await seedCluster(writer, [project('v1'), project('v2')], [])
  const cluster = new KubernetesCluster('lab', context, { onHandlerError: fail })
  const watchers = new Set<() => void>()
  const changed = () => {
    for (const look of [...watchers]) look()
  }
  const place = { namespace: DATA_PLANE_NAMESPACE }
  const follow = <T extends KubeObject>(resource: Resource) =>
    cluster.follow<T>(resource, place, { changed: () => queueMicrotask(changed) })
  const rules = follow<NetworkRule>(NETWORK_RULES)
  const gateways = follow<NetworkGateway>(NETWORK_GATEWAYS)
  const advertisements = follow<BGPAdvertisement>(BGP_ADVERTISEMENTS)
  const bindings = follow<ServiceVIPBinding>(SERVICE_VIP_BINDINGS)
  let plane = await start(cluster, context, dialect, options)
  const at = (name: string) => `${DATA_PLANE_NAMESPACE}/${name}`
  const labels = (loadBalancer?: string) =>
    loadBalancer === undefined ? {} : { labels: { [LOAD_BALANCER_LABEL]: loadBalancer } }

  return {
    get plane() {
      return plane
    },
    cluster,
    writer,
    rules,
    gateways,
    advertisements,
    bindings,
    rule: (name) => rules.objects.get(at(name)),
    binding: (name) => bindings.objects.get(at(name)),
    gateway: (name) => gateways.objects.get(at(name)),
    advertised: (rule) =>
      [...advertisements.objects.values()].filter(
        ({ metadata }) => metadata.labels?.['galactic.datum.net/network-rule'] === rule,
      ),
    until: <T>(what: string, look: () => T | undefined | false) =>
      new Promise<T>((resolve, reject) => {
        const timer = setTimeout(() => {
          watchers.delete(check)
          reject(new Error(`never came: ${what}`))
        }, PATIENCE_MS)
        const check = () => {
          const found = look()
          if (found === undefined || found === false) return
          clearTimeout(timer)
          watchers.delete(check)
          resolve(found)
        }
        watchers.add(check)
        check()
      }),
    writeRule: (name, spec, loadBalancer) =>
      cluster.apply<NetworkRule>(NETWORK_RULES, {
        apiVersion: API,
        kind: 'NetworkRule',
        metadata: { name, namespace: DATA_PLANE_NAMESPACE, ...labels(loadBalancer) },
        spec: ruleSpec(dialect, spec),
      }),
    bind: (name, spec, loadBalancer) =>
      cluster.apply<ServiceVIPBinding>(SERVICE_VIP_BINDINGS, {
        apiVersion: API,
        kind: 'ServiceVIPBinding',
        metadata: { name, namespace: DATA_PLANE_NAMESPACE, ...labels(loadBalancer) },
        spec: {
          targetRef: { kind: 'Node', name: 'n1' },
          vipAddress: '2001:db8::1',
          port: 80,
          protocol: 'tcp',
          backendAddress: 'fd20:1::1',
          backendPort: 80,
          egressKind: 'veth',
          ...spec,
        },
      }),
    remove: (resource, name) => cluster.remove(resource, { name, namespace: DATA_PLANE_NAMESPACE }),
    attach: (name, address, node, vpc = 'v1') =>
      seedAttachment(writer, endpoint(name, address, node, vpc)),
    label: (name, labels) =>
      cluster.merge(VPC_ATTACHMENTS, { name, namespace: 'v1' }, { metadata: { labels } }),
    detach: (name) => cluster.remove(VPC_ATTACHMENTS, { name, namespace: 'v1' }),
    async restartPlane() {
      await plane.close()
      plane = await start(cluster, context, dialect, options)
    },
    async switchToSelector() {
      await plane.close()
      for (const crd of await readCrds('selector')) server.storage.setCrd(crd)
      dialect = 'selector'
      plane = await start(cluster, context, dialect, options)
    },
    async close() {
      await plane.close()
      await cluster.close()
      await writer.close()
      await server.close()
      await rm(directory, { recursive: true })
    },
  }
}

function start(
  cluster: KubernetesCluster,
  context: ClusterContext,
  dialect: 'backends' | 'selector',
  options: Partial<DataPlaneOptions>,
): Promise<DataPlane> {
  return startDataPlane({ gateways: ['g1', 'g2'], ...options, dialect, cluster, context })
}

function ruleSpec(dialect: 'backends' | 'selector', spec: RulePart): NetworkRule['spec'] {
  const common = {
    vpcRef: 'v1',
    vipAddresses: ['2001:db8::1'],
    protocol: 'tcp' as const,
    port: 80,
  }
  return dialect === 'backends'
    ? { ...common, vpcAttachmentRef: 'a1', backends: [{ address: 'fd20:1::1', port: 80 }], ...spec }
    : { ...common, backendSelector: { matchLabels: { app: 'web' } }, backendPort: 80, ...spec }
}

function project(name: string) {
  return { name, vpcName: 'vpc', vpcId: name, network: name === 'v1' ? 'fd20:1::' : 'fd20:2::' }
}

function endpoint(name: string, address: string, node: string, vpc: string): EndpointLayout {
  return {
    project: vpc,
    vpcName: 'vpc',
    vpcId: vpc,
    region: 'us-east-1',
    cluster: 'lab',
    attachment: { namespace: vpc, name },
    attachmentId: name.replace(/[^0-9A-Za-z]/g, ''),
    node,
    address,
    cidr: `${address}/${address.includes(':') ? 128 : 32}`,
  }
}

async function readCrds(dialect: 'backends' | 'selector'): Promise<string[]> {
  const directories = dialect === 'backends' ? [crds] : [crds, new URL('selector/', crds)]
  const texts: string[] = []
  for (const directory of directories) {
    for (const name of await readdir(directory)) {
      if (name.endsWith('.yaml')) texts.push(await readFile(new URL(name, directory), 'utf8'))
    }
  }
  return texts
}

function fail(error: unknown): void {
  throw error
}
