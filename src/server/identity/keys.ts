import { createLocalJWKSet, errors, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose'

/** Keys are fetched anew when they are this old, in milliseconds: withdrawn ones must go. */
const FRESH = 600_000
/** An unknown key makes us look for it at most this often, or made-up ones would flood the issuer. */
const COOL_DOWN = 10_000
const TIMEOUT = 5_000

/** The issuer can't be asked, so whether the token is good can't be told. */
export class IssuerUnreachable extends Error {
  override readonly name = 'IssuerUnreachable'
}

export type IssuerKeysOptions = {
  /** As in its tokens, e.g. `https://auth.example.com`. */
  issuer: string
  /** Where its keys are; its discovery document tells where nothing is given. */
  jwksUrl?: string | undefined
  onError: (error: unknown) => void
  /** Milliseconds since 1970. */
  now?: () => number
}

/**
 * The public keys of an issuer. Those that are known stay in use while it can't be reached; one that
 * isn't known is looked for.
 */
export class IssuerKeys {
  readonly #options: IssuerKeysOptions
  readonly #now: () => number
  #keys: ReturnType<typeof createLocalJWKSet> | undefined
  #fetching: Promise<boolean> | undefined
  #triedAt = Number.NEGATIVE_INFINITY
  #fetchedAt = Number.NEGATIVE_INFINITY
  #reached = false

  constructor(options: IssuerKeysOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** The key that a token says it is signed with. */
  readonly get: JWTVerifyGetKey = async (header, token) => {
    const known = this.#keys
    if (known !== undefined) {
      if (this.#now() - this.#fetchedAt > FRESH && !this.#isCoolingDown()) void this.#fetch()
      try {
        return await known(header, token)
      } catch (error) {
        if (!(error instanceof errors.JWKSNoMatchingKey)) throw error
      }
    }
    if (!this.#isCoolingDown()) await this.#fetch()
    else await this.#fetching
    if (this.#keys === undefined || !this.#reached) {
      throw new IssuerUnreachable('the keys of the issuer could not be fetched')
    }
    return this.#keys(header, token)
  }

  #isCoolingDown(): boolean {
    return this.#fetching !== undefined || this.#now() - this.#triedAt < COOL_DOWN
  }

  #fetch(): Promise<boolean> {
    this.#triedAt = this.#now()
    this.#fetching ??= this.#read()
      .then(
        (keys) => {
          this.#keys = createLocalJWKSet(keys)
          this.#fetchedAt = this.#now()
          return true
        },
        (error) => {
          this.#options.onError(error)
          return false
        },
      )
      .then((reached) => {
        this.#reached = reached
        this.#fetching = undefined
        return reached
      })
    return this.#fetching
  }

  async #read(): Promise<JSONWebKeySet> {
    const { issuer, jwksUrl } = this.#options
    let url = jwksUrl
    if (url === undefined) {
      const base = issuer.endsWith('/') ? issuer.slice(0, -1) : issuer
      const found = await readJson(`${base}/.well-known/openid-configuration`)
      // OpenID Connect Discovery 1.0, 4.3: it has to be the issuer's own.
      if (found['issuer'] !== issuer) throw new Error(`${base} speaks for another issuer`)
      url = String(found['jwks_uri'])
    }
    const { keys } = await readJson(url)
    if (!Array.isArray(keys)) throw new Error(`${url} holds no keys`)
    return { keys }
  }
}

async function readJson(url: string): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    headers: { accept: 'application/json' },
    redirect: 'error',
    signal: AbortSignal.timeout(TIMEOUT),
  })
  if (!response.ok) throw new Error(`${url} answers ${response.status}`)
  const body: unknown = await response.json()
  if (typeof body !== 'object' || body === null) throw new Error(`${url} is no JSON object`)
  return { ...body }
}
