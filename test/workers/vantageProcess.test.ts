import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, it } from 'vitest'
import { bareEnvironment } from '../support/environment.ts'
import { useInstallation } from '../support/installation.ts'
import { condition, createSettled, shown } from './scene.ts'

const installation = useInstallation({
  clusters: [{ name: 'us-east-1-a', region: 'us-east-1', servesIPv4: false }],
})
const main = fileURLToPath(new URL('../../src/workers/vantage/main.ts', import.meta.url))
let running: ReturnType<typeof run> | undefined
afterEach(() => running?.process.kill('SIGKILL'))

function run(environment: Record<string, string>) {
  const child = spawn(process.execPath, [main], {
    env: { ...bareEnvironment(), ...environment },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (text) => {
    errors += text
  })
  const ended = once(child, 'close').then(([code]) => ({ code, errors }))
  return { process: child, ended }
}

describe('the process of a vantage point', () => {
  it('tries what the API lists, and ends in order when it is asked to', async () => {
    const made = await createSettled(installation, installation.addresses('us-east-1-a'))
    running = run({
      API_URL: installation.operators.url,
      VANTAGE: 'here',
      VANTAGE_INTERVAL_SECONDS: '1',
    })
    // Nothing on this machine leads to an address of documentation (RFC 3849).
    await shown(installation, made, (now) => condition(now, 'Reachable')?.reason === 'ProbeFailed')
    const seen = await installation.store.prisma.reachability.findFirstOrThrow()
    expect(seen).toMatchObject({ vantage: 'here', port: made.port, reachable: false })
    running.process.kill('SIGTERM')
    expect(await running.ended).toEqual({ code: 0, errors: '' })
  })

  it('that is told too little says in one line what it needs', async () => {
    running = run({ API_URL: installation.operators.url })
    expect(await running.ended).toEqual({
      code: 1,
      errors: expect.stringMatching(/^VANTAGE: expected [^\n]+\n$/),
    })
  })
})
