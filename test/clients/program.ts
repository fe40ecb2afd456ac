import { execFile, type SpawnSyncReturns, spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
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

/** Builds the command-line client for the tests of one file. */
export function useProgram(): Program {
  const directory = mkdtempSync(join(tmpdir(), 'lb-'))
  const path = join(directory, 'lb')
  beforeAll(() => {
    const { status, stderr, error } = go('build', '-o', path, './cmd/lb')
    if (status !== 0) throw new Error(`go build: ${error?.message ?? stderr}`)
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
