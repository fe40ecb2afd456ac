import { request } from 'node:https'
import { describe, expect, test } from 'vitest'
import { isObject, type JsonObject, listAt, objectAt } from '../../dev/kube/json.ts'
import { CLOUD, NETWORK } from './client.ts'
import { onEachServer } from './servers.ts'

const SCHEMA = 'com.datumapis.network.v1alpha1.NetworkRule'

onEachServer((tested) => {
  describe('discovery', () => {
    test('says that the server is well, and which version it has', async () => {
      for (const path of ['/readyz', '/livez', '/healthz']) {
        const answer = await tested.client.get(path)
        expect([path, answer.code, answer.text]).toEqual([path, 200, 'ok'])
      }
      const version = await tested.client.get('/version')
      expect(version.body).toMatchObject({
        major: '1',
        minor: '36',
        gitVersion: expect.stringMatching(/^v1\.36\.\d+/),
      })
    })

    test('lists groups, versions and resources', async () => {
      const { client } = tested
      expect((await client.get('/api')).body).toMatchObject({ versions: ['v1'] })
      const groups = listAt((await client.get('/apis')).body, 'groups')
      const version = { groupVersion: 'network.datumapis.com/v1alpha1', version: 'v1alpha1' }
      const group = {
        name: 'network.datumapis.com',
        versions: [version],
        preferredVersion: version,
      }
      expect(groups).toContainEqual(group)
      expect((await client.get('/apis/network.datumapis.com')).body).toEqual({
        kind: 'APIGroup',
        apiVersion: 'v1',
        ...group,
      })
      const list = (await client.get(NETWORK)).body
      expect(list).toMatchObject({
        kind: 'APIResourceList',
        apiVersion: 'v1',
        groupVersion: 'network.datumapis.com/v1alpha1',
      })
      const resources = new Map(
        listAt(list, 'resources')
          .filter(isObject)
          .map(({ storageVersionHash: _, ...resource }) => [resource['name'], resource]),
      )
      expect(resources.get('networkrules')).toEqual({
        name: 'networkrules',
        singularName: 'networkrule',
        namespaced: true,
        kind: 'NetworkRule',
        shortNames: ['netrule'],
        verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
      })
      expect(resources.get('networkrules/status')).toEqual({
        name: 'networkrules/status',
        singularName: '',
        namespaced: true,
        kind: 'NetworkRule',
        verbs: ['get', 'patch', 'update'],
      })
    })

    test('knows nothing of what is not served', async () => {
      const { client } = tested
      for (const path of [
        '/apis/none.example/v1',
        `${NETWORK}/nothings`,
        '/apis/network.datumapis.com/v9/networkrules',
        `${NETWORK}/namespaces/${tested.namespace}/nothings/x`,
      ]) {
        const answer = await client.get(path)
        expect([path, answer.code, answer.text]).toEqual([path, 404, '404 page not found\n'])
        expect(answer.headers['content-type']).toMatch(/^text\/plain/)
      }
      // The core group alone says it by a Status.
      const core = await client.get('/api/v1/nothings')
      expect(core.body).toMatchObject({ code: 404, reason: 'NotFound', details: {} })
      const part = await client.get(`${tested.rules}/x/nothing`)
      expect(part.body).toMatchObject({ code: 404, details: { name: 'x', kind: 'networkrules' } })
      const document = await client.get('/openapi/v3/apis/none.example/v1')
      expect([document.code, document.text]).toEqual([404, ''])
    })

    test('publishes the schema of each kind', async () => {
      const index = await tested.client.get('/openapi/v3')
      const paths = objectAt(index.body, 'paths')
      expect(paths).toHaveProperty(['apis/network.datumapis.com/v1alpha1'])
      expect(paths).toHaveProperty(['apis/cloud.datumapis.com/v1alpha1'])
      expect(paths).toHaveProperty(['api/v1'])
      const link = objectAt(paths, 'apis/network.datumapis.com/v1alpha1')?.['serverRelativeURL']
      expect(link).toMatch(
        /^\/openapi\/v3\/apis\/network\.datumapis\.com\/v1alpha1\?hash=[0-9A-F]+$/,
      )
      const document = await tested.client.get(`${link}`)
      const schemas = schemasOf(document.body)
      const spec = objectAt(objectAt(objectAt(schemas, SCHEMA), 'properties'), 'spec')
      expect(schemas?.[SCHEMA]).toMatchObject({
        type: 'object',
        'x-kubernetes-group-version-kind': [
          { group: 'network.datumapis.com', version: 'v1alpha1', kind: 'NetworkRule' },
        ],
        properties: {
          apiVersion: { type: 'string' },
          kind: { type: 'string' },
          metadata: { allOf: [{ $ref: expect.stringMatching(/ObjectMeta$/) }] },
        },
      })
      expect(objectAt(spec, 'properties')).toMatchObject({
        backends: { type: 'array', maxItems: 64, minItems: 1 },
        vipAddresses: { type: 'array', maxItems: 8, 'x-kubernetes-list-type': 'set' },
        port: { type: 'integer', format: 'int32', minimum: 1, maximum: 65535 },
        protocol: { type: 'string', enum: ['tcp', 'udp'] },
      })
      expect(schemas).toHaveProperty([`${SCHEMA}List`])
      const other = await tested.client.get(`/openapi/v3${CLOUD}`)
      expect(schemasOf(other.body)).toHaveProperty(['com.datumapis.cloud.v1alpha1.VPCAttachment'])
    })
  })

  describe('a caller', () => {
    const as = (headers: Record<string, string>, path = tested.rules) =>
      tested.client.call('GET', path, undefined, undefined, headers)

    test('with a wrong token is 401', async () => {
      for (const authorization of ['Bearer wrong', 'Bearer wrong.wrong.wrong']) {
        const answer = await as({ authorization })
        expect(answer.body).toEqual({
          kind: 'Status',
          apiVersion: 'v1',
          metadata: {},
          status: 'Failure',
          message: 'Unauthorized',
          reason: 'Unauthorized',
          code: 401,
        })
      }
    })

    test('without credentials is anonymous and may ask only how the server is', async () => {
      const answer = await as({})
      expect(answer.body).toMatchObject({
        kind: 'Status',
        code: 403,
        reason: 'Forbidden',
        message: `networkrules.network.datumapis.com is forbidden: User "system:anonymous" cannot list resource "networkrules" in API group "network.datumapis.com" in the namespace "${tested.namespace}"`,
        details: { group: 'network.datumapis.com', kind: 'networkrules' },
      })
      for (const path of ['/readyz', '/livez', '/version']) {
        expect([path, (await as({}, path)).code]).toEqual([path, 200])
      }
      expect((await as({}, '/openapi/v3')).code).toBe(403)
    })

    test('by client certificate is known', async () => {
      const { url, ca, clientCertificate: cert, clientKey: key } = tested.server
      const code = await new Promise((resolve, reject) => {
        request(`${url}${tested.rules}`, { ca, cert, key, agent: false }, (answer) => {
          answer.resume()
          resolve(answer.statusCode)
        })
          .on('error', reject)
          .end()
      })
      expect(code).toBe(200)
    })
  })
})

const schemasOf = (document: JsonObject): JsonObject | undefined =>
  objectAt(objectAt(document, 'components'), 'schemas')
