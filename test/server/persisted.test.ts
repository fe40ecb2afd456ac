import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'graphql-sse'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { startServer } from '../../src/server/server.ts'
import { answerOf, field, useService } from './service.ts'

const hash = (text: string) => createHash('sha256').update(text).digest('hex')

const QUERY = 'query Me($with: Boolean = true) { caller { subject email @include(if: $with) } }'
const WATCH = 'subscription { loadBalancers { type } }'
const MUTATION = 'mutation { deleteLoadBalancer(input: { id: "x" }) { __typename } }'

const directory = await mkdtemp(join(tmpdir(), 'persisted-'))
afterAll(() => rm(directory, { recursive: true }))
const path = join(directory, 'documents.json')
await writeFile(
  path,
  JSON.stringify(Object.fromEntries([QUERY, WATCH, MUTATION].map((text) => [hash(text), text]))),
)

const service = useService({ persistedDocuments: path })
const headers = { 'content-type': 'application/json', authorization: 'Bearer alice' }
let url: string
beforeAll(() => {
  url = service.url()
})
const post = async (body: unknown) =>
  answerOf(await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) }))
const persistedQuery = (text: string) => ({
  extensions: { persistedQuery: { version: 1, sha256Hash: hash(text) } },
})

test('a document is named by its hash in either way, by POST and by GET', async () => {
  const variables = { with: false }
  const named = [
    { documentId: `sha256:${hash(QUERY)}`, variables },
    { documentId: hash(QUERY), variables },
    { ...persistedQuery(QUERY), variables },
  ]
  for (const parameters of named) {
    expect(field((await post(parameters)).body)).toEqual({ subject: 'alice' })
    const texts = Object.entries(parameters).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : JSON.stringify(value),
    ])
    const got = await fetch(`${url}?${new URLSearchParams(texts)}`, { headers })
    expect(field((await answerOf(got)).body)).toEqual({ subject: 'alice' })
  }
})

test('a hash that names nothing is told in the words that clients wait for, and documents still go', async () => {
  for (const parameters of [persistedQuery('{ regions { id } }'), { documentId: 'sha256:00' }]) {
    const { status, body } = await post(parameters)
    expect(status).toBe(400)
    expect(body.errors).toMatchObject([
      { message: 'PersistedQueryNotFound', extensions: { code: 'BAD_USER_INPUT' } },
    ])
  }
  const query = '{ regions { code } }'
  expect(field((await post({ query, ...persistedQuery(query) })).body)).toHaveLength(1)
})

test('a mutation that is named is no more executed by GET than one that is sent', async () => {
  const got = await fetch(`${url}?documentId=${hash(MUTATION)}`, { headers })
  expect(got.status).toBe(405)
})

test('subscriptions are named too, over both transports', async () => {
  const sse = createClient({ url, headers, retryAttempts: 0 })
  const results = sse.iterate({ query: '', ...persistedQuery(WATCH) })
  expect((await results.next()).value).toMatchObject({
    data: { loadBalancers: { type: 'SYNCED' } },
  })
  await results.return?.()
  sse.dispose()

  const socket = new WebSocket(url.replace('http', 'ws'), 'graphql-transport-ws')
  const messages: unknown[] = []
  const next = new Promise<unknown>((resolve) => {
    socket.on('message', (data) => {
      const message = JSON.parse(String(data))
      messages.push(message)
      if (message.type === 'connection_ack') {
        const payload = { query: '', ...persistedQuery(WATCH) }
        socket.send(JSON.stringify({ id: '1', type: 'subscribe', payload }))
      } else resolve(message)
    })
  })
  socket.on('open', () => {
    const payload = { authorization: 'Bearer alice' }
    socket.send(JSON.stringify({ type: 'connection_init', payload }))
  })
  expect(await next).toMatchObject({
    type: 'next',
    payload: { data: { loadBalancers: { type: 'SYNCED' } } },
  })
  socket.terminate()
})

test.each([
  ['is not there', null],
  ['is no JSON', '{'],
  ['holds a list', '[]'],
  ['names a document wrongly', JSON.stringify({ [hash('x')]: QUERY })],
  ['holds what is no text', JSON.stringify({ [hash('x')]: 7 })],
  ['holds a document that is not valid', JSON.stringify({ [hash('{ nothing }')]: '{ nothing }' })],
])('a file that %s keeps the process from starting, in one line', async (what, text) => {
  const persistedDocuments = join(directory, `${hash(what)}.json`)
  if (text !== null) await writeFile(persistedDocuments, text)
  const { store } = service
  const started = startServer({
    ...{ store, persistedDocuments, identify: () => null },
    ...{ host: '127.0.0.1', port: 0 },
  })
  await expect(started).rejects.toThrow(/^PERSISTED_DOCUMENTS: expected [^\n]+$/)
})
