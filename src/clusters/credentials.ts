import { readFile } from 'node:fs/promises'
import type { RequestOptions } from 'node:https'
import type { SecureContextOptions } from 'node:tls'
import type { Clock } from './clock.ts'
import { onTheWire } from './impersonation.ts'
import type { ClusterContext } from './kubeconfig.ts'

export type Tls = Pick<SecureContextOptions, 'ca' | 'cert' | 'key' | 'pfx' | 'passphrase'> & {
  servername?: string
  rejectUnauthorized?: boolean
}

/** What a connection to one server needs: TLS for the socket, headers for each request. */
export type Access = {
  tls: Tls
  headers: Record<string, string | string[]>
  /** Equal for equal `tls`: whether open connections may still be used. */
  tlsKey: string
}

/** Certificates, keys and tokens on disk rotate; this often they are read again. */
const FRESH_MS = 10_000
/** A file may be on a disk that hangs. Longer than a program may take, which says so itself. */
const READ_DEADLINE_MS = 9_000

/** The credentials of one context, read by client-node and remembered for a few seconds. */
export class Credentials {
  readonly #context: ClusterContext
  readonly #clock: Clock
  readonly #freshMs: number
  #config
  #readAt = Number.NEGATIVE_INFINITY
  #renewedAt = Number.NEGATIVE_INFINITY
  #renewals = 0
  #access: Promise<Access> | undefined
  /** While it is read: those who call meanwhile don't run a program each. */
  #reading = false

  constructor(context: ClusterContext, clock: Clock) {
    this.#context = context
    this.#clock = clock
    this.#config = context.open()
    // What a program said is remembered for as long as that is good, which is known there.
    this.#freshMs = context.hasProgram ? 0 : FRESH_MS
  }

  /** How often they were renewed. */
  get renewals(): number {
    return this.#renewals
  }

  /** Rejects where a file is missing or a program fails; the next call tries again. */
  access(): Promise<Access> {
    const isStale = !this.#reading && this.#clock.now() - this.#readAt > this.#freshMs
    if (this.#access === undefined || isStale) {
      this.#readAt = this.#clock.now()
      this.#reading = true
      const reading = readAccess(this.#config, this.#context)
      this.#access = reading
      const ended = (failed: boolean) => {
        if (this.#access !== reading) return
        this.#reading = false
        if (failed) this.#access = undefined
      }
      reading.then(
        () => ended(false),
        () => ended(true),
      )
    }
    return this.#access
  }

  /**
   * After a 401 to a call that began when there had been `since` renewals: whether another try may go
   * better. Tokens that client-node remembers are forgotten, unless another call had them forgotten
   * meanwhile, or that was a moment ago: a user who has been removed runs no programs all day.
   */
  renew(since: number): boolean {
    if (this.#renewals > since) return true
    if (this.#clock.now() - this.#renewedAt < FRESH_MS) return false
    this.#renewedAt = this.#clock.now()
    this.#renewals += 1
    this.#config = this.#context.open()
    this.#access = undefined
    return true
  }
}

async function readAccess(
  config: ReturnType<ClusterContext['open']>,
  context: ClusterContext,
): Promise<Access> {
  const options: RequestOptions = {}
  await within(config.applyToHTTPSOptions(options), context)
  const { ca, cert, key, pfx, passphrase, servername, rejectUnauthorized } = options
  const tls: Tls = {}
  if (ca !== undefined) tls.ca = ca
  if (cert !== undefined) tls.cert = cert
  if (key !== undefined) tls.key = key
  if (pfx !== undefined) tls.pfx = pfx
  if (passphrase !== undefined) tls.passphrase = passphrase
  if (servername !== undefined) tls.servername = servername
  if (rejectUnauthorized !== undefined) tls.rejectUnauthorized = rejectUnauthorized
  const headers: Access['headers'] = { ...context.impersonation }
  for (const [name, value] of Object.entries(options.headers ?? {})) {
    // Token files end in a newline, which no header may hold. To act as nobody is to act as oneself.
    if (typeof value === 'string' && value !== '')
      headers[name.toLowerCase()] = onTheWire(value.trim())
  }
  if (options.auth)
    headers['authorization'] = `Basic ${Buffer.from(options.auth).toString('base64')}`
  if (context.tokenFile !== undefined) {
    const token = (await readFile(context.tokenFile, 'utf8')).trim()
    // Caught between truncation and writing.
    if (token === '') throw new Error(`the token file of context ${context.name} is empty`)
    headers['authorization'] = `Bearer ${token}`
  }
  return { tls, headers, tlsKey: JSON.stringify(tls) }
}

async function within(reading: Promise<void>, context: ClusterContext): Promise<void> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new Error(`credentials of context ${context.name} took too long`)),
    READ_DEADLINE_MS,
  )
  try {
    await Promise.race([reading, promise])
  } finally {
    clearTimeout(timer)
  }
}
