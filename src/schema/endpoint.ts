import type { EndpointRecord } from '../domain/records.ts'
import { FOR_OPERATORS } from './audience.ts'
import { builder } from './builder.ts'
import { Region } from './region.ts'

export const Endpoint = builder.objectRef<EndpointRecord>('Endpoint')

Endpoint.implement({
  description: 'An address that is known to live in a VPC, e.g. that of a virtual machine.',
  fields: (t) => ({
    address: t.expose('address', { type: 'IPAddress', description: 'The address.' }),
    region: t.expose('region', { type: Region, description: 'The region that it lives in.' }),
    name: t.exposeString('name', {
      description: 'The name of the network interface that carries it.',
    }),
    cluster: t.exposeString('cluster', {
      description: 'The name of the cluster that it lives in.',
      extensions: FOR_OPERATORS,
    }),
    node: t.exposeString('node', {
      description: 'The node that it lives on.',
      extensions: FOR_OPERATORS,
    }),
  }),
})

export const EndpointFilter = builder.inputType('EndpointFilter', {
  description: 'Chooses addresses of a VPC. All that is given must match; within a list, any.',
  fields: (t) => ({
    region: t.stringList({ description: 'It lives in one of these regions, by code.' }),
    nameContains: t.string({ description: 'The name of its interface contains this text.' }),
    address: t.field({ type: 'IPAddress', description: 'It is exactly this address.' }),
  }),
})
