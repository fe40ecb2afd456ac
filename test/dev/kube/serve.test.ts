import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { metadataOf, objectAt } from '../../../dev/kube/json.ts'
import { startApiServer } from '../../../dev/kube/server.ts'
import {
  condition,
  namespaceObject,
  rule,
  rulesPath,
  take,
  versionOf,
} from '../../conformance/client.ts'
import { ownCrds, selectorCrd } from '../../support/crds.ts'
import { Embedded, RULES, startEmbedded } from './server.ts'

/** What the embedded server does beyond a real one; all else is in test/conformance. */

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kube-'))
})
afterAll(() => rm(folder, { recursive: true }))

describe('a server', () => {
  let client: Embedded
  beforeAll(async () => {
    client = await startEmbedded()
  })
  afterAll(() => client.close())

  test('on a taken port says which error it is', async () => {
    const port = client.server.port
    await expect(startApiServer({ crds: [], port })).rejects.toMatchObject({ code: 'EADDRINUSE' })
  })

  test('tells every committed version in order', async () => {
    await client.apply(`${RULES}/h`, rule('h'))
    await client.merge(`${RULES}/h`, { spec: { port: 81 } })
    await client.call('DELETE', `${RULES}/h`)
    const history = client.server.storage
      .history('networkrules.network.datumapis.com')
      .filter((one) => metadataOf(one.object)['name'] === 'h')
    expect(history.map((one) => one.type)).toEqual(['ADDED', 'MODIFIED', 'DELETED'])
    expect(history.map((one) => objectAt(one.object, 'spec')?.['port'])).toEqual([80, 81, 81])
  })

  // In a real cluster that is the work of kube-controller-manager.
  test('empties a namespace that is deleted, and removes it after its last object', async () => {
    const rules = rulesPath('leaving')
    await client.call('POST', '/api/v1/namespaces', namespaceObject('leaving'))
    await client.call('POST', rules, rule('free'))
    await client.call('POST', rules, rule('held', {}, { finalizers: ['a.example/x'] }))
    await client.call('DELETE', '/api/v1/namespaces/leaving')
    expect((await client.get(`${rules}/free`)).code).toBe(404)
    expect((await client.get('/api/v1/namespaces/leaving')).code).toBe(200)
    await client.merge(`${rules}/held`, { metadata: { finalizers: [] } })
    expect((await client.get('/api/v1/namespaces/leaving')).code).toBe(404)
  })
})

describe('a server with a data file', () => {
  test('has everything after a restart, certificates too, and no watch from before', async () => {
    const dataFile = join(folder, 'deep', 'cluster.jsonl')
    const first = await startEmbedded({ dataFile })
    const made = await first.apply(`${RULES}/kept`, rule('kept'))
    await first.merge(`${RULES}/kept/status`, { status: { conditions: [condition('Accepted')] } })
    first.server.storage.setCrd(await selectorCrd())
    const before = await first.get(`${RULES}/kept`)
    await first.close()

    const second = new Embedded(await startApiServer({ crds: await ownCrds(), dataFile }))
    try {
      expect(second.server.token).toBe(first.server.token)
      expect(second.server.ca).toBe(first.server.ca)
      const after = await second.get(`${RULES}/kept`)
      expect(after.body).toEqual(before.body)
      const list = await second.get(RULES)
      expect(Number(versionOf(list.body))).toBeGreaterThan(Number(versionOf(before.body)))
      const events = second.watch(RULES, `resourceVersion=${versionOf(made.body)}`)
      expect(await take(events, 2)).toMatchObject([{ type: 'ERROR', object: { code: 410 } }])
    } finally {
      await second.close()
    }
  })

  test('writes soon after a change, whole', async () => {
    const dataFile = join(folder, 'soon.jsonl')
    const client = await startEmbedded({ dataFile })
    try {
      await client.apply(`${RULES}/soon`, rule('soon'))
      await expect.poll(() => readFile(dataFile, 'utf8'), { interval: 20 }).toContain('"soon"')
      const lines = (await readFile(dataFile, 'utf8')).trimEnd().split('\n')
      for (const line of lines) expect(() => JSON.parse(line)).not.toThrow()
    } finally {
      await client.close()
    }
  })

  test('answers late, or not at all, where it is told to', async () => {
    const held = Promise.withResolvers<undefined>()
    const client = await startEmbedded({
      before: ({ method, path }) =>
        method === 'DELETE'
          ? held.promise
          : path.endsWith('/broken')
            ? Promise.resolve('reset')
            : undefined,
    })
    try {
      await client.apply(`${RULES}/late`, rule('late'))
      const late = client.call('DELETE', `${RULES}/late`)
      expect((await client.get(`${RULES}/late`)).code).toBe(200)
      held.resolve(undefined)
      expect((await late).code).toBe(200)
      await expect(client.get(`${RULES}/broken`)).rejects.toThrow()
    } finally {
      await client.close()
    }
  })

  test('asks to come again while storage gets ready', async () => {
    const client = new Embedded(await startApiServer({ crds: [], initializingMs: 60_000 }))
    try {
      const answer = await client.get('/api/v1/namespaces')
      expect([answer.code, answer.headers['retry-after']]).toEqual([429, '1'])
      expect((await client.get('/api/v1/namespaces?limit=9')).code).toBe(200)
      expect((await client.get('/openapi/v3/api/v1')).code).toBe(404)
      expect((await client.get('/readyz')).code).toBe(500)
    } finally {
      await client.close()
    }
  })
})
