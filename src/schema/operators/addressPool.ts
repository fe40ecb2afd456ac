import type { PoolRecord } from '../../domain/operators/poolRecord.ts'
import { AddressFamily } from '../addressFamily.ts'
import { FOR_OPERATORS } from '../audience.ts'
import { builder } from '../builder.ts'
import { globalId } from '../ids.ts'
import { Node } from '../node.ts'
import { total } from '../pages.ts'
import { Region } from '../region.ts'
import { regionById } from './regionById.ts'

export const AddressPoolState = builder.enumType('AddressPoolState', {
  description: 'Whether a pool hands out addresses.',
  extensions: FOR_OPERATORS,
  values: {
    ACTIVE: { description: 'It does.' },
    DISABLED: { description: 'It does not. What was handed out stays with whoever has it.' },
  } as const,
})

export const AddressPool = builder.objectRef<PoolRecord>('AddressPool')

AddressPool.implement({
  description: 'A range of addresses of one family, out of which one region hands out.',
  extensions: FOR_OPERATORS,
  interfaces: [Node],
  fields: (t) => ({
    id: t.id({
      description: 'Names this pool among all objects of the API.',
      resolve: ({ id }) => globalId('AddressPool', id),
    }),
    name: t.expose('name', { type: 'ResourceName', description: 'Its name, unique everywhere.' }),
    region: t.field({
      type: Region,
      nullable: true,
      description: 'The region that it is of. Null is kept for pools of all regions.',
      resolve: ({ regionId }, _args, context) => regionById(context, regionId),
    }),
    family: t.expose('family', { type: AddressFamily, description: 'The kind of its addresses.' }),
    prefix: t.expose('prefix', { type: 'IPPrefix', description: 'All that it may hand out of.' }),
    allocationPrefixLength: t.exposeInt('allocationPrefixLength', {
      description:
        'The length of the block that one load balancer gets: 128 for a single address, less for a subnet each; 32 for IPv4.',
    }),
    state: t.expose('state', {
      type: AddressPoolState,
      description: 'Whether it hands out addresses.',
    }),
    skipFirstAndLast: t.exposeBoolean('skipFirstAndLast', {
      description: 'Whether its first and last block are never handed out.',
    }),
    coolDownSeconds: t.exposeInt('coolDownSeconds', {
      description:
        'How long a block that was given back rests before somebody else gets it, in seconds.',
    }),
    excluded: t.expose('excluded', {
      type: ['IPPrefix'],
      description: 'What is never handed out of it.',
    }),
    size: t.exposeString('size', {
      description:
        'How many blocks it can hand out in all, taken or not. This and the next three are decimal texts: an IPv6 pool may have more than a number in JSON holds.',
    }),
    used: t.exposeString('used', { description: 'How many somebody has.' }),
    held: t.exposeString('held', {
      description: 'How many were given back, but a cluster may still carry them.',
    }),
    coolingDown: t.exposeString('coolingDown', {
      description: 'How many were given back and rest.',
    }),
  }),
})

export const AddressPoolConnection = builder.connectionObject(
  {
    type: AddressPool,
    name: 'AddressPoolConnection',
    description: 'A page of pools.',
    extensions: FOR_OPERATORS,
    fields: (t) => ({
      totalCount: t.int({
        description: 'How many there are in all, over every page.',
        resolve: total,
      }),
    }),
  },
  {
    name: 'AddressPoolEdge',
    description: 'A pool and its place in the list.',
    extensions: FOR_OPERATORS,
  },
)
