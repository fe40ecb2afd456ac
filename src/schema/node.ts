import { builder } from './builder.ts'
import { type NodeShape, typeOfNode } from './shapes.ts'

export const Node = builder.interfaceRef<NodeShape>('Node')

Node.implement({
  description: 'Anything with an id that `node` can fetch again.',
  resolveType: (shape) => typeOfNode(shape),
  fields: (t) => ({
    id: t.id({
      description:
        'Names this object among all objects of the API. Opaque: keep it, compare it, pass it back.',
      resolve: () => {
        throw new Error('each type has an id of its own')
      },
    }),
  }),
})
