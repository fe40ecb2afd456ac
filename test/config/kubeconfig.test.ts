import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bareEnvironment } from '../support/environment.ts'

const worker = new URL('../../src/workers/main.ts', import.meta.url).pathname
let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'kubeconfig-'))
})
afterAll(() => rm(directory, { recursive: true }))

test.each([
  ['is not there', undefined, /ENOENT/],
  ['is empty', '\n', /is empty/],
  ['is no YAML', 'contexts: [', /can't be read/],
  ['is something else', 'kind: List\n', /is no kubeconfig/],
])('a kubeconfig that %s ends a worker that begins with one line', async (_, text, why) => {
  const file = join(directory, 'config')
  await rm(file, { force: true })
  if (text !== undefined) await writeFile(file, text)
  const env = {
    ...bareEnvironment(),
    DATABASE_URL: 'postgres://127.0.0.1:1/none',
    KUBECONFIG: file,
  }
  const ended = promisify(execFile)(process.execPath, [worker], { env, timeout: 60_000 })
  await expect(ended).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      new RegExp(
        `^KUBECONFIG: expected one or several kubeconfig files, found .*${why.source}.*\\n$`,
      ),
    ),
  })
})
