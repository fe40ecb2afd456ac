import type * as plans from '../domain/plans/plan.ts'
import { builder } from './builder.ts'
import { FieldChange } from './changeEvent.ts'

export const ChangeAction = builder.enumType('ChangeAction', {
  description: 'What a change does to something.',
  values: {
    CREATE: { description: 'It is not there before.' },
    UPDATE: { description: 'It is there before and after, and is changed.' },
    DELETE: { description: 'It is not there after.' },
    NONE: { description: 'It stays as it is.' },
  } as const,
})

const AddressChange = builder.objectRef<plans.AddressChange>('AddressChange')

AddressChange.implement({
  description: 'What a change does to one address.',
  fields: (t) => ({
    address: t.expose('address', { type: 'IPAddress', description: 'The address.' }),
    action: t.expose('action', {
      type: ChangeAction,
      description:
        'CREATE: it is taken from the pool. UPDATE: it stays reserved and is bound, unbound or moved. DELETE: it is given back.',
    }),
  }),
})

const FlowImpact = builder.objectRef<plans.FlowImpact>('FlowImpact')

FlowImpact.implement({
  description:
    'What a change does to the table by which connections are spread over backends. A connection belongs to one slot; where the backend of its slot changes it is cut, since no table of connections is kept. moved = lost + taken + needless.',
  fields: (t) => ({
    clusters: t.exposeInt('clusters', {
      description: 'How many clusters of the region have this table.',
    }),
    tableSize: t.exposeInt('tableSize', { description: 'How many slots the table has.' }),
    moved: t.exposeInt('moved', { description: 'The slots whose backend changes.' }),
    lost: t.exposeInt('lost', { description: 'Of these, those whose backend leaves.' }),
    taken: t.exposeInt('taken', {
      description: 'Of these, those whose backend stays, and a new backend takes them.',
    }),
    needless: t.exposeInt('needless', {
      description: 'Of these, those that go from one backend that stays to another that stays.',
    }),
    movedShare: t.float({
      description:
        'The slots whose backend changes as a share of all: about the share of connections that are cut.',
      resolve: ({ moved, tableSize }) => moved / tableSize,
    }),
  }),
})

const Warning = builder.objectRef<plans.Warning>('Warning')

Warning.implement({
  description: 'What a person should know before making a change that would be accepted.',
  fields: (t) => ({
    code: t.exposeString('code', {
      description:
        'What it is, for programs. About connections: `FLOWS_MOVE`, `PORT_CHANGE_MOVES_ALL_FLOWS`, `PROTOCOL_CHANGE_CUTS_ALL_FLOWS`, `AFFINITY_CHANGE_MOVES_FLOWS`, `SERVED_IN_MORE_PLACES`, `SERVED_IN_FEWER_PLACES`, `SERVICE_ENDS`, `OTHER_LOAD_BALANCER_CHANGES`. About what would not serve: `NO_BACKENDS`, `ADDRESS_UNKNOWN`, `NODE_CONFLICT`, `ATTACHMENT_SHARED`, `CLUSTER_CORDONED`, `IPV4_NOT_SERVED`, `ADDRESS_HELD_ELSEWHERE`, `AFFINITY_NOT_SUPPORTED`. `UNCHANGED`: nothing would change. More may come.',
    }),
    message: t.exposeString('message', { description: 'What it means, in words for people.' }),
    path: t.exposeStringList('path', {
      description:
        'Leads to the argument that it is about from the input, e.g. `["backends", "2", "address"]`. Empty where it is about the whole.',
    }),
  }),
})

export const ChangePlan = builder.objectRef<plans.Plan>('ChangePlan')

ChangePlan.implement({
  description:
    'What a change would do, found by the code that would do it. Nothing is reserved meanwhile: others may change things before you do.',
  fields: (t) => ({
    addresses: t.expose('addresses', {
      type: [AddressChange],
      description:
        'The addresses that would be taken, bound, unbound, moved or given back. A new one is the one that would be next now.',
    }),
    flows: t.expose('flows', {
      type: [FlowImpact],
      description:
        'What happens to connections: one answer for each distinct change of a table among the clusters, the one in most of them first. Empty where no connection moves.',
    }),
    warnings: t.expose('warnings', {
      type: [Warning],
      description: 'What to know before; empty where there is nothing to warn of.',
    }),
    changes: t.expose('changes', {
      type: [FieldChange],
      description: 'The fields that would be set to another value, as the history would tell.',
    }),
  }),
})
