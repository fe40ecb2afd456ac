import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../dev/kube/json.ts'
import { isObject, listAt, metadataOf, objectAt } from '../../dev/kube/json.ts'
import type { Answered } from './client.ts'
import { CLOUD, causesOf, condition, rule, versionOf } from './client.ts'
import { onEachServer } from './servers.ts'

const { apiVersion, kind } = rule('x')
/** An applied rule that speaks of these fields alone. */
const part = (name: string, spec: JsonObject, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: apiVersion ?? '',
  kind: kind ?? '',
  metadata: { name, ...metadata },
  spec,
})

const managers = (answer: Answered): JsonObject[] =>
  listAt(metadataOf(answer.body), 'managedFields').filter(isObject)
const fieldsOf = (answer: Answered, manager: string): JsonObject =>
  objectAt(
    managers(answer).find((one) => one['manager'] === manager),
    'fieldsV1',
  ) ?? {}
const spec = (answer: Answered): JsonObject => objectAt(answer.body, 'spec') ?? {}

onEachServer((tested) => {
  describe('server-side apply', () => {
    test('creates, then changes nothing when nothing changed', async () => {
      const first = await tested.client.apply(
        `${tested.rules}/new`,
        rule('new', {}, { labels: { a: 'b' } }),
      )
      expect(first.code).toBe(201)
      expect(managers(first)).toMatchObject([
        { manager: 'me', operation: 'Apply', fieldsType: 'FieldsV1' },
      ])
      expect(fieldsOf(first, 'me')).toEqual({
        'f:metadata': { 'f:labels': { 'f:a': {} } },
        'f:spec': {
          'f:backends': {},
          'f:port': {},
          'f:protocol': {},
          'f:vipAddresses': { 'v:"2001:db8::1"': {} },
          'f:vpcAttachmentRef': {},
          'f:vpcRef': {},
        },
      })
      const again = await tested.client.apply(
        `${tested.rules}/new`,
        rule('new', {}, { labels: { a: 'b' } }),
      )
      expect([again.code, versionOf(again.body)]).toEqual([200, versionOf(first.body)])
    })

    test('reads YAML', async () => {
      const yaml = [
        'apiVersion: network.datumapis.com/v1alpha1',
        'kind: NetworkRule',
        'metadata: {name: yaml}',
        'spec: {vpcRef: "60", vpcAttachmentRef: "61", vipAddresses: ["2001:db8::9"],',
        '  protocol: tcp, port: 80, backends: [{address: "fd00::1", port: 80}]}',
      ].join('\n')
      expect((await tested.client.apply(`${tested.rules}/yaml`, yaml)).code).toBe(201)
    })

    test('has to name what it creates', async () => {
      for (const metadata of [undefined, {}, { labels: { a: 'b' } }]) {
        const body = { ...rule('nameless'), ...(metadata === undefined ? {} : { metadata }) }
        if (metadata === undefined) delete body['metadata']
        const answer = await tested.client.apply(`${tested.rules}/nameless`, body)
        expect([metadata, answer.code, answer.body['reason']]).toEqual([
          metadata,
          400,
          'BadRequest',
        ])
      }
    })

    test('to another path or of another kind is 400', async () => {
      for (const body of [
        rule('other'),
        rule('x', {}, { namespace: 'other' }),
        { ...rule('x'), kind: 'VPC' },
        { ...rule('x'), apiVersion: 'network.datumapis.com/v9' },
        '{',
        '[]',
      ]) {
        const answer = await tested.client.apply(`${tested.rules}/x`, body)
        expect([body, answer.code, answer.body['reason']]).toEqual([body, 400, 'BadRequest'])
      }
    })

    test("of another manager's field is a conflict that names it, unless forced", async () => {
      await tested.client.apply(`${tested.rules}/fought`, rule('fought'))
      const refused = await tested.client.apply(
        `${tested.rules}/fought`,
        part('fought', { port: 81 }),
        'fieldManager=you',
      )
      expect([refused.code, refused.body['reason']]).toEqual([409, 'Conflict'])
      expect(causesOf(refused)).toEqual(['FieldManagerConflict .spec.port'])

      const forced = await tested.client.apply(
        `${tested.rules}/fought`,
        part('fought', { port: 81 }),
        'fieldManager=you&force=true',
      )
      expect([forced.code, spec(forced)['port']]).toEqual([200, 81])
      expect(fieldsOf(forced, 'you')).toEqual({ 'f:spec': { 'f:port': {} } })
      expect(fieldsOf(forced, 'me')['f:spec']).not.toHaveProperty('f:port')
    })

    test('of equal values is shared, and a shared field stays when one lets go of it', async () => {
      const path = `${tested.rules}/shared`
      await tested.client.apply(path, rule('shared', {}, { labels: { ours: '1' } }))
      const labels = { ours: '1', yours: '2' }
      const both = await tested.client.apply(
        path,
        part('shared', {}, { labels }),
        'fieldManager=you',
      )
      expect(both.code).toBe(200)
      const mine = await tested.client.apply(path, rule('shared'))
      expect(metadataOf(mine.body)['labels']).toEqual(labels)
      const none = await tested.client.apply(
        path,
        { apiVersion, kind, metadata: { name: 'shared' } },
        'fieldManager=you',
      )
      expect(metadataOf(none.body)).not.toHaveProperty('labels')
      expect(managers(none).map((one) => one['manager'])).toEqual(['me'])
    })

    test('of fewer fields removes those that nobody else owns', async () => {
      const path = `${tested.rules}/fewer`
      await tested.client.apply(path, rule('fewer', {}, { labels: { a: '1', b: '2' } }))
      const less = await tested.client.apply(path, rule('fewer', {}, { labels: { b: '2' } }))
      expect(metadataOf(less.body)['labels']).toEqual({ b: '2' })
      const withdrawn = await tested.client.apply(path, part('fewer', { port: 80 }))
      expect(withdrawn.code).toBe(422)
    })

    test("leaves another manager's items of a set when ours go", async () => {
      const path = `${tested.rules}/sets`
      await tested.client.apply(
        path,
        rule('sets', { vipAddresses: ['2001:db8::1', '2001:db8::2'] }),
      )
      const theirs = part('sets', { vipAddresses: ['2001:db8::2', '2001:db8::3'] })
      const both = await tested.client.apply(path, theirs, 'fieldManager=you')
      expect(spec(both)['vipAddresses']).toEqual(['2001:db8::1', '2001:db8::2', '2001:db8::3'])
      const left = await tested.client.apply(path, rule('sets', { vipAddresses: ['2001:db8::4'] }))
      expect(spec(left)['vipAddresses']).toHaveLength(3)
      expect(spec(left)['vipAddresses']).toEqual(
        expect.arrayContaining(['2001:db8::2', '2001:db8::3', '2001:db8::4']),
      )
    })

    test('of an atomic list with other items is a conflict', async () => {
      const path = `${tested.rules}/atomic`
      await tested.client.apply(path, rule('atomic'))
      const backends = [{ address: 'fd00::2', port: 80 }]
      const refused = await tested.client.apply(
        path,
        part('atomic', { backends }),
        'fieldManager=you',
      )
      expect(causesOf(refused)).toEqual(['FieldManagerConflict .spec.backends'])
    })

    test('of conditions by two managers keeps one of each type', async () => {
      const path = `${tested.rules}/conditions`
      await tested.client.apply(path, rule('conditions'))
      const status = (...types: string[]) => ({
        apiVersion,
        kind,
        status: { conditions: types.map((type) => condition(type)) },
      })
      await tested.client.apply(`${path}/status`, status('Accepted'), 'fieldManager=a')
      const both = await tested.client.apply(
        `${path}/status`,
        status('n1/Programmed'),
        'fieldManager=b',
      )
      expect(objectAt(both.body, 'status')?.['conditions']).toMatchObject([
        { type: 'Accepted' },
        { type: 'n1/Programmed' },
      ])
      expect(managers(both)).toHaveLength(3)
      expect(managers(both).filter((one) => one['subresource'] === 'status')).toHaveLength(2)
      const one = await tested.client.apply(`${path}/status`, status(), 'fieldManager=a')
      expect(objectAt(one.body, 'status')?.['conditions']).toMatchObject([
        { type: 'n1/Programmed' },
      ])
      expect(metadataOf(one.body)['generation']).toBe(1)
    })

    test('takes fields over from an update, and loses them to one', async () => {
      const path = `${tested.rules}/updated`
      await tested.client.apply(path, rule('updated'))
      const updated = await tested.client.call(
        'PATCH',
        `${path}?fieldManager=hand`,
        { spec: { port: 8080 } },
        'application/merge-patch+json',
      )
      expect(fieldsOf(updated, 'hand')).toEqual({ 'f:spec': { 'f:port': {} } })
      const refused = await tested.client.apply(path, rule('updated'))
      expect(causesOf(refused)).toEqual(['FieldManagerConflict .spec.port'])
      const forced = await tested.client.apply(path, rule('updated'), 'fieldManager=me&force=true')
      expect(spec(forced)['port']).toBe(80)
      expect(managers(forced)).toHaveLength(1)
    })

    test('of what the schema lacks, or twice the same item of a set, is 500 without a reason', async () => {
      for (const bad of [
        { colour: 'red' },
        { vipAddresses: ['2001:db8::1', '2001:db8::1'] },
        { port: 'eighty' },
      ]) {
        const answer = await tested.client.apply(`${tested.rules}/typed`, rule('typed', bad))
        expect(answer.code).toBe(500)
        expect(answer.body).not.toHaveProperty('reason')
        expect(answer.body['message']).toContain('failed to create typed patch object')
      }
      const answer = await tested.client.apply(
        `${tested.rules}/typed`,
        rule('typed', { colour: 'red' }),
      )
      expect(answer.body['message']).toContain('.spec.colour: field not declared in schema')
    })

    test('names its preconditions as the real thing does', async () => {
      const path = `${tested.rules}/preconditions`
      const absent = await tested.client.apply(path, rule('preconditions', {}, { uid: 'x' }))
      expect(absent.code).toBe(409)
      const created = await tested.client.apply(
        path,
        rule('preconditions', {}, { resourceVersion: '7' }),
      )
      expect(created.code).toBe(201)
      const stale = await tested.client.apply(
        path,
        rule('preconditions', {}, { resourceVersion: '7' }),
      )
      expect(stale.code).toBe(409)
      const other = await tested.client.apply(path, rule('preconditions', {}, { uid: 'x' }))
      expect(other.code).toBe(422)
      const sent = await tested.client.apply(
        path,
        rule('preconditions', {}, { managedFields: [{}] }),
      )
      expect(sent.code).toBe(400)
      const nobody = await tested.client.apply(path, rule('preconditions'), '')
      expect(nobody.code).toBe(422)
      const unserved = await tested.client.apply(
        `${tested.rules.replace('rules', 'ruler')}/x`,
        rule('x'),
      )
      expect([unserved.code, unserved.text]).toEqual([404, '404 page not found\n'])
    })

    test('of labels only never makes an attachment', async () => {
      const path = `${CLOUD}/namespaces/${tested.namespace}/vpcattachments/gone`
      const kinds = { apiVersion: 'cloud.datumapis.com/v1alpha1', kind: 'VPCAttachment' }
      const metadata = { name: 'gone', labels: { a: 'b' } }
      const bare = await tested.client.apply(path, { ...kinds, metadata })
      expect([bare.code, causesOf(bare)]).toEqual([
        422,
        ['FieldValueRequired spec', 'FieldValueInvalid <nil>'],
      ])
      const guarded = await tested.client.apply(path, {
        ...kinds,
        metadata: { ...metadata, uid: 'x' },
      })
      expect(guarded.code).toBe(409)
      const merged = await tested.client.merge(path, { metadata: { labels: { a: 'b' } } })
      expect([merged.code, merged.body['reason']]).toEqual([404, 'NotFound'])
    })

    test('fills in defaults that no manager owns', async () => {
      const path = `${CLOUD}/namespaces/${tested.namespace}/vpcattachments/defaults`
      const made = await tested.client.apply(path, {
        apiVersion: 'cloud.datumapis.com/v1alpha1',
        kind: 'VPCAttachment',
        metadata: { name: 'defaults' },
        spec: { vpc: { name: 'v1' }, interface: {} },
      })
      expect(made.body).toMatchObject({ spec: { interface: { name: 'eth0', mode: 'Netns' } } })
      expect(fieldsOf(made, 'me')).toEqual({
        'f:spec': { 'f:interface': {}, 'f:vpc': { 'f:name': {} } },
      })
    })
  })
})
