import type { FoldBackend, FoldInput, FoldPlacement } from '../../src/domain/fold.ts'
import type { Status } from '../../src/domain/status.ts'
import { found } from '../../src/rules/findings.ts'
import type { Reason } from '../../src/rules/reasons.ts'
import type { BackendReport, PlacementReport, VipReport } from '../../src/rules/report.ts'

export const NOW = '2026-03-01T00:00:00.000Z'
export const LATER = '2026-03-01T00:05:00.000Z'
export const CREATED = '2026-01-01T00:00:00.000Z'
export const VIP = '2001:db8:100::1'
export const IPV4_VIP = '203.0.113.7'

export const backend = (number: number, change: Partial<FoldBackend> = {}): FoldBackend => ({
  id: `backend-${number}`,
  address: `fd20:60::${number}`,
  name: null,
  adminState: 'ENABLED',
  createdAt: CREATED,
  health: {
    state: 'HEALTHY',
    reason: 'Healthy',
    message: 'It answers.',
    since: CREATED,
    lastProbedAt: null,
    consecutiveSuccesses: null,
    consecutiveFailures: null,
  },
  knownIn: ['a', 'b'],
  ...change,
})

export const withHealth = (
  number: number,
  state: FoldBackend['health']['state'],
  reason = 'Whatever',
): FoldBackend => {
  const plain = backend(number)
  return { ...plain, health: { ...plain.health, state, reason } }
}

export const input = (change: Partial<FoldInput> = {}): FoldInput => ({
  now: NOW,
  loadBalancer: {
    generation: 3,
    rulesGeneration: 3,
    deleting: false,
    sessionAffinity: 'NONE',
    createdAt: CREATED,
  },
  addresses: [{ address: VIP, prefix: `${VIP}/128`, family: 'IPV6', reservation: null }],
  backends: [backend(1), backend(2)],
  placements: [placement('a'), placement('b')],
  previous: null,
  ...change,
})

/** The same, with another address of a reservation. */
export const withIPv4 = (change: Partial<FoldInput> = {}): FoldInput => {
  const plain = input(change)
  const more = {
    address: IPV4_VIP,
    prefix: `${IPV4_VIP}/32`,
    family: 'IPV4' as const,
    reservation: 'reservation-1',
  }
  return { ...plain, addresses: [...plain.addresses, more] }
}

const yes = (reason: Reason) => found('TRUE', reason, 'It does.')

export const vipReport = (change: Partial<VipReport> = {}): VipReport => ({
  wanted: true,
  applied: yes('Applied'),
  accepted: yes('Accepted'),
  provisioned: yes('InEffect'),
  advertised: yes('Advertised'),
  ...change,
})

/** A VIP of which one thing is said for everything. */
export const vipSaying = (reason: Reason, wanted = true): VipReport => {
  const no = found('FALSE', reason, 'It does not.')
  return { wanted, applied: no, accepted: no, provisioned: no, advertised: no }
}

export const backendReport = (change: Partial<BackendReport> = {}): BackendReport => ({
  serving: true,
  placed: yes('Resolved'),
  ...change,
})

export const report = (change: Partial<PlacementReport> = {}): PlacementReport => ({
  asked: 5,
  generation: 3,
  inEffect: true,
  vips: { [VIP]: vipReport() },
  backends: { 'backend-1': backendReport(), 'backend-2': backendReport() },
  affinity: yes('Honoured'),
  cluster: yes('ClusterReady'),
  ...change,
})

const silent = { 'backend-1': { serving: false }, 'backend-2': { serving: false } } as const

const notServing = Object.fromEntries(
  Object.entries(silent).map(([id, change]) => [id, backendReport(change)]),
)

/** A report of a cluster that serves nothing, and why. */
export const failing = (reason: Reason): PlacementReport =>
  report({
    inEffect: false,
    vips: { [VIP]: vipSaying(reason) },
    backends: notServing,
  })

/** A report in which it is all there, but nobody knows whether it works. */
export const doubtful = (): PlacementReport => {
  const unknown = found('UNKNOWN', 'EngineDegraded', 'Who knows.')
  return report({
    inEffect: false,
    vips: { [VIP]: vipReport({ provisioned: unknown, advertised: unknown }) },
  })
}

export const placement = (cluster: string, change: Partial<FoldPlacement> = {}): FoldPlacement => ({
  cluster,
  placed: true,
  asked: 5,
  settledGeneration: 3,
  report: report(),
  reportedAt: NOW,
  unreachableSince: null,
  ...change,
})

/** What the conditions say, as `status reason` by type. */
export const said = (status: Status): Record<string, string> =>
  Object.fromEntries(
    status.conditions.map(({ type, status, reason }) => [type, `${status} ${reason}`]),
  )

/** What one condition says, as `status reason`. */
export const says = (status: Status, type: string): string | undefined => said(status)[type]
