import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { delimiter, dirname, resolve } from 'node:path'
import { KubeConfig, loadYaml, type User } from '@kubernetes/client-node'
import { isRecord } from './failure.ts'
import { type Headers, impersonationOf } from './impersonation.ts'
import { commandIn, Program } from './program.ts'

/** One context of a kubeconfig: which server, and as whom. */
export type ClusterContext = {
  name: string
  /** Base URL, with a path where the server sits behind one. */
  server: string
  /** `http:` and `https:` go by CONNECT or absolute form, `socks5:` by SOCKS. */
  proxyUrl: string | undefined
  /** Changes whenever anything in the file about this context does. */
  fingerprint: string
  /** Holds the user's bearer token, whatever other token the file has. */
  tokenFile: string | undefined
  /** Besides the name: as whom the user acts. */
  impersonation: Headers
  /** The user's credentials are handed out by a program, which knows how long they are good. */
  hasProgram: boolean
  /**
   * A KubeConfig that holds this context only. client-node keeps tokens by user name, or one for
   * all users, per KubeConfig: a copy each, and credentials can't end up at another cluster.
   */
  open(): KubeConfig
}

type Options = {
  /** Told when a file can't be read or understood; what was read before stays in force. */
  onProblem(error: Error): void
  /** How often the files are looked at; 0: only when `refresh` is called. */
  pollMs?: number
}

type Stamp = string

/**
 * The contexts of one or several kubeconfig files, kept up to date with them.
 *
 * As kubectl does, of two contexts with one name the first file's counts. Unlike kubectl, a context
 * takes its cluster and user from its own file first: two files that both call their user `admin`
 * don't mix.
 */
export class Kubeconfig {
  readonly #files: string[]
  readonly #options: Options
  readonly #listeners = new Set<() => void>()
  #contexts: ReadonlyMap<string, ClusterContext> = new Map()
  #stamps: Stamp = ''
  #timer: NodeJS.Timeout | undefined
  #refreshing: Promise<void> | undefined
  /** Reported already; the files are looked at again until it passes. */
  #problem: string | undefined

  private constructor(files: string[], options: Options) {
    this.#files = files
    this.#options = options
  }

  /** Reads `paths` as the environment variable KUBECONFIG has them; throws where that fails. */
  static async open(paths: string, options: Options): Promise<Kubeconfig> {
    const files = paths.split(delimiter).filter((file) => file !== '')
    const kubeconfig = new Kubeconfig(files, options)
    kubeconfig.#stamps = await stampOf(files)
    kubeconfig.#contexts = await readContexts(files)
    const pollMs = options.pollMs ?? 2_000
    if (pollMs > 0) {
      kubeconfig.#timer = setInterval(() => void kubeconfig.refresh(), pollMs)
      kubeconfig.#timer.unref()
    }
    return kubeconfig
  }

  names(): string[] {
    return [...this.#contexts.keys()]
  }

  context(name: string): ClusterContext | undefined {
    return this.#contexts.get(name)
  }

  /** Calls `listener` after the files changed and were read; answers how to stop. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Looks whether a file changed and reads them again if so. Never rejects. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  close(): void {
    clearInterval(this.#timer)
    this.#listeners.clear()
  }

  async #refresh(): Promise<void> {
    const stamps = await stampOf(this.#files)
    if (stamps === this.#stamps) return
    // Noted before reading: a file that changes meanwhile is read again at the next look.
    this.#stamps = stamps
    try {
      this.#contexts = await readContexts(this.#files)
    } catch (error) {
      const problem = error instanceof Error ? error : new Error(String(error))
      if (this.#problem !== problem.message) this.#options.onProblem(problem)
      this.#problem = problem.message
      this.#stamps = ''
      return
    }
    this.#problem = undefined
    for (const listener of this.#listeners) listener()
  }
}

/** Mounted secrets are swapped by a symbolic link: the inode tells that, mtime alone may not. */
async function stampOf(files: string[]): Promise<Stamp> {
  const stamps = await Promise.all(
    files.map((file) =>
      stat(file).then(
        (found) => `${found.ino}:${found.size}:${found.mtimeMs}`,
        () => 'missing',
      ),
    ),
  )
  return stamps.join(' ')
}

async function readContexts(files: string[]): Promise<Map<string, ClusterContext>> {
  const configs = await Promise.all(files.map(readConfig))
  const contexts = new Map<string, ClusterContext>()
  for (const own of configs) {
    const others = configs.filter((other) => other !== own)
    for (const { name } of own.config.getContexts()) {
      const found = contexts.has(name) ? undefined : contextIn(name, own, others)
      if (found !== undefined) contexts.set(name, found)
    }
  }
  return contexts
}

/** What client-node leaves out of a user. */
type LeftOut = { tokenFile: string | undefined; impersonation: Headers | undefined }

/** A file as client-node has it, and what that leaves out of its users, by name. */
type ReadConfig = { config: KubeConfig; folder: string; leftOut: Map<string, LeftOut> }

async function readConfig(file: string): Promise<ReadConfig> {
  const text = await readFile(file, 'utf8')
  // A file caught between truncation and writing reads as empty; that is no removal of all clusters.
  if (text.trim() === '') throw new Error(`kubeconfig ${file} is empty`)
  const config = new KubeConfig()
  try {
    config.loadFromString(text)
  } catch (cause) {
    throw new Error(`kubeconfig ${file} can't be read: ${messageOf(cause)}`, { cause })
  }
  const entries = [config.getContexts(), config.getClusters(), config.getUsers()]
  if (entries.every(({ length }) => length === 0)) throw new Error(`${file} is no kubeconfig`)
  const folder = dirname(file)
  config.makePathsAbsolute(folder)
  return { config, folder, leftOut: leftOutOf(text, folder) }
}

function leftOutOf(text: string, folder: string): Map<string, LeftOut> {
  const document = loadYaml<unknown>(text)
  const users = isRecord(document) && Array.isArray(document['users']) ? document['users'] : []
  return new Map(
    users.filter(isRecord).flatMap(({ name, user }): [string, LeftOut][] => {
      if (typeof name !== 'string' || !isRecord(user)) return []
      const file = user['tokenFile']
      const tokenFile = typeof file === 'string' ? resolve(folder, file) : undefined
      return [[name, { tokenFile, impersonation: impersonationOf(user) }]]
    }),
  )
}

/** A context with its cluster and user; undefined where the files lack one, or its URL is none. */
function contextIn(
  name: string,
  own: ReadConfig,
  others: ReadConfig[],
): ClusterContext | undefined {
  const places = [own, ...others]
  const context = own.config.getContexts().find((candidate) => candidate.name === name)
  const cluster = places
    .flatMap(({ config }) => config.getClusters())
    .find((candidate) => candidate.name === context?.cluster)
  if (context === undefined || cluster === undefined || !isHttp(cluster.server)) return undefined
  // Without a user client-node leaves out the cluster's CA too: an anonymous one has no credentials.
  const { user, tokenFile, impersonation } = context.user
    ? userIn(places, context.user)
    : { user: { name: 'anonymous' }, ...NOTHING }
  if (user === undefined || impersonation === undefined) return undefined
  const { exec, ...plain } = user
  const command = commandIn(exec)
  const content = JSON.stringify({ cluster, user, tokenFile, impersonation })
  return {
    name,
    server: cluster.server,
    proxyUrl: cluster.proxyUrl,
    tokenFile,
    impersonation,
    hasProgram: command !== undefined,
    fingerprint: createHash('sha256').update(content).digest('base64url'),
    open: () => {
      const config = new KubeConfig()
      config.loadFromOptions({
        clusters: [cluster],
        users: [command === undefined ? user : plain],
        contexts: [{ name, cluster: cluster.name, user: user.name }],
        currentContext: name,
      })
      if (command !== undefined) config.addAuthenticator(new Program(command))
      return config
    },
  }
}

const NOTHING: LeftOut = { tokenFile: undefined, impersonation: {} }

function userIn(places: ReadConfig[], name: string): LeftOut & { user?: User } {
  for (const { config, folder, leftOut } of places) {
    const found = config.getUsers().find((one) => one.name === name)
    if (found !== undefined)
      return { user: withProgram(found, folder), ...(leftOut.get(name) ?? NOTHING) }
  }
  return NOTHING
}

/** A program that is named by a path is looked for beside the file, one without in PATH. */
function withProgram(user: User, folder: string): User {
  const exec: unknown = user.exec
  const command = isRecord(exec) ? exec['command'] : undefined
  if (!isRecord(exec) || typeof command !== 'string' || !command.includes('/')) return user
  return { ...user, exec: { ...exec, command: resolve(folder, command) } }
}

function isHttp(url: string): boolean {
  return /^https?:$/.test(URL.parse(url)?.protocol ?? '')
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
