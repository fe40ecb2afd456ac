import { isIP } from 'node:net'

/** What the processes are told by environment variables; read once, at start. */
export type Environment = Readonly<{
  /** Where the API listens; 0 is a free port. */
  port: number
  /** Undefined where the process is to choose by what it is. */
  host: string | undefined
  /** Metrics, liveness and readiness; 0 is off; undefined: the process's own default. */
  metricsPort: number | undefined
  /** PostgreSQL; undefined only where nothing is set, see `requireDatabaseUrl`. */
  databaseUrl: string | undefined
  /** Files, as `KUBECONFIG` lists them. */
  kubeconfig: readonly string[]
  /** Origins of pages that may call; none by default. */
  corsOrigins: readonly string[]
  logLevel: LogLevel
  eventRetentionDays: number
  introspection: boolean
  /** Who issues the tokens of callers, for what audience, and where its keys are unless it says so itself. */
  oidcIssuer: string | undefined
  oidcAudience: string | undefined
  oidcJwksUrl: string | undefined
  /** Where permissions come from: the tokens' claims, or reviews by the platform's API at the URL. */
  authz: 'claims' | 'sar'
  authzKubeUrl: string | undefined
  /** A file with documents that clients may name instead of sending them. */
  persistedDocuments: string | undefined
  /** Addresses and prefixes of proxies whose forwarding headers are believed. */
  trustedProxies: readonly string[]
}>

const logLevels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const

export type LogLevel = (typeof logLevels)[number]

/** A wrong or missing variable; `message` is one line that names it and says what is expected. */
export class ConfigurationError extends Error {
  override readonly name = 'ConfigurationError'

  constructor(variable: string, expected: string, found?: string) {
    super(
      `${variable}: expected ${expected}${found === undefined ? '' : `, found ${quote(found)}`}`,
    )
  }
}

type Variables = Readonly<Record<string, string | undefined>>

/** Reads the environment. An empty variable counts as not set. */
export function readEnvironment(variables: Variables): Environment {
  const get = (name: string): string | undefined => variables[name]?.trim() || undefined
  const list = (name: string, separator: string): string[] =>
    (get(name) ?? '')
      .split(separator)
      .map((item) => item.trim())
      .filter((item) => item !== '')
  return Object.freeze({
    port: wholeNumber('PORT', get('PORT'), 0, 65_535) ?? 4_000,
    host: get('HOST'),
    metricsPort: wholeNumber('METRICS_PORT', get('METRICS_PORT'), 0, 65_535),
    databaseUrl: databaseUrl(get('DATABASE_URL')),
    kubeconfig: Object.freeze(list('KUBECONFIG', process.platform === 'win32' ? ';' : ':')),
    corsOrigins: Object.freeze(list('CORS_ORIGINS', ',').map(origin)),
    logLevel: oneOf('LOG_LEVEL', get('LOG_LEVEL'), logLevels) ?? 'info',
    eventRetentionDays:
      wholeNumber('EVENT_RETENTION_DAYS', get('EVENT_RETENTION_DAYS'), 1, 36_500) ?? 90,
    introspection: oneOf('INTROSPECTION', get('INTROSPECTION'), ['on', 'off']) !== 'off',
    oidcIssuer: secureUrl('OIDC_ISSUER', get('OIDC_ISSUER')),
    oidcAudience: get('OIDC_AUDIENCE'),
    oidcJwksUrl: secureUrl('OIDC_JWKS_URL', get('OIDC_JWKS_URL')),
    authz: oneOf('AUTHZ', get('AUTHZ'), ['claims', 'sar']) ?? 'claims',
    authzKubeUrl: secureUrl('AUTHZ_KUBE_URL', get('AUTHZ_KUBE_URL')),
    persistedDocuments: get('PERSISTED_DOCUMENTS'),
    trustedProxies: Object.freeze(list('TRUSTED_PROXY', ',').map(proxy)),
  })
}

/** The URL of PostgreSQL, where a process can't do without. */
export function requireDatabaseUrl(environment: Pick<Environment, 'databaseUrl'>): string {
  const { databaseUrl: url } = environment
  if (url === undefined) throw new ConfigurationError('DATABASE_URL', databaseUrlForm)
  return url
}

/** Who may call, where a process can't do without knowing. */
export type IdentityProvider = {
  issuer: string
  audience: string
  jwksUrl: string | undefined
  /** The platform's API, where permissions come from its reviews. */
  reviewsUrl: string | undefined
}

/** The identity provider; nobody is served who isn't known. */
export function requireIdentityProvider(environment: Environment): IdentityProvider {
  const { oidcIssuer: issuer, oidcAudience: audience, oidcJwksUrl: jwksUrl } = environment
  const { authz, authzKubeUrl } = environment
  if (issuer === undefined) throw new ConfigurationError('OIDC_ISSUER', urlForm)
  if (audience === undefined) {
    throw new ConfigurationError('OIDC_AUDIENCE', 'the audience that tokens for this API name')
  }
  if (authz === 'claims') return { issuer, audience, jwksUrl, reviewsUrl: undefined }
  if (authzKubeUrl === undefined) {
    throw new ConfigurationError('AUTHZ_KUBE_URL', `${urlForm}, since AUTHZ is sar`)
  }
  return { issuer, audience, jwksUrl, reviewsUrl: authzKubeUrl }
}

/**
 * Runs a process's main; of a `ConfigurationError` only the line is printed, with exit code 1.
 * Any other failure is a bug and shown whole.
 */
export async function orExplain(main: () => Promise<void>): Promise<void> {
  try {
    await main()
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    console.error(error.message)
    process.exitCode = 1
  }
}

const databaseUrlForm = 'a URL like postgres://user:password@host:5432/database'

function databaseUrl(value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  // What was found isn't repeated: it may hold a password.
  const protocol = URL.canParse(value) ? new URL(value).protocol : ''
  if (protocol !== 'postgres:' && protocol !== 'postgresql:') {
    throw new ConfigurationError('DATABASE_URL', databaseUrlForm)
  }
  return value
}

const urlForm = 'a URL like https://auth.example.com (http only on this machine)'

/** A URL that tokens and keys go over: a wrong one is a `ConfigurationError`. */
export function secureUrl(variable: string, value: string | undefined): string | undefined {
  if (value === undefined) return undefined
  const url = URL.canParse(value) ? new URL(value) : undefined
  const local = /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(url?.hostname ?? '')
  const secure = url?.protocol === 'https:' || (url?.protocol === 'http:' && local)
  const plain = url?.search === '' && url.hash === '' && url.username === ''
  if (secure && plain) return value
  // It may hold a password, so it isn't repeated.
  throw new ConfigurationError(variable, urlForm, url?.username === '' ? value : undefined)
}

/** A whole number within bounds; undefined where nothing is set. */
export function wholeNumber(
  variable: string,
  value: string | undefined,
  least: number,
  most: number,
): number | undefined {
  if (value === undefined) return undefined
  const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
  if (number >= least && number <= most) return number
  throw new ConfigurationError(variable, `a whole number from ${least} to ${most}`, value)
}

function oneOf<T extends string>(
  variable: string,
  value: string | undefined,
  choices: readonly T[],
): T | undefined {
  if (value === undefined) return undefined
  const choice = choices.find((candidate) => candidate === value)
  if (choice !== undefined) return choice
  throw new ConfigurationError(variable, `one of ${choices.join(', ')}`, value)
}

/** An origin as browsers send it: scheme, host and port, in lower case and nothing after. */
function origin(value: string): string {
  const url = URL.canParse(value) ? new URL(value) : undefined
  const web = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (url !== undefined && web && url.origin === value) return value
  const expected = 'origins like https://portal.example.com (no path, no *), separated by commas'
  throw new ConfigurationError('CORS_ORIGINS', expected, value)
}

function proxy(value: string): string {
  const [address = '', length, ...rest] = value.split('/')
  // A zone means something on one machine only, and isIP takes it.
  const bits = address.includes('%') ? -1 : ({ 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1)
  const prefix = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits)
  if (bits > 0 && prefix && rest.length === 0) return value
  const expected = 'addresses or prefixes like 10.0.0.0/8, separated by commas'
  throw new ConfigurationError('TRUSTED_PROXY', expected, value)
}

/** One line, whatever was found. */
function quote(found: string): string {
  return JSON.stringify(found.length > 80 ? `${found.slice(0, 80)}…` : found)
}
