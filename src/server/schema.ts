/** The schema that is served. Whatever belongs to it registers with the builder when it is loaded. */
import '../schema/scalars.ts'
import '../resolvers/roots.ts'
import '../resolvers/caller.ts'
import '../resolvers/events.ts'
import '../resolvers/ipv4ReservationChanges.ts'
import '../resolvers/ipv4Reservations.ts'
import '../resolvers/loadBalancerChanges.ts'
import '../resolvers/loadBalancers.ts'
import '../resolvers/nodes.ts'
import '../resolvers/places.ts'
import '../resolvers/streams/subscriptions.ts'
import type { GraphQLSchema } from 'graphql'
import { builder } from '../schema/builder.ts'

/** What tenants are served. Built once: building it takes tens of milliseconds. */
export const schema: GraphQLSchema = builder.toSchema({ sortSchema: false })
