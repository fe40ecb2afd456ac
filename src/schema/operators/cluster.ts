import type { ClusterRecord, ClusterState as State } from '../../domain/operators/clusterRecord.ts'
import { countBlocking, listBlocking } from '../../domain/operators/clusters.ts'
import { FOR_OPERATORS } from '../audience.ts'
import { builder } from '../builder.ts'
import { requirePermission } from '../context.ts'
import { globalId } from '../ids.ts'
import { LoadBalancerConnection } from '../loadBalancer.ts'
import { loadAll } from '../loaders.ts'
import { Node } from '../node.ts'
import { connectionOf, pageArgs, pageRequest, total } from '../pages.ts'
import { Region } from '../region.ts'
import { StatusCondition } from '../statusCondition.ts'
import { regionById } from './regionById.ts'

export const ClusterMode = builder.enumType('ClusterMode', {
  description: 'What operators want of a cluster.',
  extensions: FOR_OPERATORS,
  values: {
    ACTIVE: { description: 'It is used for whatever lives there.' },
    CORDONED: {
      description:
        'It keeps what it has. No load balancer is newly placed there, and backends that are added later are not taken: they say ClusterCordoned.',
    },
    DRAINED: {
      description:
        'It is to be emptied: each load balancer leaves once another cluster serves it. One that has backends nowhere else stays.',
    },
  } as const,
})

const ClusterState = builder.enumType('ClusterState', {
  description: 'How far a cluster is in what operators want of it.',
  extensions: FOR_OPERATORS,
  values: {
    ACTIVE: { description: 'It is used.' },
    CORDONED: { description: 'It takes nothing new.' },
    DRAINING: { description: 'It is being emptied; `blockedBy` tells what can not leave.' },
    DRAINED: { description: 'Nothing of ours is left there: it can be removed.' },
    FORGOTTEN: {
      description:
        'It was given up while it did not answer. What may be left there stays held; once it answers it is swept.',
    },
  } satisfies Record<State, { description: string }>,
})

const Capability = builder.objectRef<ClusterRecord['capabilities'][number]>('Capability')

Capability.implement({
  description: 'One thing that was seen of the data plane of a cluster.',
  extensions: FOR_OPERATORS,
  fields: (t) => ({
    name: t.exposeString('name', {
      description:
        'What it is: `dialect` (of its rules), `sessionAffinity` (whether rules have a field for it), `gateways` (how many there are).',
    }),
    value: t.exposeString('value', { description: 'What was seen, as text.' }),
  }),
})

export const Cluster = builder.objectRef<ClusterRecord>('Cluster')

Cluster.implement({
  description: 'A Kubernetes cluster of a region that runs the data plane.',
  extensions: FOR_OPERATORS,
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Names this cluster among all objects of the API.',
      resolve: ({ id }) => globalId('Cluster', id),
    }),
    name: t.expose('name', { type: 'ResourceName', description: 'Its name, unique everywhere.' }),
    region: t.field({
      type: Region,
      description: 'The region that it belongs to.',
      resolve: ({ regionId }, _args, context) => regionById(context, regionId),
    }),
    context: t.exposeString('context', {
      description:
        'The context in the kubeconfig of the workers that reaches it. Credentials never leave their files.',
    }),
    mode: t.expose('mode', { type: ClusterMode, description: 'What operators want of it.' }),
    state: t.expose('state', { type: ClusterState, description: 'How far it is in that.' }),
    servesIPv4: t.exposeBoolean('servesIPv4', {
      description: 'Whether its data plane serves IPv4 addresses: said by an operator.',
    }),
    resolvesRemoteBackends: t.exposeBoolean('resolvesRemoteBackends', {
      description:
        'Whether its data plane finds backends that live in other clusters: said by an operator.',
    }),
    hasProber: t.exposeBoolean('hasProber', {
      description: 'Whether its worker stands where backends can be probed: said by an operator.',
    }),
    reachable: t.expose('reachable', {
      type: StatusCondition,
      description: 'Whether it answers. Unknown while no worker serves it.',
    }),
    sweep: t.expose('sweep', {
      type: StatusCondition,
      description:
        'Whether every rule of ours there has an owner, as last looked through. What has an unknown owner waits for `allowSweep`.',
    }),
    inventory: t.expose('inventory', {
      type: StatusCondition,
      description: 'Whether what is known to live there is up to date.',
    }),
    capabilities: t.expose('capabilities', {
      type: [Capability],
      description: 'What was seen of its data plane.',
    }),
    rules: t.exposeInt('rules', {
      description: 'How many rules of ours it has, or may have while it does not answer.',
    }),
    behind: t.exposeInt('behind', {
      description: 'Load balancers of which the last that was asked is not applied there yet.',
    }),
    lagSeconds: t.exposeInt('lagSeconds', {
      description: 'Since how many seconds the longest of these waits; 0 where none does.',
    }),
    blockedBy: t.field({
      type: LoadBalancerConnection,
      description:
        'While it is drained: the load balancers that have backends nowhere else, oldest first.',
      args: pageArgs(t.arg),
      resolve: ({ id: cluster }, args, context) => {
        requirePermission(context, 'loadbalancers.list')
        const { store, loaders } = context
        return connectionOf(
          listBlocking(store, { cluster, page: pageRequest(args) }),
          (ids) => loadAll(loaders.loadBalancers, ids),
          () => countBlocking(store, cluster),
        )
      },
    }),
    owner: t.exposeString('owner', {
      nullable: true,
      description: 'The worker process that serves it now; null while none does.',
    }),
  }),
})

export const ClusterConnection = builder.connectionObject(
  {
    type: Cluster,
    name: 'ClusterConnection',
    description: 'A page of clusters.',
    extensions: FOR_OPERATORS,
    fields: (t) => ({
      totalCount: t.int({
        description: 'How many there are in all, over every page.',
        resolve: total,
      }),
    }),
  },
  {
    name: 'ClusterEdge',
    description: 'A cluster and its place in the list.',
    extensions: FOR_OPERATORS,
  },
)
