/** What the walks walk in: a project with one of everything, all of it marked, and everybody who may come along. */
import { setProjectRelease } from '../../../src/domain/operators/projects.ts'
import type { Permission } from '../../../src/schema/context.ts'
import { globalId } from '../../../src/schema/ids.ts'
import { type Caller, EDITOR, OPERATOR, permissionIds } from '../../../src/server/caller.ts'
import { LIMITS } from '../../../src/server/limits/limits.ts'
import { create, field, type Service, useService } from '../service.ts'
import type { Arguments } from './walk.ts'

/** In every text of the project's own: nobody else may see it. */
export const MARK = 'belongs-to-alpha'

const READER: Permission[] = [
  'loadbalancers.get',
  'loadbalancers.list',
  'ipv4reservations.get',
  'ipv4reservations.list',
]
const caller = (name: string, where: Record<string, readonly Permission[]>): Caller => ({
  subject: name,
  email: null,
  actor: { kind: 'USER', name },
  projects: new Map(Object.entries(where).map(([place, ids]) => [place, permissionIds(ids)])),
})

/** Whoever isn't here is a stranger. */
export const CALLERS: Readonly<Record<string, Caller>> = {
  nobody: caller('nobody', {}),
  other: caller('other', { beta: EDITOR }),
  reader: caller('reader', { alpha: READER }),
  alice: caller('alice', { alpha: EDITOR }),
  operator: caller('operator', { '*': OPERATOR }),
}

export const useWorld = (): Service =>
  useService({
    identify: ({ headers }) =>
      CALLERS[(headers.authorization ?? '').slice('Bearer '.length)] ?? null,
    // A walk asks for more than anybody needs.
    limits: {
      ...LIMITS,
      ...{ tokens: 100_000, depth: 100, aliases: 100_000, cost: 1e12 },
      budget: { most: 1e15, perSecond: 1e12 },
    },
  })

/** Ids of one of everything. */
export type Ids = {
  loadBalancer: string
  backend: string
  bound: string
  free: string
  vpc: string
  event: string
  address: string
  name: string
}

/** Ids that could be somebody's, and are nobody's. */
export const NOTHING: Ids = {
  loadBalancer: globalId('LoadBalancer', '01900000-0000-7000-8000-000000000001'),
  backend: Buffer.from(
    'Backend:01900000-0000-7000-8000-000000000001:01900000-0000-7000-8000-000000000002',
  ).toString('base64url'),
  bound: globalId('IPv4Reservation', '01900000-0000-7000-8000-000000000003'),
  free: globalId('IPv4Reservation', '01900000-0000-7000-8000-000000000004'),
  vpc: globalId('Vpc', '01900000-0000-7000-8000-000000000005'),
  event: globalId('ChangeEvent', '01900000-0000-7000-8000-000000000006'),
  address: 'fd00:9::9',
  name: 'no-such-name',
}

/** Makes one of everything in alpha. */
export async function populate(service: Service): Promise<Ids> {
  const reserve = async (name: string): Promise<string> => {
    const { body } = await service.query(
      `mutation ($input: CreateIPv4ReservationInput!) { createIPv4Reservation(input: $input) {
         ... on CreateIPv4ReservationPayload { reservation { id } } ... on UserError { message } } }`,
      { input: { name, region: 'us-east-1', ...texts } },
    )
    return field<{ reservation: { id: string } }>(body).reservation.id
  }
  const texts = {
    displayName: `shown ${MARK}`,
    description: `described ${MARK}`,
    labels: [{ key: MARK, value: MARK }],
  }
  await setProjectRelease(service.store, { project: 'alpha', released: true })
  const bound = await reserve(`bound-${MARK}`)
  const free = await reserve(`free-${MARK}`)
  const made = await create(service, `name-${MARK}`, {
    ...texts,
    backends: [{ address: 'fd00:1::1', name: `backend-${MARK}` }, { address: 'fd00:1::2' }],
    ipv4Reservations: [bound],
  })
  const { body } = await service.query(
    'query ($id: ID!) { loadBalancer(id: $id) { backends { nodes { id } } events { nodes { id } } } }',
    { id: made.id },
  )
  type Nodes = { nodes: { id: string }[] }
  const { backends, events } = field<{ backends: Nodes; events: Nodes }>(body)
  return {
    loadBalancer: made.id,
    backend: backends.nodes[0]?.id ?? '',
    ...{ bound, free, vpc: await service.vpc() },
    event: events.nodes[0]?.id ?? '',
    address: 'fd00:1::1',
    name: `name-${MARK}`,
  }
}

const text = (value: string) => JSON.stringify(value)

/** How everything that needs arguments is asked about these. */
export function argumentsFor(ids: Ids): Arguments {
  const all = [ids.loadBalancer, ids.backend, ids.bound, ids.free, ids.vpc, ids.event]
  const change = (more: string) => `input: { ${more} }`
  const [lb, bound, free] = [text(ids.loadBalancer), text(ids.bound), text(ids.free)]
  const address = text(ids.address)
  return {
    'Query.node': `id: ${lb}`,
    'Query.nodes': `ids: ${JSON.stringify(all)}`,
    'Query.loadBalancer': `id: ${lb}`,
    'Query.loadBalancerByName': `region: "us-east-1", name: ${text(ids.name)}`,
    'Query.ipv4Reservation': `id: ${bound}`,
    'Query.ipv4ReservationByName': `region: "us-east-1", name: ${text(ids.name.replace('name-', 'bound-'))}`,
    'Query.vpcByName': 'name: "main"',
    'Query.region': 'code: "us-east-1"',
    'Query.cluster': 'name: "east-1"',
    'LoadBalancer.flowPreview': 'client: { address: "2001:db8::1", port: 4000 }',
    'Subscription.loadBalancer': `id: ${lb}`,
    'Subscription.backendHealth': `loadBalancer: ${lb}`,
    'Subscription.loadBalancerSettled': `id: ${lb}, timeoutSeconds: 60`,
    'Mutation.createLoadBalancer': change(
      `name: "made", vpc: ${text(ids.vpc)}, region: "us-east-1", protocol: { udp: { port: 7000 } }, ipv4Reservations: [${free}]`,
    ),
    'Mutation.updateLoadBalancer': change(`id: ${lb}, displayName: "changed"`),
    'Mutation.deleteLoadBalancer': change(`id: ${lb}`),
    'Mutation.addBackends': change(`loadBalancer: ${lb}, backends: [{ address: ${address} }]`),
    'Mutation.removeBackends': change(`loadBalancer: ${lb}, addresses: [${address}]`),
    'Mutation.setBackends': change(`loadBalancer: ${lb}, backends: [{ address: ${address} }]`),
    'Mutation.updateBackends': change(
      `loadBalancer: ${lb}, backends: [{ address: ${address}, adminState: DISABLED }]`,
    ),
    'Mutation.createIPv4Reservation': change('name: "made", region: "us-east-1"'),
    'Mutation.updateIPv4Reservation': change(`id: ${bound}, displayName: "changed"`),
    'Mutation.deleteIPv4Reservation': change(`id: ${free}`),
    'Mutation.bindIPv4Reservation': change(`reservation: ${free}, loadBalancer: ${lb}`),
    'Mutation.unbindIPv4Reservation': change(`reservation: ${bound}, loadBalancer: ${lb}`),
    'Mutation.moveIPv4Reservation': change(`reservation: ${bound}, from: ${lb}, to: ${lb}`),
    'Mutation.createRegion': change('code: "made", displayName: "Made", cityCode: "IAD"'),
    'Mutation.registerCluster': change('name: "made", region: "us-east-1", context: "made"'),
    'Mutation.updateCluster': change(`id: ${lb}`),
    'Mutation.removeCluster': change(`id: ${lb}`),
    'Mutation.forgetCluster': change(`id: ${lb}`),
    'Mutation.createAddressPool': change(
      'name: "made", region: "us-east-1", prefix: "2001:db8:999::/64"',
    ),
    'Mutation.updateAddressPool': change(`id: ${lb}`),
    'Mutation.deleteAddressPool': change(`id: ${lb}`),
    'Mutation.setQuota': change(
      'project: "beta", resource: "networking.datumapis.com/loadbalancers", limit: 50',
    ),
    'Mutation.setProjectRelease': change('project: "beta", released: true'),
    'Mutation.reportReachability': change('vantage: "outside", results: []'),
  }
}
