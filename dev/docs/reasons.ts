/**
 * Writes docs/reasons.md from the lists in the code: `node dev/docs/reasons.ts`, or the test of the page
 * with UPDATE_DOCS=1.
 */
import { writeFileSync } from 'node:fs'
import { EVENT_REASONS } from '../../src/domain/events/reasons.ts'
import { REFUSAL_CODES } from '../../src/domain/refusalCodes.ts'
import { isReason, REASONS } from '../../src/rules/reasons.ts'
import { REMEDIES } from '../../src/rules/remedies.ts'

export const REASONS_PAGE = new URL('../../docs/reasons.md', import.meta.url)

const row = (...cells: string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
const table = (head: string[], rows: string[][]): string =>
  [row(...head), row(...head.map(() => '---')), ...rows.map((cells) => row(...cells))].join('\n')
const sorted = (list: Record<string, string>): [string, string][] =>
  Object.entries(list).toSorted(([a], [b]) => (a < b ? -1 : 1))
const named = (list: Record<string, string>): string[][] =>
  sorted(list).map(([name, line]) => [`\`${name}\``, line])

/** The page, whole. */
export const reasonsPage = (): string => `# Reasons and codes

Made from the lists in the code, which are closed: nothing else is ever said. Programs may tell them
apart; texts may change. A release may add some, so a client treats one that it doesn't know by the
status beside it.

## Conditions, health and explanations

\`reason\` of a \`StatusCondition\`, of \`BackendHealth\` and of an \`ExplanationStep\`. What to do is what
\`explain\` answers as \`remedy\`; empty where nothing is to be mended.

${table(
  ['reason', 'what it means', 'what to do'],
  sorted(REASONS).map(([name, line]) => [
    `\`${name}\``,
    line,
    (isReason(name) ? REMEDIES[name] : null) ?? '',
  ]),
)}

## Events

\`reason\` of a \`ChangeEvent\`.

${table(['reason', 'what happened'], named(EVENT_REASONS))}

## Refusals

\`code\` of what a mutation answers instead of its payload (\`UserError\`). Errors of the request as a whole
(\`errors\`, \`extensions.code\`) are \`UNAUTHENTICATED\`, \`FORBIDDEN\`, \`NOT_FOUND\` (no such project in the
path), \`BAD_USER_INPUT\`, \`TOO_MANY_REQUESTS\` and \`INTERNAL_SERVER_ERROR\`.

${table(['code', 'what it means'], named(REFUSAL_CODES))}
`

if (import.meta.main) writeFileSync(REASONS_PAGE, reasonsPage())
