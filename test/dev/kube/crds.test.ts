import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import type { JsonObject } from '../../../dev/kube/json.ts'
import { isObject, objectAt, textAt } from '../../../dev/kube/json.ts'
import { startApiServer } from '../../../dev/kube/server.ts'
import type { Case } from './crd-cases.ts'
import { CASES, samplePath } from './crd-cases.ts'
import { Client, nameOf, namespace, ownCrds, selectorCrd, yamlTexts } from './server.ts'

/**
 * Our CRDs accept and refuse what the table says; where the data plane's own are beside the
 * checkout, they answer the same on the same objects.
 */

const SHARED = fileURLToPath(new URL('../../../../shared/crds', import.meta.url))
const hasShared = existsSync(SHARED)

type Dialect = 'backends' | 'selector'
const DIALECTS: Dialect[] = ['backends', 'selector']

async function crdsOf(owner: 'ours' | 'theirs', dialect: Dialect): Promise<string[]> {
  const base = owner === 'ours' ? await ownCrds() : await yamlTexts(`${SHARED}/backends`)
  if (dialect === 'backends') return base
  const selector =
    owner === 'ours'
      ? await selectorCrd()
      : ((await yamlTexts(`${SHARED}/selector`)).find((text) => text.includes('NetworkRule')) ?? '')
  return [...base, selector]
}

async function answerOf(client: Client, one: Case): Promise<string> {
  await client.call('DELETE', `${one.path}/${nameOf(one.object)}`)
  const path = `${one.path}/${nameOf(one.object)}`
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

for (const dialect of DIALECTS) {
  describe(`in the ${dialect} dialect`, () => {
    let ours: Client
    let theirs: Client | undefined
    beforeAll(async () => {
      ours = new Client(await startApiServer({ crds: await crdsOf('ours', dialect) }))
      if (hasShared) {
        theirs = new Client(await startApiServer({ crds: await crdsOf('theirs', dialect) }))
      }
      for (const client of [ours, theirs]) {
        await client?.call('POST', '/api/v1/namespaces', namespace('galactic-system'))
      }
    })
    afterAll(async () => {
      await ours.close()
      await theirs?.close()
    })

    const cases = CASES.filter((one) => (one.dialect ?? dialect) === dialect)
    test.each(cases)('$name: $expected', async (one) => {
      expect(await answerOf(ours, one)).toBe(one.expected)
    })

    test.skipIf(!hasShared)(
      hasShared
        ? "the data plane's own CRDs answer the same"
        : "the data plane's own CRDs answer the same (skipped: no ../shared/crds beside the checkout)",
      async () => {
        for (const one of cases) {
          const answer = theirs === undefined ? '' : await answerOf(theirs, one)
          expect(`${one.name}: ${answer}`).toBe(`${one.name}: ${one.expected}`)
        }
      },
    )

    if (dialect === 'selector') return
    test.skipIf(!hasShared)("the data plane's samples are accepted by both", async () => {
      const text = await readFile(`${SHARED}/samples.yaml`, 'utf8')
      const served = new Set(['NetworkRule', 'NetworkGateway', 'ServiceVIPBinding'])
      const samples = parseAllDocuments(text)
        .map((document): unknown => document.toJS())
        .filter(isObject)
        .filter((sample) => served.has(textAt(sample, 'kind') ?? ''))
      expect(samples.length).toBeGreaterThan(3)
      for (const sample of samples) {
        const path = samplePath(sample)
        for (const client of [ours, theirs]) {
          const answer = await client?.apply(path, sample)
          expect([path, answer?.code]).toEqual([path, 201])
          expect(specOf(answer?.body)).toEqual(specOf(sample))
        }
      }
    })
  })
}

const specOf = (object: JsonObject | undefined): JsonObject | undefined => objectAt(object, 'spec')
