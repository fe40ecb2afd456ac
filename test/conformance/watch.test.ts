import { setTimeout } from 'node:timers/promises'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { metadataOf, objectAt } from '../../dev/kube/json.ts'
import type { WatchLine } from './client.ts'
import { condition, nameOf, namespaceObject, rule, rulesPath, take, versionOf } from './client.ts'
import { onEachServer } from './servers.ts'

onEachServer((tested) => {
  describe('a watch', () => {
    let from: string
    beforeAll(async () => {
      const { client, rules } = tested
      for (const name of ['a', 'b', 'c']) await client.apply(`${rules}/${name}`, rule(name))
    })
    beforeEach(async () => {
      from = versionOf((await tested.client.get(tested.rules)).body)
    })

    test('tells every change after a version, in order', async () => {
      const { client, rules } = tested
      await client.apply(`${rules}/w`, rule('w'))
      const events = client.watch(rules, `resourceVersion=${from}`)
      expect(await take(events, 1)).toMatchObject([
        { type: 'ADDED', object: { kind: 'NetworkRule', metadata: { name: 'w' } } },
      ])
      await client.merge(`${rules}/w/status`, { status: { conditions: [condition('Accepted')] } })
      await client.call('DELETE', `${rules}/w`)
      const [modified, deleted] = await take(events, 2)
      expect([modified?.type, deleted?.type]).toEqual(['MODIFIED', 'DELETED'])
      expect(objectAt(modified?.object, 'status')).toBeDefined()
      const [m, d] = [modified, deleted].map((one) => Number(versionOf(one?.object ?? {})))
      expect(d).toBeGreaterThan(m ?? Number.NaN)
      await events.return()
    })

    test('resumes after any event of an earlier one without a gap', async () => {
      const { client, rules } = tested
      for (const port of [81, 82, 83]) await client.merge(`${rules}/c`, { spec: { port } })
      const first = client.watch(rules, `resourceVersion=${from}`)
      const [seen] = await take(first, 1)
      await first.return()
      const second = client.watch(rules, `resourceVersion=${versionOf(seen?.object ?? {})}`)
      const rest = await take(second, 2)
      expect(rest.map(({ object }) => objectAt(object, 'spec')?.['port'])).toEqual([82, 83])
      await second.return()
    })

    test('tells of one name with a new uid as deleted, then added', async () => {
      const { client, rules } = tested
      const old = await client.apply(`${rules}/again`, rule('again'))
      await client.call('DELETE', `${rules}/again`)
      const fresh = await client.apply(`${rules}/again`, rule('again'))
      const events = client.watch(rules, `resourceVersion=${versionOf(old.body)}`)
      const seen = await take(events, 2)
      expect(seen.map(({ type, object }) => `${type} ${metadataOf(object)['uid']}`)).toEqual([
        `DELETED ${metadataOf(old.body)['uid']}`,
        `ADDED ${metadataOf(fresh.body)['uid']}`,
      ])
      await events.return()
      await client.call('DELETE', `${rules}/again`)
    })

    test('without a version begins with all there is', async () => {
      for (const query of ['', 'resourceVersion=0']) {
        const events = tested.client.watch(tested.rules, query)
        const all = await take(events, 3)
        expect(all.map((one) => `${one.type} ${nameOf(one.object)}`).sort()).toEqual([
          'ADDED a',
          'ADDED b',
          'ADDED c',
        ])
        await events.return()
      }
    })

    test('as a streaming list marks the end of what there was', async () => {
      const query =
        'sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'
      const events = tested.client.watch(tested.rules, query)
      const all = await take(events, 4)
      expect(all.map((one) => one.type)).toEqual(['ADDED', 'ADDED', 'ADDED', 'BOOKMARK'])
      expect(all[3]?.object).toMatchObject({
        metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } },
      })
      await events.return()
      const refused = await tested.client.get(`${tested.rules}?watch=true&sendInitialEvents=true`)
      expect([refused.code, refused.body['reason']]).toEqual([422, 'Invalid'])
    })

    test('gets bookmarks while anything moves, of nothing but a version', async () => {
      const { client, rules } = tested
      const query = `resourceVersion=${from}&allowWatchBookmarks=true&timeoutSeconds=20`
      const events = client.watch(rules, query)
      const first = take(events, 1)
      // Elsewhere, so that the watch has nothing else to tell; of the same kind, and on and on, since a server
      // that sees none of a kind move between two looks of its own sends no bookmark.
      const name = `${tested.namespace}-moves`
      const made = await client.call('POST', '/api/v1/namespaces', namespaceObject(name))
      expect(made.code).toBe(201)
      const moving = `${rulesPath(name)}/moves`
      await client.apply(moving, rule('moves'))
      let seen: WatchLine[] | undefined
      for (let count = 0; seen === undefined; count += 1) {
        const moved = { metadata: { labels: { count: `${count}` } } }
        expect((await client.merge(moving, moved)).code).toBe(200)
        seen = await Promise.race([first, setTimeout(500, undefined)])
      }
      const [bookmark] = seen
      expect(bookmark).toEqual({
        type: 'BOOKMARK',
        object: {
          kind: 'NetworkRule',
          apiVersion: 'network.datumapis.com/v1alpha1',
          metadata: expect.objectContaining({ resourceVersion: expect.any(String) }),
        },
      })
      expect(Number(versionOf(bookmark?.object ?? {}))).toBeGreaterThanOrEqual(
        Number(versionOf(made.body)),
      )
      await events.return()
    })

    test('ends cleanly after timeoutSeconds, silent for a version from the future', async () => {
      const events = tested.client.watch(tested.rules, 'resourceVersion=999999999&timeoutSeconds=1')
      expect(await take(events, 1)).toEqual([])
    })

    test('by labels tells when an object comes in and goes out', async () => {
      const { client, rules } = tested
      const events = client.watch(rules, `resourceVersion=${from}&labelSelector=in%3Dyes`)
      const seen = take(events, 3)
      for (const [at, value] of ['yes', 'yes', 'no'].entries()) {
        await client.merge(`${rules}/b`, { metadata: { labels: { in: value, time: `${at}` } } })
      }
      const last = await client.get(`${rules}/b`)
      const lines = await seen
      expect(lines.map((one) => one.type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
      expect(objectAt(metadataOf(lines[2]?.object ?? {}), 'labels')).toMatchObject({ in: 'yes' })
      expect(versionOf(lines[2]?.object ?? {})).toBe(versionOf(last.body))
      await events.return()
    })

    test('of one name tells of that alone', async () => {
      const { client, rules } = tested
      const query = `resourceVersion=${from}&fieldSelector=metadata.name%3Da`
      const events = client.watch(rules, query)
      const seen = take(events, 1)
      await client.merge(`${rules}/b`, { spec: { port: 90 } })
      await client.merge(`${rules}/a`, { spec: { port: 91 } })
      expect((await seen).map(({ object }) => nameOf(object))).toEqual(['a'])
      await events.return()
    })

    test('with parameters that make no sense is refused', async () => {
      const outcome = async (query: string) => {
        const { code, body } = await tested.client.get(`${tested.rules}?watch=true&${query}`)
        return `${code} ${body['reason']}`
      }
      expect(await outcome('labelSelector=a+b')).toBe('400 BadRequest')
      expect(await outcome('timeoutSeconds=x')).toBe('400 BadRequest')
      expect(await outcome('resourceVersion=x')).toBe('500 undefined')
      expect(await outcome('continue=x')).toBe('422 Invalid')
      expect(await outcome(`resourceVersion=${from}&resourceVersionMatch=Exact`)).toBe(
        '422 Invalid',
      )
    })
  })
})
