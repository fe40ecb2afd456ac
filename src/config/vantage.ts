import { ConfigurationError, secureUrl, wholeNumber } from './environment.ts'

/** What a vantage point is told by environment variables. */
export type VantageEnvironment = {
  /** The operators' endpoint: it lists the load balancers of all projects, and takes in what is found. */
  apiUrl: string
  /** Undefined only on this machine, where the demo needs none. */
  apiToken: string | undefined
  /** Names this vantage point; each has results of its own. */
  name: string
  intervalSeconds: number
}

/** A result counts for a minute: three rounds at the least. */
const SLOWEST = 20
const INTERVAL = 15

/** Reads the environment of a vantage point. An empty variable counts as not set. */
export function readVantageEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
): VantageEnvironment {
  const get = (name: string): string | undefined => variables[name]?.trim() || undefined
  const apiUrl = secureUrl('API_URL', get('API_URL'))
  if (apiUrl === undefined) {
    throw new ConfigurationError('API_URL', "the operators' endpoint, https://…/graphql")
  }
  const apiToken = get('API_TOKEN')
  if (apiToken === undefined && new URL(apiUrl).protocol === 'https:') {
    throw new ConfigurationError(
      'API_TOKEN',
      'a token that may list load balancers and report reachability',
    )
  }
  const name = get('VANTAGE')
  if (name === undefined || !/^[!-~]{1,63}$/.test(name)) {
    throw new ConfigurationError(
      'VANTAGE',
      'a name of 1 to 63 visible ASCII characters that no other vantage point has',
      name,
    )
  }
  const seconds = get('VANTAGE_INTERVAL_SECONDS')
  return {
    apiUrl,
    apiToken,
    name,
    intervalSeconds: wholeNumber('VANTAGE_INTERVAL_SECONDS', seconds, 1, SLOWEST) ?? INTERVAL,
  }
}
