// Brings a checkout to where it can run, then runs a command with Node 24:
//   node bootstrap.mjs dev/main.ts --fresh      a file of ours, with its arguments
//   node bootstrap.mjs --run vitest run         a program of node_modules/.bin
// Plain JavaScript on Node 20 or newer and npm, since nothing else is there at first.
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { constants } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const modules = join(root, 'node_modules')
const programs = join(modules, '.bin')
const node = join(programs, process.platform === 'win32' ? 'node.exe' : 'node')
const stamp = join(modules, '.installed')
const client = join(root, 'src', 'db', 'generated', 'client.ts')

const environment = {
  ...process.env,
  PATH: [programs, process.env.PATH ?? ''].join(delimiter),
  // Types stripped and code compiled once, not at every start: a third of its time.
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(modules, '.cache', 'compile'),
  // Prisma neither looks for a newer version of itself nor downloads an engine: ours is WASM.
  CHECKPOINT_DISABLE: '1',
  PRISMA_HIDE_UPDATE_MESSAGE: '1',
  PRISMA_SKIP_POSTINSTALL_GENERATE: '1',
  PRISMA_SCHEMA_ENGINE_BINARY: process.env.PRISMA_SCHEMA_ENGINE_BINARY ?? process.execPath,
}

function fail(line) {
  console.error(line)
  process.exit(1)
}

/** Runs a step silently; what it said is shown only when it fails. */
function step(name, advice, command, args) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd: root,
    env: environment,
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (status === 0) return
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}`)
  fail(`${name} failed${error ? ` (${error.message})` : ''}: ${advice}`)
}

function lockHash() {
  return createHash('sha256')
    .update(readFileSync(join(root, 'package-lock.json')))
    .digest('hex')
}

/** Whether node_modules is what package-lock.json asks for, by our stamp or by npm's own record. */
function installed() {
  if (!existsSync(node)) return false
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lockHash()) return true
  const record = join(modules, '.package-lock.json')
  if (!existsSync(record)) return false
  const { packages: asked } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const { packages: had } = JSON.parse(readFileSync(record, 'utf8'))
  const same = Object.entries(asked).every(
    ([path, { version, optional }]) =>
      path === '' || had[path]?.version === version || (optional && had[path] === undefined),
  )
  if (same) writeFileSync(stamp, lockHash())
  return same
}

function install() {
  if (installed()) return
  const begun = Date.now()
  process.stderr.write('Installing dependencies (npm ci), a minute or so the first time … ')
  const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm'
  step(
    'npm ci',
    'see above; where the npm registry could not be reached, try again when npm ping succeeds',
    npm,
    // Node 20 is enough for this file only, so packages that ask for more are no news.
    ['ci', '--no-audit', '--no-fund', '--no-progress', '--loglevel=error'],
  )
  if (!existsSync(node)) {
    fail(
      `npm ci brought no Node 24: allow install scripts (npm config get ignore-scripts says "${npmIgnoresScripts()}", it has to be false), then run this again`,
    )
  }
  writeFileSync(stamp, lockHash())
  process.stderr.write(`done in ${Math.round((Date.now() - begun) / 1000)} s.\n`)
}

function npmIgnoresScripts() {
  return spawnSync('npm', ['config', 'get', 'ignore-scripts'], { encoding: 'utf8' }).stdout?.trim()
}

/** Whether the Prisma client is newer than what it is made of. */
function generated() {
  const made = statSync(client, { throwIfNoEntry: false })?.mtimeMs
  if (made === undefined) return false
  const sources = ['prisma/schema.prisma', 'prisma.config.ts', 'package-lock.json']
  return sources.every((path) => statSync(join(root, path)).mtimeMs < made)
}

function generate() {
  if (generated()) return
  const prisma = join(modules, 'prisma', 'build', 'index.js')
  step('prisma generate', 'see above what is wrong in prisma/', node, [prisma, 'generate'])
  // Prisma leaves a file alone whose text doesn't change, and with it its old time.
  utimesSync(client, new Date(), new Date())
}

/** One process at a time installs and generates; the lock of one that was killed is taken over. */
function alone(work) {
  const lock = join(root, '.data', 'bootstrap.lock')
  mkdirSync(dirname(lock), { recursive: true })
  const until = Date.now() + 10 * 60_000
  while (!acquire(lock)) {
    if (Date.now() > until) fail(`another process is installing for too long: remove ${lock}`)
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
  }
  process.once('exit', () => rmSync(lock, { force: true }))
  work()
  rmSync(lock, { force: true })
}

function acquire(lock) {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
  }
  const holder = statSync(lock, { throwIfNoEntry: false }) && readFileSync(lock, 'utf8')
  if (holder && !alive(Number(holder))) rmSync(lock, { force: true })
  return false
}

function alive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

/** The process that started us and, where it can be read, the one that started that: npm, behind a shell. */
function ancestors() {
  try {
    const stat = readFileSync(`/proc/${process.ppid}/stat`, 'utf8')
    return `${process.ppid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]}`
  } catch {
    return String(process.ppid)
  }
}

function run(args) {
  const [first, ...rest] = args
  if (first === undefined || (first === '--run' && rest.length === 0)) {
    fail('usage: node bootstrap.mjs <file> [argument …] | --run <program> [argument …]')
  }
  const command =
    first === '--run' ? [realpathSync(join(programs, rest[0])), ...rest.slice(1)] : args
  const child = spawn(node, command, { cwd: root, env: environment, stdio: 'inherit' })
  // Each signal is passed on once. A terminal sends Ctrl-C to the child as well as to us.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    let passed = signal === 'SIGINT' && process.stdin.isTTY === true
    process.on(signal, () => {
      if (!passed) child.kill(signal)
      passed = true
    })
  }
  // npm that is stopped or killed by itself tells nobody: whoever started us is gone then.
  const begun = ancestors()
  setInterval(() => {
    if (ancestors() !== begun) child.kill('SIGTERM')
  }, 500).unref()
  child.once('error', (error) => fail(`${node} can't be run: ${error.message}`))
  child.once('exit', (code, signal) => {
    process.exit(signal === null ? code : 128 + constants.signals[signal])
  })
}

if (!installed() || !generated()) {
  alone(() => {
    install()
    generate()
  })
}
run(process.argv.slice(2))
