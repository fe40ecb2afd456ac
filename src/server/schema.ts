/** The schemas that are served. Whatever belongs to them registers with the builder when it is loaded. */
import '../schema/scalars.ts'
import '../resolvers/roots.ts'
import '../resolvers/caller.ts'
import '../resolvers/events.ts'
import '../resolvers/ipv4ReservationChanges.ts'
import '../resolvers/ipv4Reservations.ts'
import '../resolvers/loadBalancerChanges.ts'
import '../resolvers/loadBalancers.ts'
import '../resolvers/nodes.ts'
import '../resolvers/operators/clusters.ts'
import '../resolvers/operators/pools.ts'
import '../resolvers/operators/projects.ts'
import '../resolvers/operators/reachability.ts'
import '../resolvers/operators/regions.ts'
import '../resolvers/places.ts'
import '../resolvers/quotas.ts'
import '../resolvers/streams/subscriptions.ts'
import { defaultFieldResolver, type GraphQLSchema } from 'graphql'
import { builder } from '../schema/builder.ts'
import type { Context } from '../schema/context.ts'

/** What tenants are served. Built once: building it takes tens of milliseconds. */
export const schema: GraphQLSchema = noting(
  builder.toSchema({ audience: 'tenants', sortSchema: false }),
)

/** What operators are served at their own path: all of the tenants', and more. */
export const operatorSchema: GraphQLSchema = noting(
  builder.toSchema({ audience: 'operators', sortSchema: false }),
)

/** Has each mutation's answer noted in its request, whatever it was. */
function noting(schema: GraphQLSchema): GraphQLSchema {
  const mutations = schema.getMutationType()?.getFields() ?? {}
  for (const [name, field] of Object.entries(mutations)) {
    const { resolve = defaultFieldResolver } = field
    field.resolve = async (root, args, context: Context, info) => {
      const note = (answer: unknown) => context.noted?.answered(name, args['input'], answer)
      try {
        const answer: unknown = await resolve(root, args, context, info)
        note(answer)
        return answer
      } catch (error) {
        note(error)
        throw error
      }
    }
  }
  return schema
}
