import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose'

/** Only signatures that nobody but the issuer can make: neither `none` nor shared secrets. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
]
/** Clocks of the issuer and ours may differ by this much, in seconds. */
export const CLOCK_TOLERANCE = 30
/** A token that was good is taken for good for this long, in milliseconds: keys may be withdrawn. */
const REMEMBERED = 30_000
const MOST_REMEMBERED = 10_000

/** What a token that was verified says. */
export type Token = {
  /** The token itself. */
  text: string
  subject: string
  email: string | null
  /** In milliseconds since 1970. */
  expiresAt: number
  claims: JWTPayload
}

export type TokensOptions = {
  issuer: string
  audience: string
  keys: JWTVerifyGetKey
  /** Milliseconds since 1970. */
  now?: () => number
}

/** Verifies bearer tokens of one issuer for one audience. */
export class Tokens {
  readonly #options: TokensOptions
  readonly #now: () => number
  /** In the order they were verified. */
  readonly #remembered = new Map<string, { token: Token; until: number }>()

  constructor(options: TokensOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** The token, or null when it isn't good; throws when that can't be told. Mostly at once: clients send the same again. */
  verify(text: string): Token | null | Promise<Token | null> {
    const known = this.#remembered.get(text)
    return known !== undefined && this.#now() < known.until ? known.token : this.#verify(text)
  }

  async #verify(text: string): Promise<Token | null> {
    const { issuer, audience, keys } = this.#options
    let payload: JWTPayload
    try {
      const verified = await jwtVerify(text, keys, {
        issuer,
        audience,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE,
        currentDate: new Date(this.#now()),
        requiredClaims: ['sub', 'exp'],
      })
      payload = verified.payload
    } catch (error) {
      if (error instanceof errors.JOSEError) return null
      throw error
    }
    const { sub, exp, email } = payload
    if (typeof sub !== 'string' || sub === '' || exp === undefined) return null
    const token = {
      text,
      subject: sub,
      email: typeof email === 'string' ? email : null,
      expiresAt: (exp + CLOCK_TOLERANCE) * 1_000,
      claims: payload,
    }
    this.#remember(token)
    return token
  }

  #remember(token: Token): void {
    // The first is the one that was verified longest ago.
    this.#remembered.delete(token.text)
    if (this.#remembered.size >= MOST_REMEMBERED) {
      const [oldest] = this.#remembered.keys()
      if (oldest !== undefined) this.#remembered.delete(oldest)
    }
    const until = Math.min(token.expiresAt, this.#now() + REMEMBERED)
    this.#remembered.set(token.text, { token, until })
  }
}
