import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { JsonObject } from '../../dev/kube/json.ts'
import { listAt, metadataOf, objectAt } from '../../dev/kube/json.ts'
import { ownCrds, selectorCrd } from '../support/crds.ts'
import { causesOf, condition, NETWORK, rule, take, versionOf } from './client.ts'
import { onEachOwnServer } from './servers.ts'

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const CRD = `${CRDS}/networkrules.network.datumapis.com`

const ruleCrd = async (): Promise<string> =>
  (await ownCrds()).find((text) => text.includes('NetworkRuleList')) ?? ''

onEachOwnServer((tested) => {
  describe('a CRD', () => {
    test('says what it serves, once that is established', async () => {
      const live = await tested.client.get(CRD)
      expect(live.body).toMatchObject({
        spec: { group: 'network.datumapis.com', scope: 'Namespaced' },
        status: {
          acceptedNames: { kind: 'NetworkRule', plural: 'networkrules' },
          storedVersions: ['v1alpha1'],
        },
      })
      const conditions = listAt(objectAt(live.body, 'status'), 'conditions')
      expect(conditions).toMatchObject([
        { type: 'NamesAccepted', status: 'True', reason: 'NoConflicts' },
        { type: 'Established', status: 'True', reason: 'InitialNamesAccepted' },
      ])
      expect(listAt((await tested.client.get(CRDS)).body, 'items')).toHaveLength(6)
    })

    test('whose rules do not compile or cost too much is refused', async () => {
      const crd = parse(await ruleCrd())
      const attempt = async (change: (spec: Record<string, JsonObject>) => void) => {
        const changed = structuredClone(crd)
        change(changed.spec.versions[0].schema.openAPIV3Schema.properties.spec.properties)
        const answer = await tested.client.apply(CRD, changed, 'fieldManager=me&force=true')
        return [answer.code, ...causesOf(answer)]
      }
      const vips = 'spec.validation.openAPIV3Schema.properties[spec].properties[vipAddresses]'
      expect(
        await attempt((spec) => {
          Object.assign(spec['vipAddresses'] ?? {}, {
            'x-kubernetes-validations': [{ rule: 'self.all(v, isIPv6(v))' }],
          })
        }),
      ).toEqual([422, `FieldValueInvalid ${vips}.x-kubernetes-validations[0].rule`])
      expect(
        await attempt((spec) => {
          delete spec['vipAddresses']?.['maxItems']
        }),
      ).toContain(`FieldValueForbidden ${vips}.x-kubernetes-validations[0].rule`)
    })
  })

  describe('a CRD replaced by the other dialect while running', () => {
    test('shows old objects without what it lacks, and takes the new shape', async () => {
      const { client, rules, server } = tested
      const path = `${rules}/old`
      const made = await client.apply(path, rule('old', {}, { finalizers: ['a.example/x'] }))
      const events = client.watch(rules, `resourceVersion=${versionOf(made.body)}`)
      const ended = take(events, 1)
      await server.setCrd(await selectorCrd())
      expect(await ended).toEqual([])

      await expect
        .poll(async () => (await client.get(path)).body['spec'])
        .not.toHaveProperty('backends')
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
      expect(metadataOf(fresh.body)).toMatchObject({
        uid: metadataOf(made.body)['uid'],
        generation: 2,
      })
      const document = await client.get(`/openapi/v3${NETWORK}`)
      expect(document.text).toContain('backendSelector')
      expect(document.text).not.toContain('"backends"')
    })

    test('can be put back', async () => {
      const { client, rules, server } = tested
      await server.setCrd(await ruleCrd())
      await expect
        .poll(async () => (await client.apply(`${rules}/back`, rule('back'))).code)
        .toBe(201)
      expect((await client.get(`/openapi/v3${NETWORK}`)).text).toContain('"backends"')
    })
  })
})
