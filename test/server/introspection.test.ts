import { getIntrospectionQuery } from 'graphql'
import { expect, test } from 'vitest'
import { useService } from './service.ts'

const service = useService({ introspection: false })

test('where it is off the schema tells nothing of itself, not even by suggestions', async () => {
  for (const query of [
    getIntrospectionQuery(),
    '{ __schema { queryType { name } } }',
    '{ __type(name: "Query") { name } }',
    '{ callr { subject } }',
    '{ caller { subjct } }',
    '{ loadBalancers(frst: 1) { totalCount } }',
    '{ regions { id } ... on Qury { cursor } }',
    'query ($a: LoadBalancerFiltr) { loadBalancers(filter: $a) { totalCount } }',
    '{ loadBalancers(filter: { nam: "x" }) { totalCount } }',
    'subscription { loadBalancrs { type } }',
  ]) {
    const { body } = await service.query(query)
    expect(body).not.toHaveProperty('data')
    expect(body.errors?.[0]?.extensions.code).toBe('BAD_USER_INPUT')
    expect(body.errors?.map(({ message }) => message).join()).not.toContain('Did you mean')
  }
})

test('variables give no names away either', async () => {
  const { body } = await service.query(
    'query ($filter: LoadBalancerFilter) { loadBalancers(filter: $filter) { totalCount } }',
    { filter: { rgion: ['x'] } },
  )
  expect(body.errors?.[0]?.message).not.toContain('Did you mean')
})

test('clients that keep a cache are still told the names of types', async () => {
  const { body } = await service.query('{ __typename caller { __typename } }')
  expect(body.data).toEqual({ __typename: 'Query', caller: { __typename: 'Caller' } })
})
