import { found } from '../../rules/findings.ts'
import { REASONS } from '../../rules/reasons.ts'
import type { Finding } from '../../rules/report.ts'
import type { Phase, Status } from '../status.ts'
import type { VipFindings } from './vips.ts'

/** All that phase and readiness follow from. */
export type Whole = {
  deleting: boolean
  observedGeneration: number
  previous: Status | null
  /** Why no cluster should serve it; undefined: some should. */
  idle: Finding | undefined
  /** What must hold before anything can serve, in the order of the chain. */
  chain: Finding[]
  vips: VipFindings[]
  /** Something is wrong though connections are carried: see the table of phases in the docs. */
  impaired: boolean
}

export type Verdict = { phase: Phase; ready: Finding }

/** The table of phases, from its first matching row. */
export const verdict = (whole: Whole): Verdict => {
  const { idle } = whole
  if (whole.deleting) return { phase: 'DELETING', ready: no('Deleting') }
  if (idle?.reason === 'NoBackends') return { phase: 'IDLE', ready: idle }
  const beginning = hasServed(whole.previous) ? 'DEGRADED' : 'PENDING'
  if (idle) return { phase: beginning, ready: idle }
  if (whole.observedGeneration === 0) return { phase: 'PENDING', ready: firstBroken(whole.chain) }
  return settledVerdict(whole, beginning)
}

const no = (reason: keyof typeof REASONS): Finding => found('FALSE', reason, REASONS[reason])

const firstBroken = (chain: Finding[]): Finding => {
  const broken = chain.find(({ status }) => status !== 'TRUE')
  return broken ? { ...broken, status: 'FALSE' } : no('Progressing')
}

/** Only what has served before can be worse than it was. */
const hasServed = (previous: Status | null): boolean =>
  previous !== null && ['ACTIVE', 'DEGRADED', 'FAILED'].includes(previous.phase)

const settledVerdict = ({ vips, impaired }: Whole, beginning: Phase): Verdict => {
  const counted = vips.filter(({ notServed }) => !notServed).map(({ carried }) => carried)
  const carried = counted.filter(({ status }) => status === 'TRUE')
  // An address that was just bound is on its way: that doesn't take readiness from the others.
  const against =
    counted.find(({ status, open }) => status === 'FALSE' && !open) ??
    counted.find(({ status }) => status === 'UNKNOWN')
  if (against) {
    const { status, reason, message } = against
    const failed = counted.every((each) => each.status === 'FALSE' && !each.open)
    return { phase: failed ? 'FAILED' : 'DEGRADED', ready: { status, reason, message } }
  }
  if (carried.length === 0) return { phase: beginning, ready: no('Progressing') }
  return {
    phase: impaired ? 'DEGRADED' : 'ACTIVE',
    ready: found('TRUE', 'Serving', REASONS.Serving),
  }
}
