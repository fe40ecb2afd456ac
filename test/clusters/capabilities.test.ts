import { expect, test } from 'vitest'
import { capabilitiesOf } from '../../src/clusters/capabilities.ts'

function document(kind: string, fields: Record<string, unknown>): unknown {
  return {
    openapi: '3.0.0',
    components: {
      schemas: {
        list: { type: 'object' },
        it: {
          properties: { spec: { properties: fields } },
          'x-kubernetes-group-version-kind': [
            { group: 'network.datumapis.com', version: 'v1alpha1', kind },
          ],
        },
      },
    },
  }
}

const spec = (...names: string[]) => Object.fromEntries(names.map((name) => [name, {}]))
const rule = spec('vpcRef', 'vipAddresses', 'protocol', 'port')
const backends = { ...rule, vpcAttachmentRef: {}, backends: {} }

test('the dialect and the affinity of a cluster are read from its schema', () => {
  const of = (fields: Record<string, unknown>) => capabilitiesOf(document('NetworkRule', fields))
  expect(of(backends)).toEqual({ dialect: 'backends', sessionAffinity: false })
  expect(of({ ...rule, backendSelector: {}, backendPort: {}, sessionAffinity: {} })).toEqual({
    dialect: 'selector',
    sessionAffinity: true,
  })
  expect(of(rule)).toEqual({ dialect: undefined, sessionAffinity: false })
})

test.each(Object.keys(backends))('a rule without %s is of no dialect', (field) => {
  const { [field]: _, ...fields }: Record<string, unknown> = backends
  expect(capabilitiesOf(document('NetworkRule', fields)).dialect).toBeUndefined()
})

test.each([
  ['no document', undefined],
  ['another kind', document('NetworkGateway', { backends: {} })],
  ['nonsense', { components: [1] }],
])('%s: no dialect', (_, given) => {
  expect(capabilitiesOf(given)).toEqual({ dialect: undefined, sessionAffinity: false })
})
