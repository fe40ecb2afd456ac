import { Client, cacheExchange, fetchExchange, gql } from '@urql/core'
import { beforeAll, expect, test } from 'vitest'
import { create, useService } from './service.ts'

/** The portal's client: everything by POST, answers kept in a cache of documents. */
const service = useService()
let client: Client
let requests: { method: string | undefined; url: string }[] = []
beforeAll(() => {
  client = new Client({
    url: service.url(),
    exchanges: [cacheExchange, fetchExchange],
    preferGetMethod: false,
    fetchOptions: { headers: { authorization: 'Bearer alice' } },
    fetch: (url, init) => {
      requests.push({ method: init?.method, url: String(url) })
      return fetch(url, init)
    },
  })
})

const LIST = gql`query List($first: Int) {
  loadBalancers(first: $first) { totalCount nodes { id name displayName status { phase } } }
}`
const RENAME = gql`mutation Rename($input: UpdateLoadBalancerInput!) {
  updateLoadBalancer(input: $input) {
    ... on UpdateLoadBalancerPayload { loadBalancer { id displayName } }
    ... on UserError { code message }
  }
}`

test('it lists, is answered from its cache, changes, and then sees the change', async () => {
  const made = await create(service, 'portal')
  requests = []
  const first = await client.query(LIST, { first: 10 })
  expect(first.error).toBeUndefined()
  expect(first.data.loadBalancers.nodes).toMatchObject([{ id: made.id, name: 'portal' }])
  const cached = await client.query(LIST, { first: 10 })
  expect(cached.data).toEqual(first.data)
  expect(requests).toHaveLength(1)

  const renamed = await client.mutation(RENAME, { input: { id: made.id, displayName: 'Portal' } })
  expect(renamed.error).toBeUndefined()
  expect(renamed.data.updateLoadBalancer.loadBalancer).toMatchObject({ displayName: 'Portal' })
  // The cache forgets what holds a type that a mutation answered with.
  const after = await client.query(LIST, { first: 10 })
  expect(after.data.loadBalancers.nodes).toMatchObject([{ displayName: 'Portal' }])
  expect(requests.map(({ method }) => method)).toEqual(['POST', 'POST', 'POST'])
})

test('refusals are data, and errors tell their code', async () => {
  const refused = await client.mutation(RENAME, { input: { id: 'nonsense', displayName: 'x' } })
  expect(refused.error).toBeUndefined()
  expect(refused.data.updateLoadBalancer).toMatchObject({ code: 'NOT_FOUND' })
  const wrong = await client.query(LIST, { first: 101 })
  expect(wrong.error?.graphQLErrors.map(({ extensions }) => extensions['code'])).toEqual([
    'BAD_USER_INPUT',
  ])
  const headers = { authorization: 'Bearer stranger' }
  const stranger = await client.query(LIST, { first: 1 }, { fetchOptions: { headers } })
  expect(stranger.error?.graphQLErrors.map(({ extensions }) => extensions['code'])).toEqual([
    'UNAUTHENTICATED',
  ])
})
