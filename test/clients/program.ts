import { execFile, type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'

/** Where the Go module is. */
export const module = fileURLToPath(new URL('../../clients/go', import.meta.url))

/** Go is needed for nothing else here, so these tests do without where it is missing. */
export const hasGo = spawnSync('go', ['version']).status === 0
export const WITHOUT_GO = 'there is no Go here: install Go 1.26 or newer to try the Go client'

/** The first build of all (ms); later ones take a second of Go's cache. */
const BUILD = 300_000
/** More than any one command of these tests takes (ms). */
const PATIENCE = 60_000

/** Runs Go in the module. */
export function go(...args: string[]): SpawnSyncReturns<string> {
  return spawnSync('go', args, { cwd: module, encoding: 'utf8', timeout: BUILD })
}

export type Ended = { code: number | null; out: string; err: string }
export type Program = {
  /** Runs it to its end. */
  run(endpoint: string, args: string[], env?: NodeJS.ProcessEnv): Promise<Ended>
  /** Runs it to its end and reads what it printed: it has to end well. */
  json<T>(endpoint: string, args: string[]): Promise<T>
  /** Starts it; its lines as they come, and its end once it is interrupted. */
  start(
    endpoint: string,
    args: string[],
  ): { lines: AsyncIterator<string>; interrupt(): Promise<number | null> }
}

/** Generates the client's code again in a directory, of given operations, and answers its path. */
export function generate(directory: string, operations: string): string {
  const config = readFileSync(join(module, 'genqlient.yaml'), 'utf8')
    .replace('../../schema.client.graphql', join(module, '../../schema.client.graphql'))
    .replace('generated: api/generated.go', 'generated: generated.go')
  writeFileSync(join(directory, 'operations.graphql'), operations)
  writeFileSync(join(directory, 'genqlient.yaml'), config)
  succeed('tool', 'genqlient', join(directory, 'genqlient.yaml'))
  return join(directory, 'generated.go')
}

function succeed(...args: string[]): void {
  const { status, stdout, stderr, error } = go(...args)
  if (status !== 0) throw new Error(`go ${args[0]}: ${error?.message ?? stdout + stderr}`)
}

/** Builds the command-line client for the tests of one file; `operations`: of these instead. */
export function useProgram(operations?: (text: string) => string): Program {
  let directory = ''
  let path = ''
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'lb-'))
    path = join(directory, 'lb')
    const overlay = join(directory, 'overlay.json')
    const Replace: Record<string, string> = {}
    if (operations !== undefined) {
      const altered = operations(readFileSync(join(module, 'operations.graphql'), 'utf8'))
      Replace[join(module, 'api/generated.go')] = generate(directory, altered)
    }
    writeFileSync(overlay, JSON.stringify({ Replace }))
    succeed('build', '-overlay', overlay, '-o', path, './cmd/lb')
  }, BUILD)
  afterAll(() => rmSync(directory, { recursive: true, force: true }))
  const environment = (endpoint: string, env: NodeJS.ProcessEnv = {}) => ({
    ...process.env,
    LB_ENDPOINT: endpoint,
    LB_TOKEN: '',
    ...env,
  })
  const run: Program['run'] = (endpoint, args, env) =>
    new Promise((resolve) => {
      const options = { env: environment(endpoint, env), timeout: PATIENCE }
      const child = execFile(path, args, options, (_error, out, err) =>
        resolve({ code: child.exitCode, out, err }),
      )
    })
  return {
    run,
    async json<T>(endpoint: string, args: string[]) {
      const { code, out, err } = await run(endpoint, [...args, '-o', 'json'])
      if (code !== 0) throw new Error(`lb ${args.join(' ')} ended with ${code}: ${err}`)
      return JSON.parse(out) as T
    },
    start(endpoint, args) {
      const options = { env: environment(endpoint), timeout: PATIENCE }
      const child = spawn(path, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] })
      const ended = new Promise<number | null>((resolve) => child.once('exit', resolve))
      return {
        lines: createInterface({ input: child.stdout })[Symbol.asyncIterator](),
        interrupt() {
          child.kill('SIGINT')
          return ended
        },
      }
    },
  }
}
