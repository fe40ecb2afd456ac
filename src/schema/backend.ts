import type { LoadBalancerRecord } from '../domain/records.ts'
import { BackendHealth, HealthState } from './backendHealth.ts'
import { builder } from './builder.ts'
import { backendId } from './ids.ts'
import { LoadBalancer } from './loadBalancer.ts'
import { notReported } from './loadBalancerStatus.ts'
import { Node } from './node.ts'
import { total } from './pages.ts'
import type { BackendShape } from './shapes.ts'
import { StatusCondition } from './statusCondition.ts'

export const BackendAdminState = builder.enumType('BackendAdminState', {
  description: 'Whether its owner wants a backend to serve.',
  values: {
    ENABLED: { description: 'It serves, unless it is unhealthy. The default.' },
    STANDBY: {
      description:
        'It does not serve but is still probed. The data plane keeps no table of connections: those that it had are cut.',
    },
    DISABLED: { description: 'It neither serves nor is probed.' },
  } as const,
})

/** Whether new connections are sent to a backend now. */
export function isServing({ backend, loadBalancer }: BackendShape): boolean {
  return loadBalancer.status.backends[backend.id]?.serving ?? false
}

export const Backend = builder.objectRef<BackendShape>('Backend')

Backend.implement({
  description:
    "One address in the VPC that serves a load balancer. It listens on the load balancer's own port: ports are never remapped.",
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Names this backend among all objects of the API.',
      resolve: ({ backend, loadBalancer }) => backendId(loadBalancer.id, backend.id),
    }),
    loadBalancer: t.field({
      type: LoadBalancer,
      description: 'The load balancer that it serves.',
      resolve: ({ loadBalancer }) => loadBalancer,
    }),
    address: t.field({
      type: 'IPAddress',
      description: 'Its address in the VPC; only once in a load balancer.',
      resolve: ({ backend }) => backend.address,
    }),
    name: t.field({
      type: 'ResourceName',
      nullable: true,
      description:
        'A name of your own for it, unique in the load balancer; null where none is set.',
      resolve: ({ backend }) => backend.name,
    }),
    adminState: t.field({
      type: BackendAdminState,
      description: 'Whether you want it to serve.',
      resolve: ({ backend }) => backend.adminState,
    }),
    health: t.field({
      type: BackendHealth,
      description: 'What the health check says of it.',
      resolve: ({ backend }) => backend.health,
    }),
    serving: t.boolean({
      description: 'Whether new connections are sent to it now.',
      resolve: isServing,
    }),
    resolved: t.field({
      type: StatusCondition,
      description:
        'Whether its address is known in the VPC, and can serve. A backend with an unknown address is kept and serves as soon as the address appears.',
      resolve: ({ backend, loadBalancer }) =>
        loadBalancer.status.backends[backend.id]?.resolved ?? notReported('Resolved', loadBalancer),
    }),
    createdAt: t.field({
      type: 'DateTime',
      description: 'When it was added.',
      resolve: ({ backend }) => backend.createdAt,
    }),
  }),
})

export const BackendConnection = builder.connectionObject(
  {
    type: Backend,
    name: 'BackendConnection',
    description: 'A page of backends.',
    fields: (t) => ({
      totalCount: t.int({
        description: 'How many there are in all, over every page.',
        resolve: total,
      }),
    }),
  },
  { name: 'BackendEdge', description: 'A backend and its place in the list.' },
)

export const BackendFilter = builder.inputType('BackendFilter', {
  description: 'Chooses backends. All that is given must match; within a list, any.',
  fields: (t) => ({
    address: t.field({ type: 'IPAddress', description: 'It has exactly this address.' }),
    health: t.field({ type: [HealthState], description: 'Its health is one of these.' }),
    adminState: t.field({
      type: [BackendAdminState],
      description: 'Its admin state is one of these.',
    }),
    serving: t.boolean({ description: 'Whether new connections are sent to it now.' }),
  }),
})

type Wanted = {
  address?: string | null | undefined
  health?: readonly string[] | null | undefined
  adminState?: readonly string[] | null | undefined
  serving?: boolean | null | undefined
}

/** The backends of a load balancer that a filter chooses, in the order they were added. */
export function chosenBackends(loadBalancer: LoadBalancerRecord, filter: Wanted): BackendShape[] {
  return loadBalancer.backends
    .map((backend) => ({ backend, loadBalancer }))
    .filter(
      (shape) =>
        (filter.address == null || filter.address === shape.backend.address) &&
        (filter.health == null || filter.health.includes(shape.backend.health.state)) &&
        (filter.adminState == null || filter.adminState.includes(shape.backend.adminState)) &&
        (filter.serving == null || filter.serving === isServing(shape)),
    )
}
