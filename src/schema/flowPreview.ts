import { type FlowPreview as Preview, previewFlow } from '../domain/flows/preview.ts'
import type { LoadBalancerRecord } from '../domain/records.ts'
import { Backend } from './backend.ts'
import { builder } from './builder.ts'
import type { Context } from './context.ts'
import { badUserInput } from './failures.ts'
import { valid } from './valid.ts'

export const FlowInput = builder.inputType('FlowInput', {
  description: 'A client whose connections are asked about.',
  fields: (t) => ({
    address: t.field({
      type: 'IPAddress',
      required: true,
      description: "The client's address, as the load balancer sees it.",
    }),
    port: t.field({
      type: 'Port',
      description:
        "The client's own port (not the load balancer's). Needed where connections are spread by it, which is so without session affinity.",
    }),
  }),
})

type Shape = { preview: Preview; loadBalancer: LoadBalancerRecord }

export const FlowPreview = builder.objectRef<Shape>('FlowPreview')

FlowPreview.implement({
  description:
    'Which backend serves the connections of a client, where one and the same table of backends is in effect.',
  fields: (t) => ({
    backend: t.field({
      type: Backend,
      nullable: true,
      description: 'The backend that serves them; null where nothing serves.',
      resolve: ({ preview: { backend }, loadBalancer }) => backend && { backend, loadBalancer },
    }),
    slot: t.int({
      nullable: true,
      description:
        'The slot of the table that they fall into, from 0; the backend is the one that the slot belongs to. Null where nothing serves.',
      resolve: ({ preview }) => preview.slot,
    }),
    tableSize: t.int({
      description: 'How many slots the table has.',
      resolve: ({ preview }) => preview.tableSize,
    }),
    hashedOver: t.stringList({
      description:
        'What of a connection chooses the slot, in the order in which it is hashed: `CLIENT_ADDRESS`, `CLIENT_PORT`, `PROTOCOL`. It is what is done, which may be less than the session affinity that was asked for.',
      resolve: ({ preview }) => [...preview.hashedOver],
    }),
    clusters: t.int({
      description: 'How many of the clusters of the region that serve it have this table.',
      resolve: ({ preview }) => preview.clusters,
    }),
    share: t.float({
      description: 'The same as a share of the clusters that serve it, 0 to 1.',
      resolve: ({ preview }) => preview.share,
    }),
  }),
})

/** The answers for one client, as the graph shows them. */
export async function flowPreviewsOf(
  loadBalancer: LoadBalancerRecord,
  client: typeof FlowInput.$inferInput,
  { loaders }: Context,
): Promise<Shape[]> {
  const { address, port } = valid(client)
  const serving = (await loaders.serving.load(loadBalancer.id)) ?? []
  const previews = previewFlow(loadBalancer, serving, { address, port: port ?? undefined })
  if (previews === 'PORT_NEEDED') {
    throw badUserInput(
      "client.port is missing: the connections of this load balancer are spread by the client's port too.",
    )
  }
  return previews.map((preview) => ({ preview, loadBalancer }))
}
