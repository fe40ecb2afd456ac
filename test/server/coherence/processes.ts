import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { bareEnvironment } from '../../support/environment.ts'
import { AUDIENCE, type Issuer } from '../identity/issuer.ts'

const main = new URL('../../../src/server/main.ts', import.meta.url).pathname

/** An API process as production runs it, on a free port; it can be killed and started again. */
export class ApiProcess {
  readonly #environment: Record<string, string>
  #child: ChildProcess | undefined
  /** Where it listens; 0: nowhere. */
  port = 0

  constructor(databaseUrl: string, issuer: Issuer) {
    this.#environment = {
      ...bareEnvironment(),
      ...{ PORT: '0', HOST: '127.0.0.1', METRICS_PORT: '0' },
      ...{ DATABASE_URL: databaseUrl, OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE },
    }
  }

  async start(): Promise<void> {
    const child = spawn(process.execPath, [main], {
      env: this.#environment,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#child = child
    const lines = createInterface(child.stdout)
    const listening = new Promise<number>((resolve, reject) => {
      lines.on('line', (line) => {
        const { url } = JSON.parse(line)
        if (typeof url === 'string') resolve(Number(new URL(url).port))
      })
      child.once('exit', () => reject(new Error('the API ended without listening')))
    })
    this.port = await listening
  }

  async kill(): Promise<void> {
    const child = this.#child
    this.#child = undefined
    this.port = 0
    if (child === undefined) return
    const ended = once(child, 'exit')
    child.kill('SIGKILL')
    await ended
  }
}

/** One address for several processes: each connection goes to the next one that listens. */
export async function balance(processes: readonly { port: number }[]) {
  const open = new Set<Socket>()
  let turn = 0
  const server = createServer((client) => {
    const listening = processes.filter(({ port }) => port > 0)
    const target = connect(listening[turn % listening.length]?.port ?? 0, '127.0.0.1')
    turn += 1
    for (const [one, other] of [
      [client, target],
      [target, client],
    ] as const) {
      open.add(one)
      one.on('error', () => undefined)
      one.once('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
    client.pipe(target).pipe(client)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('it does not listen')
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close(): Promise<void> {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of open) socket.destroy()
      await closed
    },
  }
}
