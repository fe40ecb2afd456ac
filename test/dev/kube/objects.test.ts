import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { metadataOf, textAt } from '../../../dev/kube/json.ts'
import type { Client } from './server.ts'
import {
  causesOf,
  condition,
  JSON_PATCH,
  namespace,
  RULES,
  rule,
  startClient,
  versionOf,
} from './server.ts'

let client: Client
beforeAll(async () => {
  client = await startClient()
})
afterAll(() => client.close())

describe('a new object', () => {
  test('gets uid, generation, a creation time to the second and a rising version', async () => {
    const first = await client.call('POST', RULES, rule('made-1'))
    const second = await client.call('POST', RULES, rule('made-2'))
    expect([first.code, second.code]).toEqual([201, 201])
    expect(metadataOf(first.body)).toMatchObject({ generation: 1, namespace: 'galactic-system' })
    expect(textAt(metadataOf(first.body), 'creationTimestamp')).toMatch(/:\d\dZ$/)
    expect(textAt(metadataOf(first.body), 'uid')).toMatch(/^[0-9a-f-]{14}4[0-9a-f-]{21}$/)
    expect(Number(versionOf(second.body))).toBeGreaterThan(Number(versionOf(first.body)))
  })

  test('of a taken name is 409 AlreadyExists', async () => {
    await client.call('POST', RULES, rule('taken'))
    const again = await client.call('POST', RULES, rule('taken'))
    expect([again.code, again.body['reason']]).toEqual([409, 'AlreadyExists'])
  })

  test('keeps unknown fields out and says so, unless it is to be strict', async () => {
    const loose = await client.call('POST', RULES, rule('loose', { colour: 'red' }))
    expect(loose.code).toBe(201)
    expect(loose.headers['warning']).toBe('299 - "unknown field \\"spec.colour\\""')
    expect(loose.body['spec']).not.toHaveProperty('colour')
    const strict = await client.call(
      'POST',
      `${RULES}?fieldValidation=Strict`,
      rule('strict', { colour: 'red' }),
    )
    expect([strict.code, strict.body['reason']]).toEqual([400, 'BadRequest'])
  })

  test('has no status of its own making', async () => {
    const made = await client.call('POST', RULES, {
      ...rule('statusless'),
      status: { observedGeneration: 9 },
    })
    expect(made.body).not.toHaveProperty('status')
  })

  test('can be tried without being made', async () => {
    const tried = await client.call('POST', `${RULES}?dryRun=All`, rule('dry'))
    expect(tried.code).toBe(201)
    expect((await client.get(`${RULES}/dry`)).code).toBe(404)
  })

  test('is refused whole with every cause named', async () => {
    const bad = rule('bad', { port: 0, protocol: 'icmp', vpcRef: '' })
    const answer = await client.call('POST', RULES, bad)
    expect([answer.code, answer.body['reason']]).toEqual([422, 'Invalid'])
    expect(causesOf(answer).sort()).toEqual([
      'FieldValueInvalid <nil>',
      'FieldValueInvalid spec.port',
      'FieldValueInvalid spec.vpcRef',
      'FieldValueNotSupported spec.protocol',
    ])
  })

  test('in an absent namespace is 404 for the namespace', async () => {
    const path = RULES.replace('galactic-system', 'nowhere')
    const answer = await client.call('POST', path, rule('lost'))
    expect([answer.code, answer.body['message']]).toEqual([404, 'namespaces "nowhere" not found'])
  })

  test('with a name, label or annotation out of bounds is 422', async () => {
    const bad = [
      { name: 'A_b' },
      { name: 'a'.repeat(254) },
      { name: 'ok', labels: { x: 'v'.repeat(64) } },
      { name: 'ok', labels: { 'a/b/c': 'v' } },
      { name: 'ok', annotations: { a: 'x'.repeat(256 * 1024) } },
    ]
    for (const metadata of bad) {
      const answer = await client.call('POST', RULES, rule('ok', {}, metadata))
      expect([answer.code, JSON.stringify(metadata).slice(0, 80)]).toEqual([422, expect.anything()])
    }
  })

  test('that is too large is 500 above what can be stored and 413 above what is read', async () => {
    const sized = (size: number) =>
      client.call('POST', RULES, rule('large', { vpcRef: 'x'.repeat(size) }))
    expect((await sized(1_600_000)).code).toBe(500)
    expect((await sized(3_200_000)).code).toBe(413)
    expect((await sized(1_400_000)).code).toBe(201)
  })
})

describe('an update', () => {
  test('needs the current version', async () => {
    const made = await client.call('POST', RULES, rule('put'))
    const path = `${RULES}/put`
    const without = await client.call('PUT', path, rule('put', { port: 81 }))
    expect(without.code).toBe(422)
    const resourceVersion = versionOf(made.body)
    const first = await client.call('PUT', path, rule('put', { port: 81 }, { resourceVersion }))
    expect([first.code, metadataOf(first.body)['generation']]).toEqual([200, 2])
    const stale = await client.call('PUT', path, rule('put', { port: 82 }, { resourceVersion }))
    expect([stale.code, stale.body['reason']]).toEqual([409, 'Conflict'])
  })

  test('of another uid is a conflict, of an absent object not found', async () => {
    const made = await client.call('POST', RULES, rule('uid'))
    const metadata = { resourceVersion: versionOf(made.body), uid: 'another' }
    expect((await client.call('PUT', `${RULES}/uid`, rule('uid', {}, metadata))).code).toBe(409)
    expect((await client.call('PUT', `${RULES}/none`, rule('none', {}, metadata))).code).toBe(404)
  })

  test('that changes nothing leaves the version as it was', async () => {
    const made = await client.call('POST', RULES, rule('same'))
    const again = await client.call('PUT', `${RULES}/same`, made.body)
    expect(versionOf(again.body)).toBe(versionOf(made.body))
  })

  test('of the spec leaves the status alone, and the other way round', async () => {
    await client.call('POST', RULES, rule('halves'))
    const status = { conditions: [condition('Accepted')] }
    const told = await client.merge(`${RULES}/halves/status`, { spec: { port: 99 }, status })
    expect(told.body).toMatchObject({ spec: { port: 80 }, status, metadata: { generation: 1 } })
    const moved = await client.merge(`${RULES}/halves`, { spec: { port: 81 }, status: null })
    expect(moved.body).toMatchObject({ spec: { port: 81 }, status, metadata: { generation: 2 } })
  })

  test('of labels alone moves no generation', async () => {
    await client.call('POST', RULES, rule('labelled'))
    const answer = await client.merge(`${RULES}/labelled`, { metadata: { labels: { a: 'b' } } })
    expect(metadataOf(answer.body)).toMatchObject({ generation: 1, labels: { a: 'b' } })
  })

  test('by merge patch of an absent object is not found', async () => {
    expect((await client.merge(`${RULES}/absent`, { spec: { port: 1 } })).code).toBe(404)
  })

  test('by JSON patch does all operations or none', async () => {
    await client.call('POST', RULES, rule('steps'))
    const done = await client.call(
      'PATCH',
      `${RULES}/steps`,
      [
        { op: 'test', path: '/spec/port', value: 80 },
        { op: 'replace', path: '/spec/port', value: 443 },
        { op: 'add', path: '/spec/backends/-', value: { address: 'fd00::2', port: 80 } },
        { op: 'add', path: '/metadata/labels', value: { 'a~b/c': 'd' } },
      ].slice(0, 3),
      JSON_PATCH,
    )
    expect(done.body).toMatchObject({
      spec: { port: 443, backends: [{ address: 'fd00::1' }, { address: 'fd00::2' }] },
    })
    const failed = await client.call(
      'PATCH',
      `${RULES}/steps`,
      [
        { op: 'remove', path: '/spec/backends/0' },
        { op: 'test', path: '/spec/port', value: 80 },
      ],
      JSON_PATCH,
    )
    expect(failed.code).toBe(422)
    expect((await client.get(`${RULES}/steps`)).body).toMatchObject({ spec: done.body['spec'] })
  })

  test('in a media type that a custom resource has no use for is 415', async () => {
    const type = 'application/strategic-merge-patch+json'
    expect((await client.call('PATCH', `${RULES}/steps`, {}, type)).code).toBe(415)
  })
})

describe('a deletion', () => {
  test('answers a Status, and 404 the second time', async () => {
    await client.call('POST', RULES, rule('gone'))
    const first = await client.call('DELETE', `${RULES}/gone?propagationPolicy=Background`)
    expect(first.body).toMatchObject({ kind: 'Status', status: 'Success' })
    const second = await client.call('DELETE', `${RULES}/gone`)
    expect([second.code, second.body['reason']]).toEqual([404, 'NotFound'])
  })

  test('waits for finalizers, and is over when the last one goes', async () => {
    const path = `${RULES}/held`
    await client.call(
      'POST',
      RULES,
      rule('held', {}, { finalizers: ['a.example/x', 'a.example/y'] }),
    )
    const begun = await client.call('DELETE', path)
    expect(metadataOf(begun.body)).toMatchObject({
      deletionTimestamp: expect.any(String),
      deletionGracePeriodSeconds: 0,
      generation: 2,
    })
    const again = await client.call('DELETE', path)
    expect(versionOf(again.body)).toBe(versionOf(begun.body))
    const added = await client.merge(path, {
      metadata: { finalizers: ['a.example/x', 'b.example/z'] },
    })
    expect(causesOf(added)).toEqual(['FieldValueForbidden metadata.finalizers'])
    await client.merge(path, { metadata: { finalizers: ['a.example/y'] } })
    expect((await client.get(path)).code).toBe(200)
    await client.merge(path, { metadata: { finalizers: null } })
    expect((await client.get(path)).code).toBe(404)
  })

  test('happens only where its preconditions hold', async () => {
    const made = await client.call('POST', RULES, rule('guarded'))
    const path = `${RULES}/guarded`
    const only = (preconditions: object) =>
      client.call('DELETE', path, { kind: 'DeleteOptions', apiVersion: 'v1', preconditions })
    expect((await only({ uid: 'another' })).code).toBe(409)
    expect((await only({ resourceVersion: '1' })).code).toBe(409)
    expect((await only({ uid: metadataOf(made.body)['uid'] })).code).toBe(200)
  })

  test('of a collection takes what is selected', async () => {
    await client.call('POST', RULES, rule('many-1', {}, { labels: { many: 'yes' } }))
    await client.call('POST', RULES, rule('many-2', {}, { labels: { many: 'yes' } }))
    await client.call('POST', RULES, rule('many-3', {}, { labels: { many: 'no' } }))
    const answer = await client.call('DELETE', `${RULES}?labelSelector=many%3Dyes`)
    expect(answer.body['items']).toHaveLength(2)
    expect((await client.get(`${RULES}?labelSelector=many`)).body['items']).toHaveLength(1)
  })
})

describe('a namespace', () => {
  test('that terminates takes no new objects, lets go of the old ones, and is gone after them', async () => {
    await client.call('POST', '/api/v1/namespaces', namespace('leaving'))
    const rules = RULES.replace('galactic-system', 'leaving')
    await client.call('POST', rules, rule('free'))
    await client.call('POST', rules, rule('held', {}, { finalizers: ['a.example/x'] }))
    const deleted = await client.call('DELETE', '/api/v1/namespaces/leaving')
    expect(deleted.body).toMatchObject({ status: { phase: 'Terminating' } })
    expect((await client.get(`${rules}/free`)).code).toBe(404)

    const refused = await client.apply(`${rules}/new`, rule('new'))
    expect([refused.code, causesOf(refused)]).toEqual([
      403,
      ['NamespaceTerminating metadata.namespace'],
    ])
    expect((await client.merge(`${rules}/held`, { spec: { port: 8 } })).code).toBe(200)
    await client.merge(`${rules}/held`, { metadata: { finalizers: [] } })
    expect((await client.get('/api/v1/namespaces/leaving')).code).toBe(404)
  })

  test('is labelled with its name', async () => {
    const answer = await client.get('/api/v1/namespaces/default')
    expect(answer.body).toMatchObject({
      metadata: { labels: { 'kubernetes.io/metadata.name': 'default' } },
      status: { phase: 'Active' },
    })
  })
})
