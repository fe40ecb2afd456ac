import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const main = new URL('../../src/server/main.ts', import.meta.url).pathname

test.each([
  [{ DATABASE_URL: 'postgres://127.0.0.1:1/none' }, /^OIDC_ISSUER: expected .*\n$/],
  [{ PORT: 'many' }, /^PORT: expected .*\n$/],
])('a process that can not start says why in one line: %o', async (environment, line) => {
  const started = promisify(execFile)(process.execPath, [main], {
    env: { PATH: process.env['PATH'], ...environment },
  })
  await expect(started).rejects.toMatchObject({ code: 1, stdout: '' })
  await expect(started).rejects.toMatchObject({ stderr: expect.stringMatching(line) })
})
