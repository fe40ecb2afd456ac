import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { startPostgres } from '../../dev/postgres.ts'
import { DATABASE } from '../../dev/start/demo.ts'
import {
  allGone,
  ask,
  ENDING_MS,
  family,
  firstMutation,
  NAMES,
  STARTING_MS,
  signal,
  until,
  untilActive,
  useStarts,
  welcomed,
  workerOf,
} from './starting.ts'

const starts = useStarts()
const { run } = starts

test('the first start serves what it prints, replaces a killed worker, and SIGTERM to it alone ends every process', {
  timeout: STARTING_MS + 3 * ENDING_MS,
}, async () => {
  const started = run()
  const url = await welcomed(started)
  expect(await ask(url, firstMutation(started))).toMatchObject({
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
  expect(await ask(url, NAMES)).toMatchObject(web)
  const second = run(['--fresh'])
  expect(await second.exit).toEqual([1, null])
  expect(second.said().trim().split('\n')).toHaveLength(1)
  expect(second.said()).toContain(String(started.pid))
  expect(await ask(url, NAMES)).toMatchObject(web)
  const processes = await family(started.pid)
  signal(started.pid, 'SIGKILL')
  await allGone(processes)
})

test('after that the next start is none the worse, and Ctrl-C in its terminal ends every process', {
  timeout: STARTING_MS + ENDING_MS,
}, async () => {
  const started = run()
  const url = await welcomed(started)
  expect(await ask(url, NAMES)).toMatchObject({
    data: { loadBalancers: { nodes: [{ name: 'web' }] } },
  })
  const processes = await family(started.pid)
  signal(-started.pid, 'SIGINT')
  expect(await started.exit).toEqual([0, null])
  await allGone(processes)
})

test('data of an older build end it with one line that names --fresh', {
  timeout: STARTING_MS + ENDING_MS,
}, async () => {
  const postgres = await startPostgres({ dataDir: join(starts.data, 'postgres') })
  const client = new pg.Client({ connectionString: await postgres.ensureDatabase(DATABASE) })
  await client.connect()
  await client.query(
    `UPDATE _prisma_migrations SET migration_name = '20261130000100_functions' WHERE migration_name LIKE '%_addresses'`,
  )
  await client.end()
  await postgres.stop()
  const started = run()
  expect(await started.exit).toEqual([1, null])
  expect(started.said().trim().split('\n')).toHaveLength(1)
  expect(started.said()).toContain('20261130000100_functions')
  expect(started.said()).toContain('npm start -- --fresh')
})

test('--fresh begins anew, and leaves alone what it did not make', {
  timeout: STARTING_MS + ENDING_MS,
}, async () => {
  await writeFile(join(starts.data, 'mine.txt'), 'mine')
  const started = run(['--fresh'])
  const url = await welcomed(started)
  expect(await ask(url, NAMES)).toMatchObject({ data: { loadBalancers: { nodes: [] } } })
  expect(await readFile(join(starts.data, 'mine.txt'), 'utf8')).toBe('mine')
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
