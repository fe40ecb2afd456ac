import type { Store } from '../../db/client.ts'
import { type Checked, invalidValues, isValid, type ValidationIssue } from '../input.ts'
import { refoldContradicted } from '../reachability/refold.ts'
import { type Refusal, ValidationFailed } from '../refusals.ts'

export type ReachabilityResult = {
  address: Checked<string>
  port: Checked<number>
  reachable: boolean
  message?: string | null | undefined
  at: Checked<string>
}

/** More than one round of any vantage point; larger reports come in parts. */
const MOST_RESULTS = 1_000
/** Clocks differ; what comes from further ahead (ms) is no observation. */
const AHEAD = 60_000
const LONGEST_MESSAGE = 1_000

/**
 * Takes in what a vantage point outside found. Of each address and port the newest result stays, whatever
 * order they come in. Where the status of a load balancer says something else, it is folded anew. Answers
 * how many were news.
 */
export async function reportReachability(
  store: Store,
  report: { vantage: string; results: ReachabilityResult[] },
  now: Date,
): Promise<{ accepted: number } | Refusal> {
  const { vantage, results } = report
  const issues = [...invalidValues({ results }), ...issuesOf(report, now)]
  if (issues.length > 0 || !isValid(results)) return new ValidationFailed(issues)
  const { rowCount } = await store.pool.query(
    `INSERT INTO reachability (vantage, address, port, reachable, message, at)
     SELECT DISTINCT ON (result.address, result.port) $1, result.address, result.port, result.reachable, result.message, result.at
     FROM jsonb_to_recordset($2) AS result (address inet, port integer, reachable boolean, message text, at timestamptz)
     ORDER BY result.address, result.port, result.at DESC
     ON CONFLICT (vantage, address, port) DO UPDATE
     SET reachable = excluded.reachable, message = excluded.message, at = excluded.at
     WHERE reachability.at < excluded.at`,
    [vantage, JSON.stringify(results)],
  )
  await refoldContradicted(store, results)
  return { accepted: rowCount ?? 0 }
}

function issuesOf(
  { vantage, results }: { vantage: string; results: ReachabilityResult[] },
  now: Date,
): ValidationIssue[] {
  const issue = (code: string, message: string, path: string[]): ValidationIssue[] => [
    { code, message, path, suggestion: null },
  ]
  return [
    ...(/^[!-~]{1,63}$/.test(vantage)
      ? []
      : issue('INVALID_NAME', 'A vantage point has a name of 1 to 63 visible ASCII characters.', [
          'vantage',
        ])),
    ...(results.length <= MOST_RESULTS
      ? []
      : issue('TOO_MANY', `At most ${MOST_RESULTS} results are taken at once.`, ['results'])),
    ...results.flatMap(({ at, message }, index) => [
      ...(typeof at === 'string' && Date.parse(at) > now.getTime() + AHEAD
        ? issue('OUT_OF_RANGE', 'That is in the future.', ['results', String(index), 'at'])
        : []),
      ...(message != null && message.length > LONGEST_MESSAGE
        ? issue('TOO_LONG', `A message has at most ${LONGEST_MESSAGE} characters.`, [
            'results',
            String(index),
            'message',
          ])
        : []),
    ]),
  ]
}
