import { setTimeout } from 'node:timers/promises'
import { inspect } from 'node:util'
import type { RunningCluster } from '../../dev/fleet/fleet.ts'
import { seedAttachment } from '../../dev/fleet/seed.ts'
import {
  DATA_PLANE_NAMESPACE,
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
  VPC_ATTACHMENTS,
  type VpcAttachment,
} from '../../src/rules/objects.ts'
import type { PlacementReport } from '../../src/rules/report.ts'
import { ADD_BACKENDS, accepted, createLoadBalancer, type LoadBalancer } from '../api/operations.ts'
import type { Installation } from '../support/installation.ts'
import { objectsUntil, rulesUntil } from '../support/objects.ts'
import { PATIENCE } from '../support/patience.ts'

/** What is waited for in the store is looked for this often (ms). */
const LOOK = 100

/** The id in the store behind a global id. */
export const storeId = (id: string): string =>
  Buffer.from(id, 'base64').toString().split(':')[1] ?? ''

export const vipOf = (made: LoadBalancer): string => made.addresses[0]?.address ?? ''

export const isOf =
  (made: LoadBalancer) =>
  (rule: NetworkRule): boolean =>
    rule.spec?.vipAddresses.includes(vipOf(made)) ?? false

/** The addresses that a rule of the *backends* dialect lists. */
export const listedIn = (rule: NetworkRule | undefined): string[] =>
  rule?.spec && 'backends' in rule.spec ? rule.spec.backends.map(({ address }) => address) : []

/** Waits until the rule of a load balancer lists exactly these addresses; none: until there is no rule. */
export async function listed(
  running: RunningCluster,
  made: LoadBalancer,
  addresses: string[],
): Promise<NetworkRule | undefined> {
  const rules = await rulesUntil(running, (all) => {
    const rule = all.find(isOf(made))
    if (rule === undefined) return addresses.length === 0
    return (
      rule.metadata.deletionTimestamp === undefined &&
      listedIn(rule).toSorted().join() === addresses.toSorted().join()
    )
  })
  return rules.find(isOf(made))
}

export const bindingsUntil = (
  running: RunningCluster,
  satisfied: (bindings: ServiceVIPBinding[]) => boolean,
): Promise<ServiceVIPBinding[]> =>
  objectsUntil<ServiceVIPBinding>(running, SERVICE_VIP_BINDINGS, satisfied)

/** Waits for something that is committed to the store: looked for again and again, since not everything hints. */
export async function storedUntil<T>(
  read: () => Promise<T>,
  satisfied: (value: T) => boolean,
): Promise<T> {
  const over = performance.now() + PATIENCE
  for (;;) {
    const value = await read()
    if (satisfied(value)) return value
    if (performance.now() > over) throw new Error(`still ${inspect(value, { depth: 6 })}`)
    await setTimeout(LOOK)
  }
}

/** What a cluster last reported of a load balancer, once it satisfies. */
export const reported = (
  installation: Pick<Installation, 'store'>,
  cluster: string,
  made: LoadBalancer,
  satisfied: (report: PlacementReport) => boolean,
): Promise<PlacementReport | null> =>
  storedUntil(
    async () => {
      const { rows } = await installation.store.pool.query<{ report: PlacementReport | null }>(
        `SELECT report FROM placement JOIN cluster ON cluster.id = cluster_id
         WHERE load_balancer_id = $1 AND cluster.name = $2`,
        [storeId(made.id), cluster],
      )
      return rows[0]?.report ?? null
    },
    (report) => report !== null && satisfied(report),
  )

/** A load balancer as the API shows it, once it satisfies. */
export async function shown(
  installation: Pick<Installation, 'api'>,
  made: LoadBalancer,
  satisfied: (now: LoadBalancer) => boolean,
): Promise<LoadBalancer> {
  const { LOAD_BALANCER } = await import('../api/operations.ts')
  const query = `subscription ($id: ID!) { loadBalancer(id: $id) { type loadBalancer { ${LOAD_BALANCER} } } }`
  const signal = AbortSignal.timeout(PATIENCE)
  let last: LoadBalancer | undefined
  for await (const event of installation.api.stream<{ loadBalancer: LoadBalancer | null }>(
    query,
    { id: made.id },
    { over: 'sse', signal },
  )) {
    if (event.loadBalancer === null) continue
    last = event.loadBalancer
    if (satisfied(last)) return last
  }
  throw new Error(`still ${JSON.stringify(last, null, 1)}`)
}

export const condition = (made: LoadBalancer, type: string) =>
  made.status.conditions.find((each) => each.type === type)

let made = 0
/** A settled load balancer of some addresses; ports are its own unless told. */
export async function create(
  installation: Pick<Installation, 'vpc' | 'api'>,
  addresses: string[],
  more: Record<string, unknown> = {},
): Promise<LoadBalancer & { port: number }> {
  made += 1
  const port = 10_000 + made
  const loadBalancer = await createLoadBalancer(installation, {
    name: `lb-${made}`,
    protocol: { tcp: { port } },
    backends: addresses.map((address) => ({ address })),
    ...more,
  })
  return { ...loadBalancer, port: loadBalancer.ports[0]?.from ?? port }
}

export async function createSettled(
  installation: Pick<Installation, 'vpc' | 'api'>,
  addresses: string[],
  more: Record<string, unknown> = {},
): Promise<LoadBalancer & { port: number }> {
  const loadBalancer = await create(installation, addresses, more)
  await installation.api.settled(loadBalancer.id)
  return loadBalancer
}

export const add = (
  installation: Pick<Installation, 'api'>,
  { id }: LoadBalancer,
  ...addresses: string[]
) =>
  accepted(installation.api, ADD_BACKENDS, {
    loadBalancer: id,
    backends: addresses.map((address) => ({ address })),
  })

let attached = 0
/** An attachment of the demo project in a cluster: one that is up, with some addresses on a node. */
export async function attach(
  running: RunningCluster,
  input: { addresses: string[]; node?: string; name?: string; project?: string },
): Promise<{ name: string; namespace: string; node: string }> {
  attached += 1
  const { addresses, node = `node-${attached}`, project = 'demo' } = input
  const name = input.name ?? `more-${attached}`
  const like = running.endpoints.find((each) => each.project === project)
  if (like === undefined) throw new Error(`the fleet has no endpoint of ${project}`)
  const [first = ''] = addresses
  await seedAttachment(running.writer, {
    ...like,
    attachment: { namespace: project, name },
    attachmentId: `more${attached}`,
    node,
    address: first,
    cidr: `${first}/128`,
  })
  if (addresses.length > 1)
    await running.writer.patch(
      VPC_ATTACHMENTS,
      { namespace: project, name },
      { spec: { interface: { addresses: addresses.map((each) => `${each}/128`) } } },
    )
  return { name, namespace: project, node }
}

export const detach = (running: RunningCluster, where: { name: string; namespace: string }) =>
  running.writer.remove(VPC_ATTACHMENTS, where)

export const attachmentsOf = async (running: RunningCluster): Promise<VpcAttachment[]> =>
  running.cluster.list<VpcAttachment>(VPC_ATTACHMENTS)

/** Waits until the store knows exactly so many endpoints for an address. */
export const known = (
  installation: Pick<Installation, 'store'>,
  address: string,
  clusters: string[],
) =>
  storedUntil(
    async () => {
      const { rows } = await installation.store.pool.query<{ name: string }>(
        `SELECT cluster.name FROM endpoint JOIN cluster ON cluster.id = cluster_id
         WHERE address = $1 ORDER BY cluster.name`,
        [address],
      )
      return rows.map(({ name }) => name)
    },
    (names) => names.join() === clusters.toSorted().join(),
  )

/** The commits to a cluster's objects of one kind, from now on, in words. */
export function witness(running: RunningCluster, kind: 'networkrules' | 'servicevipbindings') {
  const seen: { type: string; name: string; object: ServiceVIPBinding & NetworkRule }[] = []
  const end = running.server.storage.observe(
    `${kind}.network.datumapis.com`,
    ({ type, object }) => {
      const it = object as unknown as ServiceVIPBinding & NetworkRule
      seen.push({ type, name: it.metadata.name, object: structuredClone(it) })
    },
  )
  return { seen, end }
}

export { DATA_PLANE_NAMESPACE }
