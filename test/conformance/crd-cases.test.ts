import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { JsonObject } from '../../dev/kube/json.ts'
import { isObject, objectAt, textAt } from '../../dev/kube/json.ts'
import { ownCrds, selectorCrd, yamlTexts } from '../support/crds.ts'
import { type Client, nameOf, namespaceObject } from './client.ts'
import type { Case } from './crd-cases.ts'
import { CASES, samplePath } from './crd-cases.ts'
import { onEachOwnServer } from './servers.ts'

/**
 * Our CRDs accept and refuse what the table says, and the data plane's own, where they are beside
 * the checkout, answer the same on the same objects; by the embedded server and by a real one.
 */

const SHARED = fileURLToPath(new URL('../../../shared/crds', import.meta.url))
const hasShared = existsSync(SHARED)

type Owner = 'ours' | 'theirs'
type Dialect = 'backends' | 'selector'

async function crdsOf(owner: Owner, dialect: Dialect): Promise<string[]> {
  if (owner === 'ours') return dialect === 'backends' ? ownCrds() : [await selectorCrd()]
  return yamlTexts(`${SHARED}/${dialect}`)
}

async function answerOf(client: Client, one: Case): Promise<string> {
  const path = `${one.path}/${nameOf(one.object)}`
  await client.call('DELETE', path)
  for (const before of one.before ?? []) {
    const status = before['status']
    if (status === undefined) await client.apply(path, before)
    else await client.apply(`${path}/status`, before)
  }
  const answer = await client.apply(
    one.status ? `${path}/status` : path,
    one.object,
    'fieldManager=me&force=true',
  )
  return answer.code < 300 ? 'accepted' : `${answer.code}`
}

const specOf = (object: JsonObject | undefined): JsonObject | undefined => objectAt(object, 'spec')

onEachOwnServer((tested) => {
  beforeAll(() =>
    tested.client.call('POST', '/api/v1/namespaces', namespaceObject('galactic-system')),
  )

  for (const owner of ['ours', 'theirs'] as const) {
    for (const dialect of ['backends', 'selector'] as const) {
      // Where nothing is beside the checkout there is nothing to compare with.
      if (owner === 'theirs' && !hasShared) continue
      const title = `${owner === 'ours' ? 'our CRDs' : "the data plane's own CRDs"} in the ${dialect} dialect`
      describe(title, () => {
        beforeAll(async () => {
          const crds = await crdsOf(owner, dialect)
          await Promise.all(crds.map((crd) => tested.server.setCrd(crd)))
        })

        const cases = CASES.filter((one) => (one.dialect ?? dialect) === dialect)
        test.each(cases)('$name: $expected', async (one) => {
          expect(await answerOf(tested.client, one)).toBe(one.expected)
        })

        if (!hasShared || dialect === 'selector') return
        test("accept the data plane's samples", async () => {
          const text = await readFile(`${SHARED}/samples.yaml`, 'utf8')
          const served = new Set(['NetworkRule', 'NetworkGateway', 'ServiceVIPBinding'])
          const samples = parseAllDocuments(text)
            .map((document): unknown => document.toJS())
            .filter(isObject)
            .filter((sample) => served.has(textAt(sample, 'kind') ?? ''))
          expect(samples.length).toBeGreaterThan(3)
          for (const sample of samples) {
            const path = samplePath(sample)
            const answer = await tested.client.apply(path, sample)
            expect([path, answer.code]).toEqual([path, 201])
            expect(specOf(answer.body)).toEqual(specOf(sample))
            await tested.client.call('DELETE', path)
          }
        })
      })
    }
  }
})
