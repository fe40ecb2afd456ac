import { beforeAll, describe, expect, test } from 'vitest'
import { listAt, metadataOf, textAt } from '../../dev/kube/json.ts'
import { type Answered, NETWORK, nameOf, rule, take, versionOf } from './client.ts'
import { onEachOwnServer } from './servers.ts'

const names = (answer: Answered): string[] =>
  listAt(answer.body, 'items').map((item) => nameOf(Object(item)))
const next = (answer: Answered): string => textAt(metadataOf(answer.body), 'continue') ?? ''

onEachOwnServer((tested) => {
  describe('what a server has forgotten', () => {
    let before: Answered
    let page: Answered
    beforeAll(async () => {
      const { client, rules, server } = tested
      for (const name of ['a', 'b', 'c', 'd']) await client.apply(`${rules}/${name}`, rule(name))
      before = await client.get(rules)
      page = await client.get(`${rules}?limit=2`)
      await client.merge(`${rules}/a`, { spec: { port: 81 } })
      await client.call('DELETE', `${rules}/c`)
      await server.forget()
    })

    test('as a watch is one ERROR event in a 200, then the end', async () => {
      const { client, rules } = tested
      const query = `resourceVersion=${versionOf(before.body)}&allowWatchBookmarks=true`
      expect(await take(client.watch(rules, query), 3)).toEqual([
        {
          type: 'ERROR',
          object: {
            kind: 'Status',
            apiVersion: 'v1',
            metadata: {},
            status: 'Failure',
            message: expect.stringMatching(/^too old resource version: /),
            reason: 'Expired',
            code: 410,
          },
        },
      ])
    })

    test('as a list of an exact version is 410', async () => {
      const { client, rules } = tested
      const query = `resourceVersion=${versionOf(before.body)}&resourceVersionMatch=Exact`
      const answer = await client.get(`${rules}?${query}`)
      expect(answer.code).toBe(410)
      expect(answer.body).toMatchObject({ kind: 'Status', code: 410, reason: 'Expired' })
      expect(next(answer)).toBe('')
    })

    test('as the rest of a list is 410 with a token to go on inconsistently', async () => {
      const { client, rules } = tested
      const gone = await client.get(`${rules}?limit=1&continue=${next(page)}`)
      expect([gone.code, gone.body['reason']]).toEqual([410, 'Expired'])
      const rest = await client.get(`${rules}?continue=${next(gone)}`)
      expect([rest.code, names(rest), next(rest)]).toEqual([200, ['d'], ''])
      expect(Number(versionOf(rest.body))).toBeGreaterThan(Number(versionOf(before.body)))
    })

    test('is no hindrance to a list or watch of now', async () => {
      const { client, rules } = tested
      const now = await client.get(rules)
      expect(names(now)).toEqual(['a', 'b', 'd'])
      const events = client.watch(rules, `resourceVersion=${versionOf(now.body)}`)
      const seen = take(events, 1)
      await client.apply(`${rules}/e`, rule('e'))
      expect(await seen).toMatchObject([{ type: 'ADDED', object: { metadata: { name: 'e' } } }])
      await events.return()
    })
  })

  describe('a restart', () => {
    test('makes watches and whole lists wait, for whom 429 names the seconds', async () => {
      const { client, rules, server } = tested
      await server.restart(undefined, { cold: true })
      const turnedAway = new Set<string>()
      for (const query of ['resourceVersion=0', 'watch=true&timeoutSeconds=1']) {
        for (;;) {
          const answer = await client.get(`${rules}?${query}`)
          if (answer.code === 200) break
          turnedAway.add(`${answer.headers['retry-after']} ${answer.text.trim()}`)
        }
      }
      // That isn't said of the schemas: until they are published they look like none.
      for (;;) {
        const schemas = await client.get(`/openapi/v3${NETWORK}`)
        if (schemas.code === 200) break
        expect([schemas.code, schemas.text]).toEqual([404, ''])
      }
      for (const answer of turnedAway) {
        expect(answer).toBe(
          '1 {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"storage is (re)initializing","reason":"TooManyRequests","details":{"retryAfterSeconds":1},"code":429}',
        )
      }
    })

    test('keeps all objects and lets versions go on from where they were', async () => {
      const { client, rules, server } = tested
      const made = await client.apply(`${rules}/kept`, rule('kept'))
      const events = client.watch(rules, `resourceVersion=${versionOf(made.body)}`)
      const ended = take(events, 1).catch((error: unknown) => error)
      await server.restart(async () => {
        await expect(client.get(rules)).rejects.toThrow()
      })
      await ended
      const kept = await client.get(`${rules}/kept`)
      expect(kept.body).toEqual(made.body)
      const again = await client.merge(`${rules}/kept`, { spec: { port: 90 } })
      expect(Number(versionOf(again.body))).toBeGreaterThan(Number(versionOf(made.body)))
      expect(metadataOf(again.body)).toMatchObject({ uid: metadataOf(made.body)['uid'] })
      const old = client.watch(rules, `resourceVersion=${Number(versionOf(made.body)) - 1}`)
      expect(await take(old, 2)).toMatchObject([{ type: 'ERROR', object: { code: 410 } }])
    })
  })
})
