import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { listAt, metadataOf, objectAt } from '../../../dev/kube/json.ts'
import { startApiServer } from '../../../dev/kube/server.ts'
import {
  Client,
  causesOf,
  condition,
  NETWORK,
  ownCrds,
  RULES,
  rule,
  selectorCrd,
  startClient,
  take,
  versionOf,
} from './server.ts'

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const CRD = `${CRDS}/networkrules.network.datumapis.com`
const SCHEMA = 'com.datumapis.network.v1alpha1.NetworkRule'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kube-'))
})
afterAll(() => rm(folder, { recursive: true }))

describe('a server', () => {
  let client: Client
  beforeAll(async () => {
    client = await startClient()
  })
  afterAll(() => client.close())

  test('knows a caller by token or certificate, and nobody else', async () => {
    for (const headers of [{}, { authorization: 'Bearer wrong' }]) {
      const answer = await client.call('GET', RULES, undefined, undefined, headers)
      expect(answer.body).toMatchObject({ kind: 'Status', code: 401, reason: 'Unauthorized' })
    }
    const { url, ca, clientCertificate: cert, clientKey: key } = client.server
    const code = await new Promise((resolve, reject) => {
      request(`${url}${RULES}`, { ca, cert, key, agent: false }, (answer) => {
        answer.resume()
        resolve(answer.statusCode)
      })
        .on('error', reject)
        .end()
    })
    expect(code).toBe(200)
  })

  test('is ready, and says what it serves', async () => {
    expect((await client.get('/readyz')).text).toBe('ok')
    expect((await client.get('/livez')).text).toBe('ok')
    expect((await client.get('/version')).body).toMatchObject({ major: '1' })
    expect((await client.get('/api')).body).toMatchObject({ versions: ['v1'] })
    const groups = listAt((await client.get('/apis')).body, 'groups')
    expect(groups).toMatchObject([
      { name: 'apiextensions.k8s.io' },
      { name: 'network.datumapis.com' },
      { name: 'cloud.datumapis.com' },
    ])
    const resources = listAt((await client.get(NETWORK)).body, 'resources')
    expect(resources).toContainEqual(
      expect.objectContaining({ name: 'networkrules', namespaced: true, shortNames: ['netrule'] }),
    )
    expect(resources).toContainEqual(expect.objectContaining({ name: 'networkrules/status' }))
    expect((await client.get('/apis/none.example/v1')).code).toBe(404)
  })

  test('publishes the schema of a kind', async () => {
    const index = await client.get('/openapi/v3')
    expect(objectAt(index.body, 'paths')).toHaveProperty(['apis/network.datumapis.com/v1alpha1'])
    const document = await client.get('/openapi/v3/apis/network.datumapis.com/v1alpha1')
    const schema = objectAt(objectAt(objectAt(document.body, 'components'), 'schemas'), SCHEMA)
    expect(schema).toMatchObject({
      'x-kubernetes-group-version-kind': [
        { group: 'network.datumapis.com', version: 'v1alpha1', kind: 'NetworkRule' },
      ],
      properties: { spec: { properties: { backends: { maxItems: 64 } } } },
    })
  })

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

  test('refuses a CRD whose rules do not compile or cost too much', async () => {
    const crd = parse((await ownCrds()).find((text) => text.includes('NetworkRuleList')) ?? '')
    const attempt = async (change: (spec: Record<string, never>) => void) => {
      const changed = structuredClone(crd)
      change(changed.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties)
      return causesOf(await client.apply(CRD, changed, 'fieldManager=me&force=true'))
    }
    const path = 'spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[vipAddresses]'
    expect(
      await attempt((spec) => {
        Object.assign(spec['vipAddresses'] ?? {}, {
          'x-kubernetes-validations': [{ rule: 'self.all(v, isIPv6(v))' }],
        })
      }),
    ).toEqual([`FieldValueInvalid ${path}.x-kubernetes-validations[0].rule`])
    expect(
      await attempt((spec) => {
        delete spec['vipAddresses']?.['maxItems']
      }),
    ).toEqual([`FieldValueForbidden ${path}.x-kubernetes-validations[0].rule`])
  })
})

describe('a CRD replaced by the other dialect while running', () => {
  let client: Client
  beforeAll(async () => {
    client = await startClient()
  })
  afterAll(() => client.close())

  test('prunes old objects as they are read, and takes the new shape by the same manager', async () => {
    const path = `${RULES}/old`
    const made = await client.apply(path, rule('old', {}, { finalizers: ['a.example/x'] }))
    const events = client.watch(RULES, `resourceVersion=${versionOf(made.body)}`)
    const ended = take(events, 1)
    const swapped = await client.apply(CRD, await selectorCrd(), 'fieldManager=ops&force=true')
    expect(swapped.code).toBe(200)
    expect(await ended).toEqual([])

    const read = await client.get(path)
    expect(read.body['spec']).not.toHaveProperty('backends')
    const status = { conditions: [condition('Accepted')] }
    const told = await client.merge(`${path}/status`, { status })
    expect([told.code, metadataOf(told.body)['generation']]).toEqual([200, 1])
    expect((await client.merge(path, { metadata: { labels: { a: 'b' } } })).code).toBe(200)

    const old = await client.apply(path, rule('old'))
    expect([old.code, old.body['reason']]).toEqual([500, undefined])
    const { backends: _, vpcAttachmentRef: __, ...shared } = objectAt(rule('old'), 'spec') ?? {}
    const spec = { ...shared, backendSelector: { matchLabels: { a: 'b' } }, backendPort: 80 }
    const fresh = await client.apply(path, {
      ...rule('old', {}, { finalizers: ['a.example/x'] }),
      spec,
    })
    expect([fresh.code, fresh.body['spec']]).toEqual([200, spec])
    const document = await client.get('/openapi/v3/apis/network.datumapis.com/v1alpha1')
    expect(document.text).toContain('backendSelector')
    expect(document.text).not.toContain('"backends"')
  })

  test('shows in the list of CRDs', async () => {
    const live = await client.get(CRD)
    expect(live.body).toMatchObject({
      status: { conditions: [{ type: 'NamesAccepted' }, { type: 'Established', status: 'True' }] },
    })
    expect(listAt((await client.get(CRDS)).body, 'items')).toHaveLength(6)
    const back = (await ownCrds()).find((text) => text.includes('NetworkRuleList')) ?? ''
    const put = { ...live.body, spec: parse(back).spec }
    expect((await client.call('PUT', CRD, put)).code).toBe(200)
    expect((await client.get(`/openapi/v3${NETWORK}`)).text).toContain('"backends"')
  })
})

describe('a server with a data file', () => {
  test('has everything after a restart, certificates too, and no watch from before', async () => {
    const dataFile = join(folder, 'deep', 'cluster.jsonl')
    const first = await startClient({ dataFile })
    const made = await first.apply(`${RULES}/kept`, rule('kept'))
    await first.merge(`${RULES}/kept/status`, { status: { conditions: [condition('Accepted')] } })
    first.server.storage.setCrd(await selectorCrd())
    const before = await first.get(`${RULES}/kept`)
    await first.close()

    const second = new Client(await startApiServer({ crds: await ownCrds(), dataFile }))
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
    const client = await startClient({ dataFile })
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
    const client = await startClient({
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
    const client = new Client(await startApiServer({ crds: [], initializingMs: 60_000 }))
    try {
      const answer = await client.get('/api/v1/namespaces')
      expect([answer.code, answer.headers['retry-after']]).toEqual([429, '1'])
      expect((await client.get('/readyz')).code).toBe(200)
    } finally {
      await client.close()
    }
  })
})
