// Builds kube-apiserver and etcd from the Go module registry into a cache folder outside the
// checkout, unless they are there: npm run kube:build. Needs Go and, with an empty module cache,
// 1.3 GB and about five minutes on two cores.
import { spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { binaryFolder, complete, kubernetesVersion, linkerFlags, PROGRAMS } from './binaries.mjs'

const module = fileURLToPath(new URL('.', import.meta.url))
/** How often the progress is told, ms; a terminal sees each step. */
const TOLD_EVERY = 15_000

const environment = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly', GOWORK: 'off' }
const packages = PROGRAMS.map((name) => `./${name}`)

function fail(line) {
  console.error(line)
  process.exit(1)
}

/** What a short go command prints. */
function go(...args) {
  const { status, error, stdout } = spawnSync('go', args, {
    cwd: module,
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  })
  if (error?.code === 'ENOENT') {
    fail(
      'There is no go on the PATH: install Go (https://go.dev/dl), or let KUBEBUILDER_ASSETS name a folder with kube-apiserver and etcd.',
    )
  }
  if (status !== 0) fail(`go ${args.join(' ')} failed: see above`)
  return stdout
}

/** Runs the build into `folder`, telling how far it is. */
function build(folder) {
  const total = go('list', '-deps', ...packages)
    .trim()
    .split('\n').length
  const args = ['build', '-v', '-trimpath', '-ldflags', linkerFlags(), '-o', folder]
  const child = spawn('go', [...args, ...packages], {
    cwd: module,
    env: environment,
    stdio: ['ignore', 'inherit', 'pipe'],
  })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.once(signal, () => child.kill(signal))
  const begun = Date.now()
  let compiled = 0
  let told = begun
  const tell = () => {
    const seconds = Math.round((Date.now() - begun) / 1000)
    const line = `${compiled} of ${total} packages, ${seconds} s`
    process.stderr.write(process.stderr.isTTY ? `\r  ${line} ` : `  ${line}\n`)
    told = Date.now()
  }
  // With -v go names each package as it begins with it; anything else is an error to show.
  createInterface({ input: child.stderr }).on('line', (line) => {
    if (!/^[\w./~-]+$/.test(line)) return void process.stderr.write(`${line}\n`)
    compiled += 1
    if (process.stderr.isTTY || Date.now() - told > TOLD_EVERY) tell()
  })
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      tell()
      resolve(signal === null ? code : 128 + constants.signals[signal])
    })
  })
}

/** Folders that builds left behind when they were killed. */
function removeLeftovers(parent, name) {
  for (const entry of readdirSync(parent)) {
    const [, pid] = entry.startsWith(`${name}.building-`) ? entry.split('.building-') : []
    if (pid !== undefined && !alive(Number(pid))) {
      rmSync(join(parent, entry), { recursive: true, force: true })
    }
  }
}

function alive(pid) {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === 'EPERM'
  }
}

const { folder, given } = binaryFolder()
if (complete(folder)) {
  console.error(`kube-apiserver and etcd are in ${folder}`)
} else if (given) {
  fail(`KUBEBUILDER_ASSETS names ${folder}, which lacks ${PROGRAMS.join(' or ')}`)
} else {
  const version = kubernetesVersion()
  // Whoever works on this machine meanwhile goes first.
  setPriority(10)
  const aside = `${folder}.building-${process.pid}`
  process.once('exit', () => rmSync(aside, { recursive: true, force: true }))
  mkdirSync(aside, { recursive: true })
  removeLeftovers(dirname(folder), basename(folder))
  console.error(`Building kube-apiserver ${version} and etcd: about five minutes the first time`)
  const code = await build(`${aside}/`)
  if (code === 0) {
    try {
      renameSync(aside, folder)
    } catch (error) {
      // Another build was first.
      if (!complete(folder)) throw error
    }
    console.error(`kube-apiserver and etcd are in ${folder}`)
  }
  process.exitCode = code
}
