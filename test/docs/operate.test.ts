import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningFleet, startFleet } from '../../dev/fleet/fleet.ts'
import { EDITOR, OPERATOR, permissionIds } from '../../src/server/caller.ts'
import { AUDIENCE, startIssuer } from '../server/identity/issuer.ts'
import { useDatabase } from '../support/database.ts'
import { bareEnvironment } from '../support/environment.ts'
import { guardFleet } from '../support/gatekeeper.ts'
import { freePort } from '../telemetry/processes.ts'
import { document, type Fence, fencesOf } from './markdown.ts'

/** The document is a story: its blocks are run in its order, each when those before have worked. */
const database = useDatabase({ empty: true })
const root = fileURLToPath(new URL('../../', import.meta.url))
const [, story = ''] = /\n## The first hour\n([\s\S]*?)\n## /.exec(document('operate.md')) ?? []
const sections = story
  .split(/^### /m)
  .slice(1)
  .map((section) => ({ title: section.split('\n')[0] ?? '', blocks: fencesOf(section) }))

let fleet: RunningFleet
let guard: Awaited<ReturnType<typeof guardFleet>>
let environment: Record<string, string>
const ports = { api: 0, apiMetrics: 0, workerMetrics: 0 }
const tokens = new Map<string, string>()
const running: ChildProcess[] = []

beforeAll(async () => {
  fleet = await startFleet({})
  guard = await guardFleet(fleet)
  const issuer = await startIssuer()
  for (const port of ['api', 'apiMetrics', 'workerMetrics'] as const) ports[port] = await freePort()
  const hour = { expires: 3_600 }
  const claims = (where: string, ids: ReadonlySet<string>) => ({
    permissions: [...ids].map((id) => `${where}:${id}`),
  })
  tokens.set('operator', await issuer.issue(claims('*', permissionIds(OPERATOR)), hour))
  tokens.set('tenant', await issuer.issue(claims('demo', permissionIds(EDITOR)), hour))
  environment = {
    ...bareEnvironment(),
    HOME: process.env['HOME'] ?? '',
    DATABASE_URL: database.url,
    KUBECONFIG: guard.kubeconfig,
    OIDC_ISSUER: issuer.url,
    OIDC_AUDIENCE: AUDIENCE,
    HOST: '127.0.0.1',
    PORT: String(ports.api),
    LOG_LEVEL: 'error',
    OPERATOR: tokens.get('operator') ?? '',
  }
})
afterAll(async () => {
  await stopAll()
  await guard?.close()
  await fleet?.close()
})

test('every block of the first hour is one that can be tried', () => {
  const all = sections.flatMap(({ blocks }) => blocks)
  expect(all.length).toBeGreaterThan(25)
  for (const { language, info } of all) {
    expect(['sh', 'graphql']).toContain(language)
    if (language === 'graphql') expect(['operator', 'tenant']).toContain(info[0])
  }
  // Nor is there any that isn't part of it.
  expect(fencesOf(document('operate.md'))).toHaveLength(all.length)
})

describe('in the order of the document', () => {
  /** What the answers so far have told, by the name of the variable that takes it. */
  const known = new Map<string, unknown>()
  let failed = false

  test.each(sections)('$title', { timeout: 120_000 }, async ({ title, blocks }) => {
    if (failed) throw new Error('what comes before has failed')
    failed = true
    if (title === 'Restore a backup') await stopAll()
    if (title === 'A cluster is lost') {
      guard.gatekeepers.get('us-east-1-b')?.rule(() => 'reset')
      guard.gatekeepers.get('us-east-1-b')?.breakWatches()
    }
    for (const block of blocks) {
      if (block.language === 'sh') await command(block)
      else await operation(block)
    }
    failed = false
  })

  async function operation({ info: [who = '', ...conditions], text }: Fence): Promise<void> {
    const until = conditions.map((one) => one.replace('until=', '').split(':'))
    const holds = (answer: unknown) =>
      until.every(([path = '', value]) => String(at(answer, path)) === value)
    const end = performance.now() + 60_000
    for (;;) {
      const answer = await ask(who, text)
      if (holds(answer)) return learn(answer)
      if (performance.now() > end) throw new Error(`${text}\nstill ${JSON.stringify(answer)}`)
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }

  async function ask(who: string, query: string): Promise<unknown> {
    const names = [...query.matchAll(/\$(\w+):/g)].map(([, name = '']) => name)
    const path = who === 'operator' ? '/graphql' : '/projects/demo/graphql'
    const response = await fetch(`http://127.0.0.1:${ports.api}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        authorization: `Bearer ${tokens.get(who)}`,
      },
      body: JSON.stringify({
        query,
        variables: Object.fromEntries(names.map((name) => [name, known.get(name)])),
      }),
    })
    const { data, errors } = (await response.json()) as { data: unknown; errors?: unknown }
    if (errors !== undefined) throw new Error(`${query}\n${JSON.stringify(errors)}`)
    const refused = Object.values(data ?? {}).filter((one) => at(one, 'code') !== undefined)
    const isRefusal = query.includes('UserError') && refused.some((one) => at(one, 'message'))
    if (isRefusal) throw new Error(`${query}\n${JSON.stringify(data)}`)
    return data
  }

  /** Ids by the names of what they are of, and the addresses of what can be a backend. */
  function learn(answer: unknown): void {
    const visit = (value: unknown, name: string): void => {
      if (typeof value !== 'object' || value === null) return
      if ('id' in value) known.set(name, value.id)
      for (const [key, inner] of Object.entries(value)) {
        if (key === 'vpcs') visit(at(inner, 'nodes.0'), 'vpc')
        else if (key === 'endpoints') {
          const { nodes } = inner as { nodes: { address: string }[] }
          known.set(
            'backends',
            nodes.map(({ address }) => ({ address })),
          )
        } else visit(inner, key)
      }
    }
    visit(answer, '')
  }
})

const at = (value: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>(
      (inner, key) =>
        typeof inner === 'object' && inner !== null
          ? (inner as Record<string, unknown>)[key]
          : undefined,
      value,
    )

async function command({ info, text }: Fence): Promise<void> {
  const said = text
    .replaceAll(':4000', `:${ports.api}`)
    .replaceAll(':9090', `:${ports.apiMetrics}`)
    .replaceAll(':9091', `:${ports.workerMetrics}`)
  const worker = said.trim() === 'npm run worker'
  const port = worker ? ports.workerMetrics : ports.apiMetrics
  const env = { ...environment, METRICS_PORT: String(port) }
  if (!info.includes('background')) {
    await promisify(execFile)('bash', ['-euc', said], { cwd: root, env, timeout: 60_000 })
    return
  }
  // The addresses of the test's VPCs are listeners of this machine: the demo's worker knows where.
  const [program = '', ...args] = worker
    ? [process.execPath, 'dev/worker.ts', fleet.addressMap]
    : ['bash', '-c', `exec ${said}`]
  // A group of its own, as a terminal gives to what it runs.
  const child = spawn(program, args, {
    cwd: root,
    env,
    stdio: ['ignore', 'ignore', 'inherit'],
    detached: true,
  })
  running.push(child)
}

async function stopAll(): Promise<void> {
  for (const child of running.splice(0)) {
    if (child.pid === undefined || child.exitCode !== null) continue
    const gone = once(child, 'exit')
    process.kill(-child.pid, 'SIGTERM')
    await gone
  }
}
