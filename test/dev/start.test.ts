import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'

const program = fileURLToPath(new URL('../../dev/main.ts', import.meta.url))
/** Everything ends within 5 s, on a machine that does nothing else. */
const ENDING_MS = 25_000
const STARTING_MS = 75_000

type Run = {
  child: ChildProcess
  pid: number
  /** All that it printed. */
  said(): string
  exit: Promise<[code: number | null, signal: NodeJS.Signals | null]>
}

let data: string
beforeAll(async () => {
  data = await mkdtemp(join(tmpdir(), 'start-'))
})
afterAll(async () => {
  for (const { pid } of runs) signal(-pid, 'SIGKILL')
  await rm(data, { recursive: true, force: true })
})

const runs: Run[] = []

function run(args: string[] = [], environment: Record<string, string> = {}): Run {
  const { DATABASE_URL: _, ...inherited } = process.env
  const child = spawn(process.execPath, [program, '--data', data, ...args], {
    env: { ...inherited, PORT: '0', METRICS_PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
    // A group of its own, as a terminal gives to what it runs.
    detached: true,
  })
  const parts: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => parts.push(text))
  }
  const exit = once(child, 'close').then(() => [child.exitCode, child.signalCode] as const)
  const started: Run = {
    child,
    pid: child.pid ?? 0,
    said: () => parts.join(''),
    exit: exit.then(([code, name]) => [code, name]),
  }
  runs.push(started)
  return started
}

/** Resolves with the API's address once the welcome is printed. */
async function welcomed(started: Run): Promise<string> {
  return until('the welcome', STARTING_MS, () => {
    if (started.child.exitCode !== null) throw new Error(`it ended:\n${started.said()}`)
    const url = /http:\/\/\S+\/projects\/demo\/graphql/.exec(started.said())?.[0]
    return started.said().includes('Ctrl-C stops everything') ? url : undefined
  })
}

async function ask(url: string, query: string): Promise<unknown> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ query }),
  })
  return answer.json()
}

/** A process and all that come from it, by their parents. */
async function family(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '')
  const children = text.split(' ').filter(Boolean).map(Number)
  return [pid, ...(await Promise.all(children.map(family))).flat()]
}

async function workerOf(started: Run): Promise<number | undefined> {
  const all = await Promise.all(
    (await family(started.pid)).map(async (pid) => {
      const line = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
      return line.includes('worker.ts') ? pid : undefined
    }),
  )
  return all.find((pid) => pid !== undefined)
}

async function allGone(pids: number[]): Promise<void> {
  await until('the end of every process', ENDING_MS, () => !pids.some((pid) => signal(pid, 0)))
}

function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

/** Looks every 20 ms: other processes tell nobody that they have ended. */
async function until<T>(what: string, ms: number, look: () => T | undefined | false): Promise<T> {
  const end = performance.now() + ms
  for (;;) {
    const found = look()
    if (found !== undefined && found !== false) return found
    if (performance.now() > end) throw new Error(`never came: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const names = '{ loadBalancers { nodes { name status { phase } } } }'

test('the first start serves what it prints, replaces a killed worker, and SIGTERM to it alone ends every process', {
  timeout: STARTING_MS + 3 * ENDING_MS,
}, async () => {
  const started = run()
  const url = await welcomed(started)
  const mutation = /^ {2}mutation [\s\S]*?^ {2}\}/m.exec(started.said())?.[0] ?? ''
  expect(await ask(url, mutation)).toMatchObject({
    data: { createLoadBalancer: { loadBalancer: { generation: 1 } } },
  })
  await untilActive(url)
  const first = await workerOf(started)
  signal(first ?? 0, 'SIGKILL')
  let second: number | undefined
  await until('another worker', ENDING_MS, () => {
    void workerOf(started).then((pid) => {
      second = pid === first ? undefined : pid
    })
    return second
  })
  const processes = await family(started.pid)
  expect(processes.length).toBeGreaterThan(3)
  signal(started.pid, 'SIGTERM')
  expect(await started.exit).toEqual([0, null])
  await allGone(processes)
})

test('the next start finds the same data, which no other may use; killed outright it leaves no process', {
  timeout: STARTING_MS + ENDING_MS,
}, async () => {
  const started = run()
  const url = await welcomed(started)
  const web = {
    data: { loadBalancers: { nodes: [{ name: 'web', status: { phase: 'ACTIVE' } }] } },
  }
  expect(await ask(url, names)).toMatchObject(web)
  const second = run(['--fresh'])
  expect(await second.exit).toEqual([1, null])
  expect(second.said().trim().split('\n')).toHaveLength(1)
  expect(second.said()).toContain(String(started.pid))
  expect(await ask(url, names)).toMatchObject(web)
  const processes = await family(started.pid)
  signal(started.pid, 'SIGKILL')
  await allGone(processes)
})

test('after that the next start is none the worse, and Ctrl-C in its terminal ends every process', {
  timeout: STARTING_MS + ENDING_MS,
}, async () => {
  const started = run()
  const url = await welcomed(started)
  expect(await ask(url, names)).toMatchObject({
    data: { loadBalancers: { nodes: [{ name: 'web' }] } },
  })
  const processes = await family(started.pid)
  signal(-started.pid, 'SIGINT')
  expect(await started.exit).toEqual([0, null])
  await allGone(processes)
})

test('--fresh begins anew, and leaves alone what it did not make', {
  timeout: STARTING_MS + ENDING_MS,
}, async () => {
  await writeFile(join(data, 'mine.txt'), 'mine')
  const started = run(['--fresh'])
  const url = await welcomed(started)
  expect(await ask(url, names)).toMatchObject({ data: { loadBalancers: { nodes: [] } } })
  expect(await readFile(join(data, 'mine.txt'), 'utf8')).toBe('mine')
  signal(started.pid, 'SIGTERM')
  await started.exit
})

test('a taken port is one line that says what to do, and nothing is left running', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const started = run([], { PORT: String(port) })
  const processes = await family(started.pid)
  expect(await started.exit).toEqual([1, null])
  expect(started.said().trim().split('\n')).toEqual([
    `port ${port} is taken: stop what listens there, or choose another one: PORT=${port + 1} npm start`,
  ])
  await allGone(processes)
  server.close()
})

test('an argument or a setting that makes no sense is one line', async () => {
  const argument = run(['--frech'])
  expect(await argument.exit).toEqual([1, null])
  expect(argument.said().trim().split('\n')).toHaveLength(1)
  expect(argument.said()).toContain('--frech')
  const setting = run([], { PORT: 'four thousand' })
  expect(await setting.exit).toEqual([1, null])
  expect(setting.said().trim().split('\n')).toHaveLength(1)
  expect(setting.said()).toContain('PORT')
})

test('--help says what there is and starts nothing', async () => {
  const started = run(['--help'])
  expect(await started.exit).toEqual([0, null])
  expect(started.said()).toContain('--fresh')
})

async function untilActive(url: string): Promise<void> {
  for (const end = performance.now() + ENDING_MS; performance.now() < end; ) {
    const answer = JSON.stringify(await ask(url, names))
    if (answer.includes('ACTIVE')) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error('the load balancer never got ACTIVE')
}
