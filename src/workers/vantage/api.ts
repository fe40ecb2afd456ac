/** One address and port that clients connect to by TCP. */
export type Target = { address: string; port: number }

/** What came of trying one; `at` in RFC 3339. */
export type Result = Target & { reachable: boolean; message: string | null; at: string }

/** The operators' API, as a vantage point uses it. */
export type VantageApi = {
  targets(signal: AbortSignal): Promise<Target[]>
  /** Answers how many of them were news. */
  report(vantage: string, results: Result[], signal: AbortSignal): Promise<number>
}

/** An answer that takes longer (ms) is none. */
const PATIENCE = 10_000
/** The API takes in so many at once. */
const AT_ONCE = 1_000

const LIST = `query Targets($after: String) {
  loadBalancers(first: 100, after: $after) {
    nodes { protocolName deletingSince ports { from } addresses { address } }
    pageInfo { hasNextPage endCursor }
  }
}`
const REPORT = `mutation Report($input: ReportReachabilityInput!) {
  reportReachability(input: $input) {
    ... on ReportReachabilityPayload { accepted }
    ... on UserError { code message path }
  }
}`

type Page = {
  loadBalancers: {
    nodes: {
      protocolName: string
      deletingSince: string | null
      ports: { from: number }[]
      addresses: { address: string }[]
    }[]
    pageInfo: { hasNextPage: boolean; endCursor: string | null }
  }
}
type Reported = {
  reportReachability:
    | { accepted: number }
    | { code: string; message: string; path: string[]; accepted?: undefined }
    | null
}

/** The API at a URL, with a token where it needs one. Whatever isn't an answer is thrown. */
export const vantageApi = (url: string, token: string | undefined): VantageApi => {
  const ask = async <T>(query: string, variables: object, signal: AbortSignal): Promise<T> => {
    const response = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/graphql-response+json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify({ query, variables }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE)]),
    })
    const answer = (await response.json()) as { data?: T | null; errors?: { message: string }[] }
    const [error] = answer.errors ?? []
    if (error !== undefined || !answer.data) {
      throw new Error(`${url} answered ${response.status}: ${error?.message ?? 'no data'}`)
    }
    return answer.data
  }
  return {
    async targets(signal) {
      const targets: Target[] = []
      let after: string | null = null
      do {
        const page: Page = await ask<Page>(LIST, { after }, signal)
        targets.push(...page.loadBalancers.nodes.flatMap(targetsOf))
        const { hasNextPage, endCursor } = page.loadBalancers.pageInfo
        after = hasNextPage ? endCursor : null
      } while (after !== null)
      return targets
    },
    async report(vantage, results, signal) {
      let accepted = 0
      for (let from = 0; from < results.length; from += AT_ONCE) {
        const input = { vantage, results: results.slice(from, from + AT_ONCE) }
        const { reportReachability: told } = await ask<Reported>(REPORT, { input }, signal)
        if (told?.accepted === undefined) {
          throw new Error(`a report was refused: ${told?.code} ${told?.message} ${told?.path}`)
        }
        accepted += told.accepted
      }
      return accepted
    },
  }
}

/** UDP can't be tried: whoever doesn't answer may well be there. */
const targetsOf = (node: Page['loadBalancers']['nodes'][number]): Target[] => {
  const { protocolName, deletingSince, ports, addresses } = node
  if (protocolName !== 'TCP' || deletingSince !== null) return []
  return addresses.flatMap(({ address }) => ports.map(({ from: port }) => ({ address, port })))
}
