import type { Finding } from '../rules/report.ts'
import type { StatusCondition } from './records.ts'

/** Makes conditions of findings: `lastTransitionTime` moves only when the status does. */
export type Stamp = (
  type: string,
  finding: Finding,
  previous: StatusCondition | undefined,
) => StatusCondition

/** A stamp for one fold: `now` is RFC 3339, `observedGeneration` the folded status's own. */
export const stampAt =
  (now: string, observedGeneration: number): Stamp =>
  (type, { status, reason, message }, previous) => ({
    type,
    status,
    reason,
    message,
    lastTransitionTime: previous?.status === status ? previous.lastTransitionTime : now,
    observedGeneration,
  })
