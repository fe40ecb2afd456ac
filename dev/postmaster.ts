import { spawnSync } from 'node:child_process'
import { readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

/** Which process started the server that a data directory's lock file names. */
type Runner = { pid: number; started: string; postmaster: number }

const runnerFile = (dataDir: string): string => join(dataDir, 'runner.json')
const lockFile = (dataDir: string): string => join(dataDir, 'postmaster.pid')

/** Notes that this process runs `postmaster`, so that a later start can tell an orphan. */
export function recordRunner(dataDir: string, postmaster: number): void {
  const runner = { pid: process.pid, started: startTime(process.pid) ?? '', postmaster }
  writeFileSync(runnerFile(dataDir), JSON.stringify(runner))
}

/**
 * Makes sure that no server runs on the data directory. One whose runner was killed is stopped
 * (a new one starts with the settings of now, and its log is ours to read); one whose runner lives,
 * or that somebody else started, is left alone and refused. A lock file whose number now belongs
 * to another process is removed: PostgreSQL would take that process for a postmaster.
 */
export async function clearDataDirectory(dataDir: string): Promise<void> {
  const postmaster = Number.parseInt(read(lockFile(dataDir)) ?? '', 10)
  if (!Number.isInteger(postmaster)) return
  if (!serves(postmaster, dataDir)) {
    rmSync(lockFile(dataDir), { force: true })
    return
  }
  const runner: Partial<Runner> = JSON.parse(read(runnerFile(dataDir)) ?? '{}')
  const orphan =
    runner.postmaster === postmaster &&
    runner.pid !== undefined &&
    startTime(runner.pid) !== runner.started
  if (!orphan) {
    throw new Error(
      `a PostgreSQL server (process ${postmaster}) already serves ${dataDir}: stop whatever runs it (kill -INT ${postmaster}) or use another directory`,
    )
  }
  await end(postmaster, () => !serves(postmaster, dataDir))
}

/**
 * Ends a server: fast shutdown, 10 s later immediate shutdown (the next start recovers from the
 * log), 5 s later the hard way.
 */
export async function end(postmaster: number, gone: () => boolean): Promise<void> {
  const steps = [
    ['SIGINT', 10_000],
    ['SIGQUIT', 5_000],
    ['SIGKILL', 5_000],
  ] as const
  for (const [signal, milliseconds] of steps) {
    if (gone()) return
    signalProcess(postmaster, signal)
    const until = performance.now() + milliseconds
    while (!gone() && performance.now() < until) await delay(10)
  }
  if (!gone()) throw new Error(`PostgreSQL (process ${postmaster}) doesn't end`)
}

/** Sends a signal to a process that may just have ended. */
function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(pid, signal)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false
    if (error instanceof Error && 'code' in error && error.code === 'EPERM') return true
    throw error
  }
}

/** Whether process `pid` is a server on the data directory: a postmaster works inside it. */
function serves(pid: number, dataDir: string): boolean {
  if (!signalProcess(pid, 0)) return false
  if (process.platform !== 'linux') return describe(pid, 'command')?.includes(dataDir) ?? false
  try {
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(dataDir)
  } catch (error) {
    // Another user's process hides its directory; that user can't have written our lock file.
    if (error instanceof Error && 'code' in error && error.code === 'EACCES') return false
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false
    throw error
  }
}

/** When a process was started, in the system's own words; undefined if there is none. */
function startTime(pid: number): string | undefined {
  if (process.platform !== 'linux') return describe(pid, 'lstart')
  // After the command's name, which is in brackets and may hold spaces: field 3 on.
  const stat = read(`/proc/${pid}/stat`)
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
  // A killed process that its parent hasn't buried yet runs no more.
  return fields[0] === 'Z' ? undefined : fields[19]
}

function describe(pid: number, column: string): string | undefined {
  const { status, stdout } = spawnSync('ps', ['-o', `${column}=`, '-p', String(pid)])
  return status === 0 ? stdout.toString().trim() : undefined
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ESRCH') return undefined
    throw error
  }
}
