import { setTimeout as delay } from 'node:timers/promises'
import { parseAllDocuments } from 'yaml'
import {
  equal,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  metadataOf,
  objectAt,
  textAt,
} from '../kube/json.ts'
import type { Admin } from './admin.ts'
import type { Program } from './program.ts'

/** How long a start, or a new CRD, may take (ms). A start took 2.5 s alone, 9 s on a busy machine. */
const PATIENCE_MS = 90_000

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'

/** The CRDs in texts of YAML; of two with one name the later counts. */
export function crdsIn(texts: string[]): JsonObject[] {
  const all = texts
    .flatMap((text) => parseAllDocuments(text))
    .map((document): unknown => document.toJS())
    .filter(isObject)
  return [...new Map(all.map((crd) => [nameOf(crd), crd])).values()]
}

/** Waits until the server says it is ready; otherwise answers why it isn't. */
export async function ready(admin: Admin, program: Program): Promise<string | undefined> {
  const answered = await until(async () => {
    if (!program.running()) return 'ended'
    return (await admin.call('GET', '/readyz'))?.code === 200 ? 'ready' : undefined
  })
  if (answered === 'ready') return undefined
  const why = answered === 'ended' ? 'it ended' : `it wasn't ready within ${PATIENCE_MS / 1000} s`
  return `${why}: ${program.lastLines()}`
}

/** Applies a CRD and answers what it was and is; throws where it is refused. */
export async function applyCrd(
  admin: Admin,
  crd: JsonObject,
): Promise<{ before: JsonObject | undefined; after: JsonObject }> {
  const path = `${CRDS}/${nameOf(crd)}`
  const before = await admin.call('GET', path)
  const applied = await admin.apply(path, crd)
  if (applied !== undefined && applied.code < 300) {
    return { before: before?.code === 200 ? before.body : undefined, after: applied.body }
  }
  const told =
    applied === undefined ? 'no answer' : (textAt(applied.body, 'message') ?? applied.text)
  throw new Error(`CustomResourceDefinition ${nameOf(crd)} is refused: ${told}`)
}

/** Applies a CRD that may be served already, and waits until its new self is. */
export async function replaceCrd(admin: Admin, crd: JsonObject): Promise<void> {
  const [path = ''] = collections(crd)
  // A watch ends when the server serves the kind anew; one on nothing ends at once.
  const watch = await admin.watch(path)
  const index = await publishedAt(admin, crd)
  try {
    const { before, after } = await applyCrd(admin, crd)
    if (before !== undefined && !equal(before['spec'], after['spec'])) await watch.ended
    await served(admin, [crd])
    if (before !== undefined && equal(schemasOf(before), schemasOf(after))) return
    const published = await until(async () =>
      (await publishedAt(admin, crd)) === index ? undefined : true,
    )
    if (!published) throw new Error(`the schema of ${nameOf(crd)} is not published`)
  } finally {
    watch.close()
  }
}

/**
 * Waits until the objects of CRDs are served from memory and their schemas are published. Whoever
 * asks first for a kind, also after a restart, makes the server set it up, and is told 429.
 */
export async function served(admin: Admin, crds: JsonObject[]): Promise<void> {
  await Promise.all(crds.map((crd) => servedOne(admin, crd)))
}

async function servedOne(admin: Admin, crd: JsonObject): Promise<void> {
  const paths = [
    ...collections(crd).map((path) => `${path}?resourceVersion=0`),
    ...versionPaths(crd).map((path) => `/openapi/v3${path}`),
  ]
  const all = await until(async () => {
    if (!established((await admin.call('GET', `${CRDS}/${nameOf(crd)}`))?.body)) return undefined
    const answers = await Promise.all(paths.map((path) => admin.call('GET', path)))
    return answers.every((answer) => answer?.code === 200) ? true : undefined
  })
  if (!all) throw new Error(`CustomResourceDefinition ${nameOf(crd)} is not served`)
}

/** Where the schemas of a CRD's first version are published; the address holds a hash of them. */
async function publishedAt(admin: Admin, crd: JsonObject): Promise<string | undefined> {
  const [path = ''] = versionPaths(crd)
  const index = await admin.call('GET', '/openapi/v3')
  return textAt(objectAt(objectAt(index?.body, 'paths'), path.slice(1)), 'serverRelativeURL')
}

const schemasOf = (crd: JsonObject): Json[] =>
  listAt(objectAt(crd, 'spec'), 'versions')
    .filter(isObject)
    .map((version) => version['schema'] ?? null)

const versionPaths = (crd: JsonObject): string[] => {
  const spec = objectAt(crd, 'spec')
  return listAt(spec, 'versions')
    .filter(isObject)
    .filter((version) => version['served'] === true)
    .map((version) => `/apis/${textAt(spec, 'group')}/${textAt(version, 'name')}`)
}

const collections = (crd: JsonObject): string[] => {
  const plural = textAt(objectAt(objectAt(crd, 'spec'), 'names'), 'plural') ?? ''
  return versionPaths(crd).map((path) => `${path}/${plural}`)
}

const nameOf = (crd: JsonObject): string => textAt(metadataOf(crd), 'name') ?? ''

const established = (crd: JsonObject | undefined): boolean =>
  listAt(objectAt(crd, 'status'), 'conditions')
    .filter(isObject)
    .some((one) => one['type'] === 'Established' && one['status'] === 'True')

/** Asks until there is an answer, for a bounded time. */
async function until<T>(ask: () => Promise<T | undefined>): Promise<T | undefined> {
  const end = performance.now() + PATIENCE_MS
  for (let pause = 20; performance.now() < end; pause = Math.min(pause * 1.3, 200)) {
    const answer = await ask()
    if (answer !== undefined) return answer
    await delay(pause)
  }
  return undefined
}
