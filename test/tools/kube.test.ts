import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { binaryFolder, complete, kubernetesVersion } from '../../tools/kube/binaries.mjs'

const build = fileURLToPath(new URL('../../tools/kube/build.mjs', import.meta.url))

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'kube-build-'))
})
afterAll(() => rm(folder, { recursive: true }))

async function run(environment: Record<string, string>): Promise<{ code: unknown; told: string }> {
  const child = spawn(process.execPath, [build], {
    env: environment,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const exit = new Promise((resolve) => child.once('exit', resolve))
  return { told: await text(child.stderr), code: await exit }
}

async function programsIn(path: string): Promise<void> {
  await mkdir(path, { recursive: true })
  for (const name of ['kube-apiserver', 'etcd']) await writeFile(join(path, name), '')
}

test('the binaries are kept outside the checkout, by version and by what they are made of', () => {
  const { folder: path, given } = binaryFolder({ XDG_CACHE_HOME: '/cache' })
  expect(given).toBe(false)
  expect(path).toMatch(
    new RegExp(
      `^/cache/network-load-balancers/kube/${kubernetesVersion()}-\\w+-\\w+-[0-9a-f]{12}$`,
    ),
  )
  expect(kubernetesVersion()).toMatch(/^v1\.36\.\d+$/)
})

test('nothing is built where they are, whoever put them there', async () => {
  const cached = { XDG_CACHE_HOME: join(folder, 'cache') }
  await programsIn(binaryFolder(cached).folder)
  const given = join(folder, 'given')
  await programsIn(given)
  // Without a PATH there is no Go to build with.
  expect((await run({ ...cached, PATH: '' })).code).toBe(0)
  expect((await run({ KUBEBUILDER_ASSETS: given, PATH: '' })).code).toBe(0)
})

test('a given folder without them is refused, and filled by nobody', async () => {
  const empty = join(folder, 'empty')
  await mkdir(empty)
  const { code, told } = await run({ KUBEBUILDER_ASSETS: empty, PATH: '' })
  expect([code, told]).toEqual([1, expect.stringContaining('KUBEBUILDER_ASSETS')])
  expect(complete(empty)).toBe(false)
})

test('without Go it is said what to do, and nothing is left in the cache', async () => {
  const cache = join(folder, 'none')
  const { code, told } = await run({ XDG_CACHE_HOME: cache, PATH: '' })
  expect([code, told]).toEqual([1, expect.stringContaining('https://go.dev/dl')])
  expect(await readdir(join(cache, 'network-load-balancers', 'kube'))).toEqual([])
})
