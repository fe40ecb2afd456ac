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
import type { GraphQLSchema } from 'graphql'
import { builder } from '../schema/builder.ts'

/** What tenants are served. Built once: building it takes tens of milliseconds. */
export const schema: GraphQLSchema = builder.toSchema({ audience: 'tenants', sortSchema: false })

/** What operators are served at their own path: all of the tenants', and more. */
export const operatorSchema: GraphQLSchema = builder.toSchema({
  audience: 'operators',
  sortSchema: false,
})
