import { describe, expect, test } from 'vitest'
import { metadataOf, textAt } from '../../dev/kube/json.ts'
import {
  causesOf,
  condition,
  JSON_PATCH,
  namespaceObject,
  rule,
  rulesPath,
  versionOf,
} from './client.ts'
import { onEachServer } from './servers.ts'

onEachServer((tested) => {
  describe('a new object', () => {
    test('gets uid, generation, a creation time to the second and a rising version', async () => {
      const first = await tested.client.call('POST', tested.rules, rule('made-1'))
      const second = await tested.client.call('POST', tested.rules, rule('made-2'))
      expect([first.code, second.code]).toEqual([201, 201])
      expect(metadataOf(first.body)).toMatchObject({
        generation: 1,
        namespace: tested.namespace,
      })
      expect(textAt(metadataOf(first.body), 'creationTimestamp')).toMatch(/:\d\dZ$/)
      expect(textAt(metadataOf(first.body), 'uid')).toMatch(/^[0-9a-f-]{14}4[0-9a-f-]{21}$/)
      expect(Number(versionOf(second.body))).toBeGreaterThan(Number(versionOf(first.body)))
    })

    test('of a taken name is 409 AlreadyExists', async () => {
      await tested.client.call('POST', tested.rules, rule('taken'))
      const again = await tested.client.call('POST', tested.rules, rule('taken'))
      expect([again.code, again.body['reason']]).toEqual([409, 'AlreadyExists'])
    })

    test('keeps unknown fields out and says so, unless it is to be strict', async () => {
      const loose = await tested.client.call('POST', tested.rules, rule('loose', { colour: 'red' }))
      expect(loose.code).toBe(201)
      expect(loose.headers['warning']).toBe('299 - "unknown field \\"spec.colour\\""')
      expect(loose.body['spec']).not.toHaveProperty('colour')
      const strict = await tested.client.call(
        'POST',
        `${tested.rules}?fieldValidation=Strict`,
        rule('strict', { colour: 'red' }),
      )
      expect([strict.code, strict.body['reason']]).toEqual([400, 'BadRequest'])
    })

    test('has no status of its own making', async () => {
      const made = await tested.client.call('POST', tested.rules, {
        ...rule('statusless'),
        status: { observedGeneration: 9 },
      })
      expect(made.body).not.toHaveProperty('status')
    })

    test('can be tried without being made', async () => {
      const tried = await tested.client.call('POST', `${tested.rules}?dryRun=All`, rule('dry'))
      expect(tried.code).toBe(201)
      expect((await tested.client.get(`${tested.rules}/dry`)).code).toBe(404)
    })

    test('is refused whole with every cause named', async () => {
      const bad = rule('bad', { port: 0, protocol: 'icmp', vpcRef: '' })
      const answer = await tested.client.call('POST', tested.rules, bad)
      expect([answer.code, answer.body['reason']]).toEqual([422, 'Invalid'])
      expect(causesOf(answer).sort()).toEqual([
        'FieldValueInvalid <nil>',
        'FieldValueInvalid spec.port',
        'FieldValueInvalid spec.vpcRef',
        'FieldValueNotSupported spec.protocol',
      ])
    })

    test('in an absent namespace is 404 for the namespace', async () => {
      const path = rulesPath('nowhere')
      const answer = await tested.client.call('POST', path, rule('lost'))
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
        const answer = await tested.client.call('POST', tested.rules, rule('ok', {}, metadata))
        expect([answer.code, JSON.stringify(metadata).slice(0, 80)]).toEqual([
          422,
          expect.anything(),
        ])
      }
    })

    test('that is too large is 500 above what can be stored and 413 above what is read', async () => {
      const sized = (size: number) =>
        tested.client.call('POST', tested.rules, rule('large', { vpcRef: 'x'.repeat(size) }))
      expect((await sized(1_600_000)).code).toBe(500)
      expect((await sized(3_200_000)).code).toBe(413)
      expect((await sized(1_400_000)).code).toBe(201)
    })
  })

  describe('an update', () => {
    test('needs the current version', async () => {
      const made = await tested.client.call('POST', tested.rules, rule('put'))
      const path = `${tested.rules}/put`
      const without = await tested.client.call('PUT', path, rule('put', { port: 81 }))
      expect(without.code).toBe(422)
      const resourceVersion = versionOf(made.body)
      const first = await tested.client.call(
        'PUT',
        path,
        rule('put', { port: 81 }, { resourceVersion }),
      )
      expect([first.code, metadataOf(first.body)['generation']]).toEqual([200, 2])
      const stale = await tested.client.call(
        'PUT',
        path,
        rule('put', { port: 82 }, { resourceVersion }),
      )
      expect([stale.code, stale.body['reason']]).toEqual([409, 'Conflict'])
    })

    test('of another uid is a conflict, of an absent object not found', async () => {
      const made = await tested.client.call('POST', tested.rules, rule('uid'))
      const metadata = { resourceVersion: versionOf(made.body), uid: 'another' }
      expect(
        (await tested.client.call('PUT', `${tested.rules}/uid`, rule('uid', {}, metadata))).code,
      ).toBe(409)
      expect(
        (await tested.client.call('PUT', `${tested.rules}/none`, rule('none', {}, metadata))).code,
      ).toBe(404)
    })

    test('that changes nothing leaves the version as it was', async () => {
      const made = await tested.client.call('POST', tested.rules, rule('same'))
      const again = await tested.client.call('PUT', `${tested.rules}/same`, made.body)
      expect(versionOf(again.body)).toBe(versionOf(made.body))
    })

    test('of the spec leaves the status alone, and the other way round', async () => {
      await tested.client.call('POST', tested.rules, rule('halves'))
      const status = { conditions: [condition('Accepted')] }
      const told = await tested.client.merge(`${tested.rules}/halves/status`, {
        spec: { port: 99 },
        status,
      })
      expect(told.body).toMatchObject({ spec: { port: 80 }, status, metadata: { generation: 1 } })
      const moved = await tested.client.merge(`${tested.rules}/halves`, {
        spec: { port: 81 },
        status: null,
      })
      expect(moved.body).toMatchObject({ spec: { port: 81 }, status, metadata: { generation: 2 } })
    })

    test('of labels alone moves no generation', async () => {
      await tested.client.call('POST', tested.rules, rule('labelled'))
      const answer = await tested.client.merge(`${tested.rules}/labelled`, {
        metadata: { labels: { a: 'b' } },
      })
      expect(metadataOf(answer.body)).toMatchObject({ generation: 1, labels: { a: 'b' } })
    })

    test('by merge patch of an absent object is not found', async () => {
      expect(
        (await tested.client.merge(`${tested.rules}/absent`, { spec: { port: 1 } })).code,
      ).toBe(404)
    })

    test('by JSON patch does all operations or none', async () => {
      await tested.client.call('POST', tested.rules, rule('steps'))
      const done = await tested.client.call(
        'PATCH',
        `${tested.rules}/steps`,
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
      const failed = await tested.client.call(
        'PATCH',
        `${tested.rules}/steps`,
        [
          { op: 'remove', path: '/spec/backends/0' },
          { op: 'test', path: '/spec/port', value: 80 },
        ],
        JSON_PATCH,
      )
      expect(failed.code).toBe(422)
      expect((await tested.client.get(`${tested.rules}/steps`)).body).toMatchObject({
        spec: done.body['spec'],
      })
    })

    test('in a media type that a custom resource has no use for is 415', async () => {
      const type = 'application/strategic-merge-patch+json'
      expect((await tested.client.call('PATCH', `${tested.rules}/steps`, {}, type)).code).toBe(415)
    })
  })

  describe('a deletion', () => {
    test('answers a Status, and 404 the second time', async () => {
      await tested.client.call('POST', tested.rules, rule('gone'))
      const first = await tested.client.call(
        'DELETE',
        `${tested.rules}/gone?propagationPolicy=Background`,
      )
      expect(first.body).toMatchObject({ kind: 'Status', status: 'Success' })
      const second = await tested.client.call('DELETE', `${tested.rules}/gone`)
      expect([second.code, second.body['reason']]).toEqual([404, 'NotFound'])
    })

    test('waits for finalizers, and is over when the last one goes', async () => {
      const path = `${tested.rules}/held`
      await tested.client.call(
        'POST',
        tested.rules,
        rule('held', {}, { finalizers: ['a.example/x', 'a.example/y'] }),
      )
      const begun = await tested.client.call('DELETE', path)
      expect(metadataOf(begun.body)).toMatchObject({
        deletionTimestamp: expect.any(String),
        deletionGracePeriodSeconds: 0,
        generation: 2,
      })
      const again = await tested.client.call('DELETE', path)
      expect(versionOf(again.body)).toBe(versionOf(begun.body))
      const added = await tested.client.merge(path, {
        metadata: { finalizers: ['a.example/x', 'b.example/z'] },
      })
      expect(causesOf(added)).toEqual(['FieldValueForbidden metadata.finalizers'])
      await tested.client.merge(path, { metadata: { finalizers: ['a.example/y'] } })
      expect((await tested.client.get(path)).code).toBe(200)
      await tested.client.merge(path, { metadata: { finalizers: null } })
      expect((await tested.client.get(path)).code).toBe(404)
    })

    test('happens only where its preconditions hold', async () => {
      const made = await tested.client.call('POST', tested.rules, rule('guarded'))
      const path = `${tested.rules}/guarded`
      const only = (preconditions: object) =>
        tested.client.call('DELETE', path, {
          kind: 'DeleteOptions',
          apiVersion: 'v1',
          preconditions,
        })
      expect((await only({ uid: 'another' })).code).toBe(409)
      expect((await only({ resourceVersion: '1' })).code).toBe(409)
      expect((await only({ uid: metadataOf(made.body)['uid'] })).code).toBe(200)
    })

    test('of a collection takes what is selected', async () => {
      await tested.client.call(
        'POST',
        tested.rules,
        rule('many-1', {}, { labels: { many: 'yes' } }),
      )
      await tested.client.call(
        'POST',
        tested.rules,
        rule('many-2', {}, { labels: { many: 'yes' } }),
      )
      await tested.client.call('POST', tested.rules, rule('many-3', {}, { labels: { many: 'no' } }))
      const answer = await tested.client.call('DELETE', `${tested.rules}?labelSelector=many%3Dyes`)
      expect(answer.body['items']).toHaveLength(2)
      expect(
        (await tested.client.get(`${tested.rules}?labelSelector=many`)).body['items'],
      ).toHaveLength(1)
    })
  })

  describe('a namespace', () => {
    test('that terminates takes no new objects, and lets go of the old ones', async () => {
      const { client } = tested
      const name = `${tested.namespace}-leaving`
      const rules = rulesPath(name)
      await client.call('POST', '/api/v1/namespaces', namespaceObject(name))
      await client.call('POST', rules, rule('held', {}, { finalizers: ['a.example/x'] }))
      const deleted = await client.call('DELETE', `/api/v1/namespaces/${name}`)
      expect(deleted.body).toMatchObject({ status: { phase: 'Terminating' } })

      const refused = await client.apply(`${rules}/new`, rule('new'))
      expect([refused.code, causesOf(refused)]).toEqual([
        403,
        ['NamespaceTerminating metadata.namespace'],
      ])
      expect((await client.merge(`${rules}/held`, { spec: { port: 8 } })).code).toBe(200)
      expect((await client.call('DELETE', `${rules}/held`)).code).toBe(200)
      await client.merge(`${rules}/held`, { metadata: { finalizers: [] } })
      expect((await client.get(`${rules}/held`)).code).toBe(404)
    })

    test('is labelled with its name', async () => {
      const answer = await tested.client.get('/api/v1/namespaces/default')
      expect(answer.body).toMatchObject({
        metadata: { labels: { 'kubernetes.io/metadata.name': 'default' } },
        status: { phase: 'Active' },
      })
    })
  })
})
