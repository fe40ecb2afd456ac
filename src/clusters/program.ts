import { type ChildProcessByStdio, spawn } from 'node:child_process'
import type { Readable } from 'node:stream'
import { isRecord } from './failure.ts'

/** It may wait for somebody to type, or for a server that is gone: so long (ms). */
const DEADLINE = 8_000
/** More than any credential (characters). */
const MOST_SAID = 1_000_000

/** What a kubeconfig's `exec` names. */
export type Command = { command: string; args: string[]; env: Record<string, string> }

type Credential = { token?: string; cert?: string; key?: string; expires?: number }
/** What credentials are put into, as client-node has it. */
type Options = { cert?: unknown; key?: unknown; headers?: unknown }

/** The command in a kubeconfig's `exec`; undefined where there is none. */
export function commandIn(exec: unknown): Command | undefined {
  if (!isRecord(exec) || typeof exec['command'] !== 'string') return undefined
  const { command, args, env } = exec
  const pairs = (Array.isArray(env) ? env : []).flatMap((one: unknown) =>
    isRecord(one) ? [[String(one['name']), String(one['value'])] as const] : [],
  )
  return {
    command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: Object.fromEntries(pairs),
  }
}

/**
 * Credentials that a program hands out, kept for as long as it says that they are good. client-node has
 * the same, but waits for its program for ever. One that takes too long is killed, with what it started.
 */
export class Program {
  readonly #command: Command
  readonly #deadline: number
  #kept: Credential | undefined

  constructor(command: Command, deadline = DEADLINE) {
    this.#command = command
    this.#deadline = deadline
  }

  /** For client-node: a KubeConfig that holds one of these has one user. */
  isAuthProvider(): boolean {
    return true
  }

  async applyAuthentication(_user: unknown, options: Options): Promise<void> {
    const { token, cert, key } = await this.credential()
    if (cert !== undefined) options.cert = cert
    if (key !== undefined) options.key = key
    if (token === undefined) return
    const headers = isRecord(options.headers) ? options.headers : {}
    options.headers = Object.assign(headers, { Authorization: `Bearer ${token}` })
  }

  /** Rejects where the program fails, says something else, or takes too long. */
  async credential(): Promise<Credential> {
    const { expires = Number.POSITIVE_INFINITY } = this.#kept ?? { expires: 0 }
    if (this.#kept !== undefined && expires > Date.now()) return this.#kept
    const said = await run(this.#command, this.#deadline)
    this.#kept = credentialIn(said, this.#command.command)
    return this.#kept
  }
}

function run({ command, args, env }: Command, deadline: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, which is killed as one: what it started would hold its output open.
      detached: process.platform !== 'win32',
    })
    const said = { out: '', error: '' }
    const end = (outcome: Error | string) => {
      clearTimeout(timer)
      if (typeof outcome === 'string') resolve(outcome)
      else reject(outcome)
    }
    const giveUp = (why: string) => {
      kill(child)
      child.stdout.destroy()
      child.stderr.destroy()
      end(new Error(`${command} ${why}, and was killed`))
    }
    const timer = setTimeout(() => giveUp(`took longer than ${deadline} ms`), deadline)
    for (const [name, stream] of [
      ['out', child.stdout],
      ['error', child.stderr],
    ] as const) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        said[name] += text
        if (said[name].length > MOST_SAID) giveUp('said too much')
      })
    }
    child.once('error', (cause) => end(new Error(`${command} can't be run`, { cause })))
    child.once('close', (code, signal) => {
      const error = said.error.trim().slice(0, 1_000)
      end(code === 0 ? said.out : new Error(`${command} ended with ${code ?? signal}: ${error}`))
    })
  })
}

function kill(child: ChildProcessByStdio<null, Readable, Readable>): void {
  try {
    if (child.pid !== undefined && process.platform !== 'win32') process.kill(-child.pid, 'SIGKILL')
    else child.kill('SIGKILL')
  } catch (error) {
    // It ended in this moment.
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

function credentialIn(said: string, command: string): Credential {
  let parsed: unknown
  try {
    parsed = JSON.parse(said)
  } catch (cause) {
    throw new Error(`${command} said something else than JSON`, { cause })
  }
  const status = isRecord(parsed) ? parsed['status'] : undefined
  if (!isRecord(status)) throw new Error(`${command} handed out no credential`)
  const text = (name: string): string | undefined => {
    const value = status[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const [token, cert, key] = [text('token'), text('clientCertificateData'), text('clientKeyData')]
  const expires = Date.parse(text('expirationTimestamp') ?? '')
  return {
    ...(token === undefined ? {} : { token }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(Number.isNaN(expires) ? {} : { expires }),
  }
}
