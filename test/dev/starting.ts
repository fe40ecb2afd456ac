import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll } from 'vitest'

const program = fileURLToPath(new URL('../../dev/main.ts', import.meta.url))
/** Everything ends within 5 s, on a machine that does nothing else. */
export const ENDING_MS = 25_000
export const STARTING_MS = 75_000

/** A run of what `npm start` runs. */
export type Run = {
  child: ChildProcess
  pid: number
  /** All that it printed. */
  said(): string
  exit: Promise<[code: number | null, signal: NodeJS.Signals | null]>
}

export type Starts = {
  /** Where their data are, for the tests of one file. */
  readonly data: string
  run(args?: string[], environment?: Record<string, string>): Run
}

/** Runs for the tests of one file; with the file ends what is left of them. */
export function useStarts(): Starts {
  const runs: Run[] = []
  let data = ''
  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'start-'))
  })
  afterAll(async () => {
    for (const { pid } of runs) signal(-pid, 'SIGKILL')
    await rm(data, { recursive: true, force: true })
  })
  return {
    get data() {
      return data
    },
    run: (args = [], environment = {}) => {
      const started = begin(['--data', data, ...args], environment)
      runs.push(started)
      return started
    },
  }
}

function begin(args: string[], environment: Record<string, string>): Run {
  const { DATABASE_URL: _, ...inherited } = process.env
  const child = spawn(process.execPath, [program, ...args], {
    env: { ...inherited, PORT: '0', METRICS_PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, as a terminal gives to what it runs.
    detached: true,
  })
  const parts: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => parts.push(text))
  }
  return {
    child,
    pid: child.pid ?? 0,
    said: () => parts.join(''),
    exit: once(child, 'close').then(() => [child.exitCode, child.signalCode]),
  }
}

/** Resolves with the API's address once the welcome is printed. */
export async function welcomed(started: Run): Promise<string> {
  return until('the welcome', STARTING_MS, () => {
    if (started.child.exitCode !== null) throw new Error(`it ended:\n${started.said()}`)
    const url = /http:\/\/\S+\/projects\/demo\/graphql/.exec(started.said())?.[0]
    return started.said().includes('Ctrl-C stops everything') ? url : undefined
  })
}

/** The mutation that it prints, to be pasted. */
export const firstMutation = (started: Run): string =>
  /^ {2}mutation [\s\S]*?^ {2}\}/m.exec(started.said())?.[0] ?? ''

export async function ask(url: string, query: string): Promise<unknown> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ query }),
  })
  return answer.json()
}

export const NAMES = '{ loadBalancers { nodes { name status { phase } } } }'

export async function untilActive(url: string): Promise<void> {
  for (const end = performance.now() + ENDING_MS; performance.now() < end; ) {
    const answer = JSON.stringify(await ask(url, NAMES))
    if (answer.includes('ACTIVE')) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('the load balancer never got ACTIVE')
}

/** A process and all that come from it, by their parents. */
export async function family(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const children = text.split(' ').filter(Boolean).map(Number)
  return [pid, ...(await Promise.all(children.map(family))).flat()]
}

/** What a process was started with. */
export const commandOf = (pid: number): Promise<string> =>
  readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')

export async function workerOf(started: Run): Promise<number | undefined> {
  const all = await Promise.all(
    (await family(started.pid)).map(async (pid) =>
      (await commandOf(pid)).includes('worker.ts') ? pid : undefined,
    ),
  )
  return all.find((pid) => pid !== undefined)
}

export async function allGone(pids: number[]): Promise<void> {
  await until('the end of every process', ENDING_MS, () => !pids.some((pid) => signal(pid, 0)))
}

export function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** Looks every 20 ms: other processes tell nobody that they have ended. */
export async function until<T>(
  what: string,
  ms: number,
  look: () => T | undefined | false,
): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const found = look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > end) throw new Error(`never came: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
