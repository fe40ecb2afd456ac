import type { LoadBalancerRecord } from '../domain/records.ts'
import { AddressFamily } from './addressFamily.ts'
import { BackendConnection, BackendFilter, chosenBackends } from './backend.ts'
import { builder } from './builder.ts'
import { ChangeEventConnection, EventFilter, eventsOf } from './changeEvent.ts'
import { Explanation } from './explanation.ts'
import { FlowInput, FlowPreview, flowPreviewsOf } from './flowPreview.ts'
import { HealthCheck } from './healthCheck.ts'
import { backendId, globalId, uuidOf } from './ids.ts'
import { Label } from './label.ts'
import { LoadBalancerStatus } from './loadBalancerStatus.ts'
import { Node } from './node.ts'
import { connection, pageArgs, pageOfList, pageRequest, total } from './pages.ts'
import { LoadBalancerProtocol, PortRange, portsOf } from './protocol.ts'
import { Region } from './region.ts'
import { SessionAffinity } from './sessionAffinity.ts'
import { filterOf } from './valid.ts'
import { VirtualAddress } from './virtualAddress.ts'
import { Vpc } from './vpc.ts'

export const LoadBalancer = builder.objectRef<LoadBalancerRecord>('LoadBalancer')

const protocolOf = ({ protocol, port }: LoadBalancerRecord) => ({ kind: protocol, port })

LoadBalancer.implement({
  description:
    'Virtual addresses, one protocol (and port), and the backends that share the connections to them, in one region.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Names this load balancer among all objects of the API.',
      resolve: ({ id }) => globalId('LoadBalancer', id),
    }),
    name: t.expose('name', {
      type: 'ResourceName',
      description: 'Its name, unique in the project and region.',
    }),
    displayName: t.exposeString('displayName', {
      nullable: true,
      description: 'A name for people; null where none is set.',
    }),
    description: t.exposeString('description', {
      nullable: true,
      description: 'What it is for, in words of its owner; null where none are set.',
    }),
    labels: t.expose('labels', {
      type: [Label],
      description: 'Words of its owner to find and group it by, ordered by key.',
    }),
    projectName: t.exposeString('project', { description: 'The project that owns it.' }),
    vpc: t.field({
      type: Vpc,
      description: 'The private network that its backends live in.',
      resolve: ({ vpc, project }) => ({ ...vpc, project: vpc.project ?? project }),
    }),
    region: t.expose('region', {
      type: Region,
      nullable: true,
      description:
        'The region that it runs in; it never changes. Null is kept for load balancers that run everywhere.',
    }),
    protocol: t.field({
      type: LoadBalancerProtocol,
      description: 'What it balances.',
      resolve: protocolOf,
    }),
    protocolName: t.exposeString('protocol', {
      description:
        "The protocol's name, e.g. `TCP`, for clients that know none of the types of `protocol`.",
    }),
    ports: t.field({
      type: [PortRange],
      description: 'The ports that clients connect to. Empty for protocols without ports.',
      resolve: (record) => portsOf(protocolOf(record)),
    }),
    sessionAffinity: t.expose('sessionAffinity', {
      type: SessionAffinity,
      description: 'Which connections are to reach the same backend.',
    }),
    addresses: t.field({
      type: [VirtualAddress],
      description:
        'The addresses that clients connect to, in a stable order. Select by family, not by position.',
      args: {
        family: t.arg({
          type: AddressFamily,
          description: 'Only those of this family; all where none is given.',
        }),
      },
      resolve: (loadBalancer, { family }) =>
        loadBalancer.addresses
          .filter((address) => family == null || address.family === family)
          .map((address) => ({ address, loadBalancer })),
    }),
    healthCheck: t.expose('healthCheck', {
      type: HealthCheck,
      description: 'How its backends are probed.',
    }),
    backends: t.field({
      type: BackendConnection,
      description: 'The backends that share its connections, in the order they were added.',
      args: {
        ...pageArgs(t.arg),
        filter: t.arg({ type: BackendFilter, description: 'Which ones; all where none is given.' }),
      },
      resolve: (loadBalancer, args) => {
        const chosen = chosenBackends(loadBalancer, filterOf(args.filter))
        // Ids rise with time, so the order of the ids is the one in which they were added.
        const page = pageOfList(chosen, pageRequest(args), {
          of: ({ backend }) => backend.id,
          cursor: ({ backend }) => backendId(loadBalancer.id, backend.id),
          read: (cursor) => uuidOf('Backend', cursor),
        })
        return connection(page, () => chosen.length)
      },
    }),
    status: t.field({
      type: LoadBalancerStatus,
      description: 'How far what was asked for is in effect, and how it fares.',
      resolve: (record) => record,
    }),
    deletionProtection: t.exposeBoolean('deletionProtection', {
      description: 'While true, deleting it is refused.',
    }),
    generation: t.exposeInt('generation', {
      description: 'Counts the accepted changes of what was asked for, beginning with 1.',
    }),
    createdAt: t.expose('createdAt', { type: 'DateTime', description: 'When it was created.' }),
    updatedAt: t.expose('updatedAt', {
      type: 'DateTime',
      description: 'When what was asked for was last changed.',
    }),
    deletingSince: t.expose('deletingSince', {
      type: 'DateTime',
      nullable: true,
      description: 'When its deletion was asked for; null while nobody has.',
    }),
    events: t.field({
      type: ChangeEventConnection,
      description: 'Everything that ever happened to it, newest first.',
      args: {
        ...pageArgs(t.arg),
        filter: t.arg({ type: EventFilter, description: 'Which ones; all where none is given.' }),
      },
      resolve: ({ id }, args, context) => eventsOf(context, args, id),
    }),
    flowPreview: t.field({
      type: [FlowPreview],
      nullable: true,
      description:
        'Which backend would serve this client, and why: one answer for each distinct table among the clusters that serve it, the one that most of them have first. Which of the clusters a client comes to is decided by the network.',
      args: {
        client: t.arg({
          type: FlowInput,
          required: true,
          description: 'The client whose connections are asked about.',
        }),
      },
      resolve: (loadBalancer, { client }, context) => flowPreviewsOf(loadBalancer, client, context),
    }),
    explain: t.field({
      type: Explanation,
      nullable: true,
      description:
        'What stands between what was asked for and a client that is served: every link of the chain as it is now, with evidence, and the first that is broken with what would mend it. Null only where the load balancer is gone meanwhile.',
      resolve: ({ id }, _args, { loaders }) => loaders.explanations.load(id),
    }),
  }),
})

export const LoadBalancerConnection = builder.connectionObject(
  {
    type: LoadBalancer,
    name: 'LoadBalancerConnection',
    description: 'A page of load balancers.',
    fields: (t) => ({
      totalCount: t.int({
        description: 'How many there are in all, over every page.',
        resolve: total,
      }),
    }),
  },
  { name: 'LoadBalancerEdge', description: 'A load balancer and its place in the list.' },
)
