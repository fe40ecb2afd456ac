import { beforeAll, describe, expect, test } from 'vitest'
import { listAt, metadataOf, textAt } from '../../dev/kube/json.ts'
import {
  type Answered,
  NETWORK,
  nameOf,
  namespaceObject,
  rule,
  rulesPath,
  versionOf,
} from './client.ts'
import { onEachServer } from './servers.ts'

const names = (answer: Answered): string[] =>
  listAt(answer.body, 'items').map((item) => nameOf(Object(item)))
const next = (answer: Answered): string => textAt(metadataOf(answer.body), 'continue') ?? ''

onEachServer((tested) => {
  describe('a list', () => {
    const get = (query: string) => tested.client.get(`${tested.rules}?${query}`)

    beforeAll(async () => {
      const { client, rules } = tested
      for (const name of ['b', 'a', 'e', 'd', 'c']) {
        await client.apply(`${rules}/${name}`, rule(name, {}, { labels: { letter: name } }))
      }
    })

    test('comes in pages of one snapshot', async () => {
      const { client, rules } = tested
      const first = await get('limit=2')
      expect(first.body).toMatchObject({ kind: 'NetworkRuleList' })
      expect(names(first)).toEqual(['a', 'b'])
      expect(metadataOf(first.body)).toMatchObject({ remainingItemCount: 3 })
      await client.call('DELETE', `${rules}/c`)
      await client.apply(`${rules}/bb`, rule('bb'))
      const second = await get(`limit=2&continue=${next(first)}`)
      expect(names(second)).toEqual(['c', 'd'])
      expect(versionOf(second.body)).toBe(versionOf(first.body))
      const third = await get(`limit=2&continue=${next(second)}`)
      expect([names(third), next(third)]).toEqual([['e'], ''])
      expect(metadataOf(third.body)).toEqual({
        continue: '',
        resourceVersion: versionOf(first.body),
      })
      expect(names(await get(''))).toEqual(['a', 'b', 'bb', 'd', 'e'])
    })

    test('can be of an exact earlier version', async () => {
      const before = await get('')
      await tested.client.call('DELETE', `${tested.rules}/bb`)
      const query = `resourceVersion=${versionOf(before.body)}&resourceVersionMatch=Exact`
      const again = await get(query)
      expect([names(again), versionOf(again.body)]).toEqual([names(before), versionOf(before.body)])
    })

    test('of a version from the future is 504 with a hint to come again', async () => {
      const answer = await get('resourceVersion=999999999')
      expect([answer.code, answer.headers['retry-after']]).toEqual([504, '1'])
      expect(answer.body).toMatchObject({
        reason: 'Timeout',
        details: {
          retryAfterSeconds: 1,
          causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        },
      })
    })

    test('is narrowed by labels and by name', async () => {
      const selected = async (query: string) => names(await get(query))
      const label = (text: string) => selected(`labelSelector=${encodeURIComponent(text)}`)
      expect(await label('letter=a')).toEqual(['a'])
      expect(await label('letter==a')).toEqual(['a'])
      expect(await label('letter in (a, b),letter!=b')).toEqual(['a'])
      expect(await label('letter notin (a,b)')).toEqual(['d', 'e'])
      expect(await label('letter!=a,other!=x')).toEqual(['b', 'd', 'e'])
      expect(await label('letter,!other')).toEqual(['a', 'b', 'd', 'e'])
      expect(await label('letter>1')).toEqual([])
      expect(await selected('fieldSelector=metadata.name%3Dd')).toEqual(['d'])
      expect(await selected('fieldSelector=metadata.name!%3Dd')).toEqual(['a', 'b', 'e'])
    })

    test('by a selector that makes no sense is 400', async () => {
      for (const query of [
        'labelSelector=a%3D%3D%3Db',
        'labelSelector=a+b',
        'labelSelector=-a',
        'labelSelector=a+in+b',
        'labelSelector=a,',
        'labelSelector=a%3D-b',
        'labelSelector=a%2Fb%2Fc',
        'labelSelector=a%3Ex',
        'fieldSelector=spec.port%3D1',
      ]) {
        const answer = await get(query)
        expect([query, answer.code, answer.body['reason']]).toEqual([query, 400, 'BadRequest'])
      }
    })

    test('with parameters that make no sense is refused', async () => {
      const outcome = async (query: string) => {
        const { code, body } = await get(query)
        return `${code} ${body['reason']}`
      }
      expect(await outcome('limit=x')).toBe('400 BadRequest')
      expect(await outcome('continue=x')).toBe('400 BadRequest')
      expect(await outcome('resourceVersion=x')).toBe('400 BadRequest')
      expect(await outcome('timeoutSeconds=x')).toBe('400 BadRequest')
      expect(await outcome('sendInitialEvents=true')).toBe('422 Invalid')
      expect(await outcome('resourceVersionMatch=Exact')).toBe('422 Invalid')
      expect(await outcome('resourceVersion=1&resourceVersionMatch=Near')).toBe('422 Invalid')
      expect(await outcome('resourceVersion=0&resourceVersionMatch=Exact')).toBe('422 Invalid')
    })

    test('of any age comes whole, whatever the limit', async () => {
      const answer = await get('resourceVersion=0&limit=1')
      expect([names(answer).length > 1, next(answer)]).toEqual([true, ''])
      expect(names(await get('limit=-1')).length).toBeGreaterThan(1)
    })

    test('pages what is selected, without saying how much is left', async () => {
      const first = await get('labelSelector=letter&limit=3')
      expect(names(first)).toEqual(['a', 'b', 'd'])
      expect(metadataOf(first.body)).not.toHaveProperty('remainingItemCount')
      const rest = await get(`labelSelector=letter&limit=3&continue=${next(first)}`)
      expect([names(rest), next(rest)]).toEqual([['e'], ''])
    })

    test('spans namespaces where the path names none', async () => {
      const other = `${tested.namespace}-other`
      await tested.client.call('POST', '/api/v1/namespaces', namespaceObject(other))
      const labels = { everywhere: tested.namespace }
      await tested.client.apply(`${rulesPath(other)}/z`, rule('z', {}, { labels }))
      await tested.client.merge(`${tested.rules}/e`, { metadata: { labels } })
      const all = await tested.client.get(
        `${NETWORK}/networkrules?labelSelector=everywhere%3D${tested.namespace}`,
      )
      // By namespace and name: `c-1-other/z` comes before `c-1/e`.
      expect(names(all)).toEqual(['z', 'e'])
      expect(names(await get(''))).not.toContain('z')
    })

    test('of nothing is empty, in a namespace that is not there too', async () => {
      const answer = await tested.client.get(rulesPath('nowhere'))
      expect([answer.code, answer.body['items']]).toEqual([200, []])
    })
  })
})
