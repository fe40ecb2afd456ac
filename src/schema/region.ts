import type { RegionRecord } from '../domain/records.ts'
import { AddressFamily } from './addressFamily.ts'
import { builder } from './builder.ts'
import { globalId } from './ids.ts'
import { Node } from './node.ts'
import { SessionAffinity } from './sessionAffinity.ts'

export const Region = builder.objectRef<RegionRecord>('Region')

Region.implement({
  description: 'A place where load balancers can run. It has a short code that never changes.',
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Names this region among all objects of the API.',
      resolve: (region) => globalId('Region', region.id),
    }),
    code: t.exposeString('code', {
      description: 'Its code, e.g. `us-east-1`: what the other fields and arguments call `region`.',
    }),
    displayName: t.exposeString('displayName', { description: 'Its name for people.' }),
    cityCode: t.exposeString('cityCode', {
      description: 'The city that it is in, as airports abbreviate it, e.g. `IAD`.',
    }),
    addressFamilies: t.expose('addressFamilies', {
      type: [AddressFamily],
      description:
        'The kinds of addresses that are served there today. An IPv4 address can be reserved and bound in every region; where IPV4 is missing here, it carries no traffic yet.',
    }),
    sessionAffinities: t.expose('sessionAffinities', {
      type: [SessionAffinity],
      description:
        'The session affinities that are honoured there today. Others can be asked for and are told as not honoured in the status.',
    }),
    acceptsLoadBalancers: t.exposeBoolean('acceptsLoadBalancers', {
      description: 'Whether new load balancers can be created there now.',
    }),
  }),
})
