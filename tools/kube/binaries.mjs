// Where kube-apiserver and etcd are on this machine.
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

const module = fileURLToPath(new URL('.', import.meta.url))

export const PROGRAMS = ['kube-apiserver', 'etcd']

/** What the binaries are made of, besides the published modules that go.sum names. */
const SOURCES = ['go.mod', 'go.sum', 'kube-apiserver/main.go', 'etcd/main.go']

/** The version of Kubernetes that go.mod asks for, as `v1.2.3`. */
export function kubernetesVersion() {
  const [, version] =
    /^\s*k8s\.io\/kubernetes (v\d+\.\d+\.\d+)$/m.exec(
      readFileSync(join(module, 'go.mod'), 'utf8'),
    ) ?? []
  if (version === undefined) throw new Error('tools/kube/go.mod requires no k8s.io/kubernetes')
  return version
}

/** `/version` and `--version` say what a release would. */
export function linkerFlags() {
  const version = kubernetesVersion()
  const [major, minor] = version.slice(1).split('.')
  const values = { gitVersion: version, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' }
  const set = ['k8s.io/component-base/version', 'k8s.io/client-go/pkg/version'].flatMap((path) =>
    Object.entries(values).map(([name, value]) => `-X ${path}.${name}=${value}`),
  )
  // Without symbols: 132 MB instead of 190.
  return ['-s', '-w', ...set].join(' ')
}

/**
 * The folder of both programs: the one that KUBEBUILDER_ASSETS names, else one of the cache, whose
 * name changes with everything that goes into them.
 */
export function binaryFolder(environment = process.env) {
  const { KUBEBUILDER_ASSETS: given, XDG_CACHE_HOME: cache } = environment
  if (given) return { folder: resolve(given), given: true }
  const hash = createHash('sha256').update(linkerFlags())
  for (const source of SOURCES) hash.update(readFileSync(join(module, source))).update('\0')
  const key = `${kubernetesVersion()}-${process.platform}-${process.arch}-${hash.digest('hex').slice(0, 12)}`
  const folder = join(cache || join(homedir(), '.cache'), 'network-load-balancers', 'kube', key)
  return { folder, given: false }
}

/** Whether both programs are in a folder. */
export const complete = (folder) => PROGRAMS.every((name) => existsSync(join(folder, name)))
