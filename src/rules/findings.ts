import type { Reason } from './reasons.ts'
import type { Finding, TruthValue } from './report.ts'

/** A finding in one line. */
export const found = (status: TruthValue, reason: Reason, message: string): Finding => ({
  status,
  reason,
  message,
})

export const holds = (finding: Finding): boolean => finding.status === 'TRUE'

/** What speaks against it: the first FALSE, else the first UNKNOWN; `otherwise` where all hold. */
export const firstAgainst = (findings: Finding[], otherwise: Finding): Finding =>
  findings.find(({ status }) => status === 'FALSE') ??
  findings.find(({ status }) => status === 'UNKNOWN') ??
  otherwise
