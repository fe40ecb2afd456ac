import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { binaryFolder, complete } from '../../tools/kube/binaries.mjs'
import type { ApiServer } from '../kube/server.ts'
import type { Pair } from '../kube/tls.ts'
import { Admin } from './admin.ts'
import { type Etcd, startEtcd } from './etcd.ts'
import { auditLog, freePort, startKubeApiserver } from './kubeApiserver.ts'
import { openPki, type Pki, type User } from './pki.ts'
import type { Program } from './program.ts'
import { applyCrd, crdsIn, ready, replaceCrd, served } from './readiness.ts'

export type RealApiServerOptions = {
  /** CustomResourceDefinitions as YAML, one or more documents a text. */
  crds: string[]
  /** 0 or absent: any free one. */
  port?: number
  /** Contents, certificates and logs survive here; absent: a folder that goes on close. */
  dataDir?: string
  /** Callers besides the administrator, by token; RBAC says what they may do. */
  users?: User[]
}

/** A kube-apiserver with an etcd of its own. */
export type RealApiServer = Omit<ApiServer, 'storage'> & {
  /** The file in which each answered request on objects is a line of JSON. */
  auditLog: string
  /** A client certificate for a user of this name and these groups. */
  issue(name: string, groups?: string[]): Promise<Pair>
  /** Replaces (or adds) a CRD while running; throws where it is refused. */
  setCrd(yaml: string): Promise<void>
  /** etcd forgets how things were. The API server itself remembers a while, until it restarts. */
  compact(): Promise<void>
  /**
   * Kills the API server, and starts it on the same port when `meanwhile` is over. `cold`: no kind
   * of a CRD has been asked for since. `etcd`: that one too, on the same data.
   */
  restart(
    meanwhile?: () => Promise<void>,
    options?: { cold?: boolean; etcd?: boolean },
  ): Promise<void>
  /** Process ids of both. */
  pids(): { apiserver: number; etcd: number }
}

/** Whether the binaries are on this machine. */
export const haveRealApiServer = (): boolean => complete(binaryFolder().folder)

/** Starts a real API server; throws where the binaries are missing or it can't start. */
export async function startRealApiServer(options: RealApiServerOptions): Promise<RealApiServer> {
  const { folder: binaries } = binaryFolder()
  if (!complete(binaries)) {
    throw new Error(`no kube-apiserver and etcd in ${binaries}: run npm run kube:build`)
  }
  const lasting = options.dataDir === undefined ? undefined : resolve(options.dataDir)
  const folder = lasting ?? (await mkdtemp(join(tmpdir(), 'kube-real-')))
  await mkdir(folder, { recursive: true, mode: 0o700 })
  for (const log of ['etcd.log', 'kube-apiserver.log']) await rm(join(folder, log), { force: true })
  const pki = await openPki(join(folder, 'pki'), options.users ?? [])
  const closers: (() => Promise<void>)[] = []
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer()
    if (lasting === undefined) await rm(folder, { recursive: true, force: true })
  }
  try {
    const durable = lasting !== undefined
    const beginEtcd = () => startEtcd({ binary: join(binaries, 'etcd'), folder, durable })
    let etcd = await beginEtcd()
    closers.push(() => etcd.program.stop())
    const start = (port: number) =>
      startReady({ binary: join(binaries, 'kube-apiserver'), folder, etcd, pki, port })
    let running = await start(options.port ?? 0)
    closers.push(() => running.program.stop())
    const { port } = running
    const url = `https://127.0.0.1:${port}`
    const admin = adminOf(url, pki)
    closers.push(() => admin.close())
    const crds = crdsIn(options.crds)
    await Promise.all(crds.map((crd) => applyCrd(admin, crd)))
    await served(admin, crds)
    return {
      url,
      port,
      ca: pki.authority.certificate,
      token: pki.token,
      clientCertificate: pki.admin.certificate,
      clientKey: pki.admin.key,
      auditLog: auditLog(folder),
      issue: (name, groups) => pki.authority.forClient(name, groups),
      setCrd: async (yaml) => {
        for (const crd of crdsIn([yaml])) await replaceCrd(admin, crd)
      },
      compact: async () => {
        await etcd.compact()
      },
      restart: async (meanwhile, options = {}) => {
        await running.program.stop()
        if (options.etcd) {
          await etcd.program.stop()
          etcd = await beginEtcd()
        }
        await meanwhile?.()
        running = await start(port)
        if (!options.cold) await served(admin, crds)
      },
      pids: () => ({ apiserver: running.program.pid, etcd: etcd.program.pid }),
      close,
    }
  } catch (error) {
    await close()
    throw error
  }
}

const adminOf = (url: string, pki: Pki): Admin =>
  new Admin({
    url,
    ca: pki.authority.certificate,
    clientCertificate: pki.admin.certificate,
    clientKey: pki.admin.key,
  })

/** Starts kube-apiserver and waits until it is ready. */
async function startReady(options: {
  binary: string
  folder: string
  etcd: Etcd
  pki: Pki
  port: number
}): Promise<{ program: Program; port: number }> {
  // A free port may be taken by somebody else before kube-apiserver listens there: then another one.
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port || (await freePort())
    const program = await startKubeApiserver({ ...options, etcd: options.etcd.endpoint, port })
    const admin = adminOf(`https://127.0.0.1:${port}`, options.pki)
    const failure = await ready(admin, program)
    await admin.close()
    if (failure === undefined) return { program, port }
    await program.stop()
    const taken = await freePort(port).then(
      () => false,
      () => true,
    )
    if (options.port || !taken || attempt === 3) {
      throw new Error(`kube-apiserver didn't start: ${failure}`)
    }
  }
}
