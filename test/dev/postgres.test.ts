import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import pg from 'pg'
import { afterAll, describe, expect, test } from 'vitest'
import { startPostgres } from '../../dev/postgres.ts'

const directory = mkdtempSync(join(tmpdir(), 'load-balancer-postgres-'))
chmodSync(directory, 0o711)
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const module = new URL('../../dev/postgres.ts', import.meta.url).href

/** Another process that runs a server on `dataDir` until it is killed; prints its number. */
async function runElsewhere(dataDir: string): Promise<{ process: ChildProcess; url: string }> {
  const script = `
    const { startPostgres } = await import(${JSON.stringify(module)})
    console.log((await startPostgres({ dataDir: ${JSON.stringify(dataDir)} })).url)`
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [url] = await once(createInterface(child.stdout), 'line')
  return { process: child, url: String(url) }
}

async function ask(url: string, statement: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query({ text: statement, rowMode: 'array' })).rows[0]?.[0]
  } finally {
    await client.end()
  }
}

const postmaster = (dataDir: string): number =>
  Number.parseInt(readFileSync(join(dataDir, 'postmaster.pid'), 'utf8'), 10)

const runs = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

describe('PostgreSQL from npm', () => {
  const dataDir = join(directory, 'kept')

  test('keeps its data from one start to the next, and knows UTF-8', async () => {
    const first = await startPostgres({ dataDir })
    const url = await first.ensureDatabase('demo')
    await ask(url, `CREATE TABLE word AS SELECT 'Grüße' AS word`)
    await first.stop()
    await first.ended
    const second = await startPostgres({ dataDir })
    const again = await second.ensureDatabase('demo')
    expect(await ask(again, 'SELECT word FROM word')).toBe('Grüße')
    await second.stop()
  })

  test('listens on 127.0.0.1 alone, and lets nobody in without the password', async () => {
    const server = await startPostgres({ dataDir })
    expect(await ask(server.url, 'SHOW listen_addresses')).toBe('127.0.0.1')
    expect(await ask(server.url, 'SHOW unix_socket_directories')).toBe('')
    const stranger = Object.assign(new URL(server.url), { password: 'guess' }).href
    await expect(ask(stranger, 'SELECT 1')).rejects.toMatchObject({ code: '28P01' })
    await server.stop()
  })

  test('is not started twice on the same data', async () => {
    const server = await startPostgres({ dataDir })
    await expect(startPostgres({ dataDir })).rejects.toThrow(/already serves/)
    await server.stop()
  })

  test('says that a port is taken', async () => {
    const squatter = createServer().listen(0, '127.0.0.1')
    await once(squatter, 'listening')
    const address = squatter.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    await expect(startPostgres({ dataDir, port })).rejects.toThrow(`port ${port}`)
    squatter.close()
  })

  test('ends when the process that runs it is killed', async () => {
    const { process: runner } = await runElsewhere(dataDir)
    const pid = postmaster(dataDir)
    runner.kill('SIGKILL')
    await expect.poll(() => runs(pid)).toBe(false)
  })

  test('left over by a killed process is replaced by the next start', async () => {
    const { process: runner, url } = await runElsewhere(dataDir)
    const left = postmaster(dataDir)
    // A client that stays keeps nothing alive: fast shutdown cuts it off.
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    runner.kill('SIGKILL')
    await once(runner, 'exit')
    const server = await startPostgres({ dataDir })
    expect(postmaster(dataDir)).not.toBe(left)
    expect(await ask(server.url, 'SELECT 1')).toBe(1)
    await expect.poll(() => runs(left)).toBe(false)
    await server.stop()
  })

  test('starts where a lock file names a process that is something else', async () => {
    writeFileSync(join(dataDir, 'postmaster.pid'), `${process.pid}\n${dataDir}\n`)
    const server = await startPostgres({ dataDir })
    await server.stop()
    expect(existsSync(join(dataDir, 'postmaster.pid'))).toBe(false)
  })
})

describe('a data directory', () => {
  test('that holds something else is refused and left alone', async () => {
    const dataDir = join(directory, 'other')
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'letter'), 'dear')
    await expect(startPostgres({ dataDir })).rejects.toThrow(/isn't empty/)
    expect(existsSync(join(dataDir, 'letter'))).toBe(true)
  })

  test("of another version is refused by its version's name", async () => {
    const dataDir = join(directory, 'old')
    mkdirSync(dataDir)
    writeFileSync(join(dataDir, 'PG_VERSION'), '14\n')
    await expect(startPostgres({ dataDir })).rejects.toThrow(/PostgreSQL 14/)
  })

  test('half made by a killed start is made anew', async () => {
    const leftover = join(directory, 'half.making-abc123')
    mkdirSync(join(leftover, 'data'), { recursive: true })
    writeFileSync(join(leftover, 'data', 'PG_VERSION'), '18\n')
    const server = await startPostgres({ dataDir: join(directory, 'half') })
    await server.stop()
    expect(existsSync(leftover)).toBe(false)
  })

  test('whose server ends at once shows what it said last', async () => {
    const dataDir = join(directory, 'half')
    const settings = { no_such_setting: 'on' }
    await expect(startPostgres({ dataDir, settings })).rejects.toThrow(/no_such_setting/)
  })
})
