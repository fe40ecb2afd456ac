import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { listAt, metadataOf, objectAt, textAt } from '../../../dev/kube/json.ts'
import type { Answered, Client } from './server.ts'
import {
  condition,
  NETWORK,
  nameOf,
  namespace,
  RULES,
  rule,
  startClient,
  take,
  versionOf,
} from './server.ts'

let client: Client
beforeAll(async () => {
  client = await startClient({ bookmarkMs: 50, freshWaitMs: 50 })
})
afterAll(() => client.close())

const names = (answer: Answered): string[] =>
  listAt(answer.body, 'items').map((item) => nameOf(Object(item)))
const next = (answer: Answered): string => textAt(metadataOf(answer.body), 'continue') ?? ''

describe('a list', () => {
  beforeAll(async () => {
    for (const name of ['b', 'a', 'e', 'd', 'c']) {
      await client.apply(`${RULES}/${name}`, rule(name, {}, { labels: { letter: name } }))
    }
  })

  test('comes in pages of one snapshot', async () => {
    const first = await client.get(`${RULES}?limit=2`)
    expect(names(first)).toEqual(['a', 'b'])
    expect(metadataOf(first.body)).toMatchObject({ remainingItemCount: 3 })
    await client.call('DELETE', `${RULES}/c`)
    await client.apply(`${RULES}/bb`, rule('bb'))
    const second = await client.get(`${RULES}?limit=2&continue=${next(first)}`)
    expect(names(second)).toEqual(['c', 'd'])
    expect(versionOf(second.body)).toBe(versionOf(first.body))
    const third = await client.get(`${RULES}?limit=2&continue=${next(second)}`)
    expect([names(third), next(third)]).toEqual([['e'], ''])
    expect(names(await client.get(RULES))).toEqual(['a', 'b', 'bb', 'd', 'e'])
  })

  test('goes on inconsistently where its snapshot was compacted', async () => {
    const first = await client.get(`${RULES}?limit=2`)
    await client.merge(`${RULES}/a`, { spec: { port: 1000 } })
    client.server.storage.compact()
    const gone = await client.get(`${RULES}?limit=2&continue=${next(first)}`)
    expect([gone.code, gone.body['reason']]).toEqual([410, 'Expired'])
    const rest = await client.get(`${RULES}?continue=${next(gone)}`)
    expect([rest.code, names(rest)]).toEqual([200, ['bb', 'd', 'e']])
    const exact = `${RULES}?resourceVersionMatch=Exact&resourceVersion=${versionOf(first.body)}`
    expect((await client.get(exact)).code).toBe(410)
  })

  test('can be of an exact earlier version', async () => {
    const before = await client.get(RULES)
    await client.call('DELETE', `${RULES}/bb`)
    const query = `resourceVersion=${versionOf(before.body)}&resourceVersionMatch=Exact`
    expect(names(await client.get(`${RULES}?${query}`))).toEqual(names(before))
  })

  test('of a version from the future is 504 with a hint to come again', async () => {
    const answer = await client.get(`${RULES}?resourceVersion=999999`)
    expect([answer.code, answer.headers['retry-after']]).toEqual([504, '1'])
    expect(answer.body).toMatchObject({ reason: 'Timeout', details: { retryAfterSeconds: 1 } })
  })

  test('is narrowed by labels and by name', async () => {
    const selected = async (query: string) => names(await client.get(`${RULES}?${query}`))
    const label = (text: string) => selected(`labelSelector=${encodeURIComponent(text)}`)
    expect(await label('letter=a')).toEqual(['a'])
    expect(await label('letter in (a, b),letter!=b')).toEqual(['a'])
    expect(await label('letter notin (a,b)')).toEqual(['d', 'e'])
    expect(await label('letter,!other')).toEqual(['a', 'b', 'd', 'e'])
    expect(await selected('fieldSelector=metadata.name%3Dd')).toEqual(['d'])
    expect((await client.get(`${RULES}?labelSelector=a%3D%3D%3Db`)).code).toBe(400)
    expect((await client.get(`${RULES}?fieldSelector=spec.port%3D1`)).code).toBe(400)
  })

  test('spans namespaces where the path names none', async () => {
    await client.call('POST', '/api/v1/namespaces', namespace('galactic'))
    await client.apply(`${RULES.replace('-system', '')}/z`, rule('z'))
    const all = await client.get(`${NETWORK}/networkrules`)
    expect(names(all).sort()).toEqual(['a', 'b', 'd', 'e', 'z'])
    expect(names(await client.get(RULES))).not.toContain('z')
  })
})

describe('a watch', () => {
  let from: string
  beforeEach(async () => {
    from = versionOf((await client.get(RULES)).body)
  })

  test('tells every change after a version, in order', async () => {
    await client.apply(`${RULES}/w`, rule('w'))
    const events = client.watch(RULES, `resourceVersion=${from}`)
    expect(await take(events, 1)).toMatchObject([
      { type: 'ADDED', object: { kind: 'NetworkRule' } },
    ])
    await client.merge(`${RULES}/w/status`, { status: { conditions: [condition('Accepted')] } })
    await client.call('DELETE', `${RULES}/w`)
    const [modified, deleted] = await take(events, 2)
    expect([modified?.type, deleted?.type]).toEqual(['MODIFIED', 'DELETED'])
    expect(objectAt(modified?.object, 'status')).toBeDefined()
    const [m, d] = [modified, deleted].map((one) => Number(versionOf(one?.object ?? {})))
    expect(d).toBeGreaterThan(m ?? Number.NaN)
    await events.return()
  })

  test('without a version begins with all there is', async () => {
    const events = client.watch(RULES, 'resourceVersion=0')
    const all = await take(events, 4)
    expect(all.map((one) => `${one.type} ${nameOf(one.object)}`)).toEqual(
      ['a', 'b', 'd', 'e'].map((name) => `ADDED ${name}`),
    )
    await events.return()
  })

  test('as a streaming list marks the end of what there was', async () => {
    const query =
      'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
    const events = client.watch(RULES, query)
    const all = await take(events, 5)
    expect(all.map((one) => one.type)).toEqual(['ADDED', 'ADDED', 'ADDED', 'ADDED', 'BOOKMARK'])
    expect(all[4]?.object).toMatchObject({
      metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
    })
    await events.return()
    const refused = await client.get(`${RULES}?watch=true&sendInitialEvents=true`)
    expect(refused.code).toBe(422)
  })

  test('gets bookmarks while anything moves, and none when nothing does', async () => {
    const query = `resourceVersion=${from}&allowWatchBookmarks=true&timeoutSeconds=1`
    const events = client.watch(RULES, query)
    const first = events.next()
    const made = await client.call('POST', '/api/v1/namespaces', namespace('elsewhere'))
    const bookmark = (await first).value
    expect(bookmark).toMatchObject({ type: 'BOOKMARK', object: { kind: 'NetworkRule' } })
    expect(bookmark?.object).not.toHaveProperty('spec')
    expect(Number(versionOf(bookmark?.object ?? {}))).toBeGreaterThanOrEqual(
      Number(versionOf(made.body)),
    )
    expect(await take(events, 1)).toEqual([])
  })

  test('ends cleanly after timeoutSeconds, silent for a version from the future', async () => {
    const events = client.watch(RULES, 'resourceVersion=999999999&timeoutSeconds=1')
    expect(await take(events, 1)).toEqual([])
  })

  test('of a compacted version is one ERROR event in a 200, then the end', async () => {
    await client.merge(`${RULES}/a`, { metadata: { labels: { moved: from } } })
    client.server.storage.compact()
    const events = client.watch(RULES, `resourceVersion=${from}`)
    expect(await take(events, 2)).toMatchObject([
      { type: 'ERROR', object: { kind: 'Status', code: 410, reason: 'Expired' } },
    ])
  })

  test('by labels tells when an object comes in and goes out', async () => {
    const events = client.watch(RULES, `resourceVersion=${from}&labelSelector=in%3Dyes`)
    const seen = take(events, 3)
    for (const value of ['yes', 'yes', 'no']) {
      await client.merge(`${RULES}/b`, {
        metadata: { labels: { in: value, time: `${Math.random()}` } },
      })
    }
    const lines = await seen
    expect(lines.map((one) => one.type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
    expect(objectAt(metadataOf(lines[2]?.object ?? {}), 'labels')).toMatchObject({ in: 'yes' })
    await events.return()
  })
})
