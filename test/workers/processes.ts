import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import type { RunningCluster, RunningFleet } from '../../dev/fleet/fleet.ts'
import type { RealApiServer } from '../../dev/kube-real/server.ts'
import type { Resource } from '../../src/rules/objects.ts'
import type { Workers } from '../../src/workers/workers.ts'
import { base64, kubeconfigText } from '../clusters/kubeconfigs.ts'
import { bareEnvironment } from '../support/environment.ts'
import type { Whereabouts } from '../support/installation.ts'

const program = fileURLToPath(new URL('../../dev/worker.ts', import.meta.url))
const pausing = new URL('./pausing.ts', import.meta.url).href

/** A call that wrote, as the API server logged it; times in ms. */
export type Write = {
  user: string
  verb: string
  name: string
  begun: number
  ended: number
  code: number
}

/** Workers in processes of their own. Each calls under a name of its own, by which audit logs tell them apart. */
export class WorkerProcesses {
  readonly #users: string[]
  readonly #processes = new Map<string, ChildProcess>()
  #folder = ''
  #where: Whereabouts | undefined

  constructor(users: string[]) {
    this.#users = users
  }

  /** Gives each a user in every cluster. Answers the administrator's kubeconfig. */
  async prepare(fleet: RunningFleet<RealApiServer>): Promise<string> {
    this.#folder = await mkdtemp(join(tmpdir(), 'processes-'))
    for (const user of this.#users) {
      const entries = [...fleet.clusters].map(async ([name, { server }]) => {
        const { certificate, key } = await server.issue(user, ['system:masters'])
        const entry = {
          server: server.url,
          cluster: { 'certificate-authority-data': base64(server.ca) },
          user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) },
        }
        return [name, entry] as const
      })
      await writeFile(
        join(this.#folder, user),
        kubeconfigText(Object.fromEntries(await Promise.all(entries))),
      )
    }
    return fleet.kubeconfig
  }

  /** Starts all of them. */
  start(where: Whereabouts): Workers {
    this.#where = where
    for (const user of this.#users) this.run(user)
    return { renew: async () => undefined, close: () => this.#end() }
  }

  /** The kubeconfig of one of them. */
  kubeconfig(user: string): string {
    return join(this.#folder, user)
  }

  run(user: string): void {
    if (this.#where === undefined) throw new Error('nothing was started')
    const child = fork(program, [this.#where.addressMap], {
      execArgv: ['--import', pausing],
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      env: {
        ...bareEnvironment(),
        DATABASE_URL: this.#where.databaseUrl,
        KUBECONFIG: this.kubeconfig(user),
        METRICS_PORT: '0',
        LOG_LEVEL: 'silent',
        PAUSE_FILE: this.#pauseFile(user),
      },
    })
    this.#processes.set(user, child)
  }

  /** Has one stop when its next write of a kind is answered, before it does anything else; answers how to wait for that. */
  async pauseAfter(user: string, { plural }: Resource): Promise<() => Promise<void>> {
    const file = this.#pauseFile(user)
    await writeFile(`${file}.new`, plural)
    await rename(`${file}.new`, file)
    return () => expect.poll(() => existsSync(file)).toBe(false)
  }

  of(user: string): ChildProcess | undefined {
    return this.#processes.get(user)
  }

  signal(user: string, what: NodeJS.Signals): void {
    this.#processes.get(user)?.kill(what)
  }

  /** What they wrote to objects of a cluster, in the order it began. */
  async writesIn({ server }: Pick<RunningCluster<RealApiServer>, 'server'>): Promise<Write[]> {
    return (await readFile(server.auditLog, 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line): AuditLine => JSON.parse(line))
      .filter(({ user, verb }) => this.#users.includes(user.username) && /patch|delete/.test(verb))
      .map(
        ({ user, verb, objectRef, requestReceivedTimestamp, stageTimestamp, responseStatus }) => ({
          user: user.username,
          verb,
          name: objectRef.name,
          begun: Date.parse(requestReceivedTimestamp),
          ended: Date.parse(stageTimestamp),
          code: responseStatus.code,
        }),
      )
      .toSorted((a, b) => a.begun - b.begun)
  }

  /** After the last test. */
  forget(): Promise<void> {
    return rm(this.#folder, { recursive: true })
  }

  #pauseFile(user: string): string {
    return join(this.#folder, `${user}.pause`)
  }

  async #end(): Promise<void> {
    const running = [...this.#processes.values()].filter((child) => child.exitCode === null)
    const ended = running
      .filter((child) => child.signalCode === null)
      .map((child) => once(child, 'exit'))
    for (const child of running) child.kill('SIGKILL')
    await Promise.all(ended)
  }
}

type AuditLine = {
  user: { username: string }
  verb: string
  objectRef: { name: string }
  responseStatus: { code: number }
  requestReceivedTimestamp: string
  stageTimestamp: string
}
