import { builder } from './builder.ts'

const LoadBalancerOrderField = builder.enumType('LoadBalancerOrderField', {
  description: 'What a list of load balancers can be ordered by.',
  values: {
    NAME: { description: 'By name, alphabetically.' },
    CREATED_AT: { description: 'By when it was created.' },
    UPDATED_AT: { description: 'By when what was asked for was last changed.' },
  } as const,
})

const OrderDirection = builder.enumType('OrderDirection', {
  description: 'Which end of an order comes first.',
  values: {
    ASC: { description: 'The smallest, or oldest, first. The default.' },
    DESC: { description: 'The greatest, or newest, first.' },
  } as const,
})

export const LoadBalancerOrder = builder.inputType('LoadBalancerOrder', {
  description: 'How a list of load balancers is ordered; equal ones by id.',
  fields: (t) => ({
    field: t.field({
      type: LoadBalancerOrderField,
      required: true,
      description: 'What to order by.',
    }),
    direction: t.field({ type: OrderDirection, description: 'ASC where none is given.' }),
  }),
})
