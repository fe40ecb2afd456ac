import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type FoldInput, type FoldPlacement, fold } from '../../src/domain/fold.ts'
import type { Status } from '../../src/domain/status.ts'
import { isReason } from '../../src/rules/reasons.ts'
import {
  backend,
  CREATED,
  doubtful,
  failing,
  input,
  LATER,
  placement,
  report,
  VIP,
  vipSaying,
  withHealth,
} from './folding.ts'

const { loadBalancer } = input()

/** What a cluster can be like. */
const kinds = {
  settled: {},
  'settled, with a change on its way': { asked: 6, settledGeneration: 2 },
  'on its way for the first time': { settledGeneration: 0, report: failing('Progressing') },
  'serving before it ever settled': { settledGeneration: 0, report: report({ inEffect: false }) },
  'without a report': { settledGeneration: 0, report: null },
  failed: { report: failing('NotAdvertised') },
  'failed from the beginning': { settledGeneration: 0, report: failing('NoGateway') },
  'in doubt': { report: doubtful() },
  unreachable: { unreachableSince: CREATED },
  'unreachable from the beginning': {
    settledGeneration: 0,
    report: null,
    unreachableSince: CREATED,
  },
  'letting go': {
    placed: false,
    settledGeneration: 2,
    report: report({ inEffect: false, vips: { [VIP]: vipSaying('Withdrawing', false) } }),
  },
  'let go': { placed: false, report: report({ vips: { [VIP]: vipSaying('Withdrawn', false) } }) },
} satisfies Record<string, Partial<FoldPlacement>>

const names = Object.keys(kinds) as (keyof typeof kinds)[]
const pairs = names.flatMap((a) => names.map((b) => [a, b] as const))

const unknown = ({ placed, report, unreachableSince }: FoldPlacement): boolean =>
  placed && (unreachableSince !== null || report?.vips[VIP]?.advertised.status === 'UNKNOWN')

const carries = ({ placed, report, unreachableSince, settledGeneration }: FoldPlacement) =>
  placed &&
  unreachableSince === null &&
  settledGeneration > 0 &&
  report?.vips[VIP]?.advertised.status === 'TRUE' &&
  Object.values(report.backends).some(({ serving }) => serving)

const conditionsOf = ({ conditions, vips, backends }: Status) => [
  ...conditions,
  ...Object.values(vips).flatMap((each) => Object.values(each)),
  ...Object.values(backends).map(({ resolved }) => resolved),
]

/** What must be true of every status, whatever it was folded from. */
const holdTrue = (given: FoldInput, status: Status): void => {
  const placements = given.placements ?? []
  const find = (type: string) => status.conditions.find((each) => each.type === type)
  const ready = find('Ready')?.status
  const provisioned = find('Provisioned')?.status

  if (ready === 'TRUE') {
    expect(placements.some(carries), 'ready only where something carries it').toBe(true)
    expect(status.observedGeneration).toBeGreaterThan(0)
    expect(['ACTIVE', 'DEGRADED']).toContain(status.phase)
  }
  if (ready === 'UNKNOWN') {
    expect(status.phase).toBe('DEGRADED')
    expect(placements.some(unknown)).toBe(true)
  }
  if (status.phase === 'FAILED') {
    expect(ready).toBe('FALSE')
    expect(placements.some(unknown), 'not failed while something is unknown').toBe(false)
    expect(placements.some(({ placed, report }) => placed && report === null)).toBe(false)
  }
  if (status.phase === 'ACTIVE') {
    expect(ready).toBe('TRUE')
    expect(provisioned).not.toBe('UNKNOWN')
  }
  if (['PENDING', 'IDLE', 'DELETING'].includes(status.phase)) expect(ready).toBe('FALSE')
  if (status.observedGeneration === 0) expect(ready).toBe('FALSE')
  expect(provisioned === 'TRUE').toBe(
    given.placements !== null &&
      placements.every(
        ({ report, asked, unreachableSince }) =>
          unreachableSince === null && report?.inEffect && report.asked >= asked,
      ),
  )
  expect(status.observedGeneration).toBeGreaterThanOrEqual(given.previous?.observedGeneration ?? 0)
  expect(status.observedGeneration).toBeLessThanOrEqual(given.loadBalancer.generation)
  for (const { reason, message, observedGeneration } of conditionsOf(status)) {
    expect(isReason(reason), reason).toBe(true)
    expect(message).not.toBe('')
    expect(observedGeneration).toBe(status.observedGeneration)
  }
}

describe('two clusters', () => {
  test.each(pairs)('%s, and %s', (a, b) => {
    for (const previous of [null, fold(input())]) {
      const placements = [placement('a', kinds[a]), placement('b', kinds[b])]
      const given = input({ placements, previous })
      const status = fold(given)
      holdTrue(given, status)
      expect(fold({ ...given, previous: status, now: LATER })).toEqual(status)
      expect(fold({ ...given, placements: placements.toReversed() })).toEqual(status)
    }
  })

  test.each(names)('losing one that served never says no, whatever the other: %s', (other) => {
    const lost = placement('a', { unreachableSince: CREATED })
    const placements = [lost, placement('b', kinds[other])]
    const status = fold(input({ placements, previous: fold(input()) }))
    expect(status.conditions[0]?.status).not.toBe('FALSE')
    expect(['ACTIVE', 'DEGRADED']).toContain(status.phase)
  })
})

const anyInput: fc.Arbitrary<FoldInput> = fc
  .record({
    kinds: fc.array(fc.constantFrom(...names), { maxLength: 3 }),
    health: fc.array(
      fc.tuple(
        fc.constantFrom('HEALTHY', 'UNHEALTHY', 'UNKNOWN', 'NOT_CHECKED'),
        fc.constantFrom('ENABLED', 'ENABLED', 'STANDBY', 'DISABLED'),
        fc.subarray(['a', 'b', 'c']),
      ),
      { maxLength: 4 },
    ),
    deleting: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0),
    sessionAffinity: fc.constantFrom('NONE', 'CLIENT_IP'),
  } as const)
  .map(({ kinds: drawn, health, deleting, sessionAffinity }) =>
    input({
      loadBalancer: { ...loadBalancer, deleting, sessionAffinity },
      placements: drawn.map((kind, index) => placement('abc'.charAt(index), kinds[kind])),
      backends: health.map(([state, adminState, knownIn], index) => ({
        ...withHealth(index + 1, state),
        adminState,
        knownIn,
      })),
    }),
  )

describe('any status', () => {
  test('keeps its promises through any history', () => {
    fc.assert(
      fc.property(fc.array(anyInput, { minLength: 1, maxLength: 5 }), (history) => {
        let previous: Status | null = null
        for (const step of history) {
          const given: FoldInput = { ...step, previous }
          const status = fold(given)
          holdTrue(given, status)
          previous = status
        }
      }),
      { numRuns: 300 },
    )
  })

  test('folded again from the same reports is the same, so nothing is written', () => {
    fc.assert(
      fc.property(anyInput, anyInput, (before, given) => {
        const status = fold({ ...given, previous: fold(before) })
        expect(fold({ ...given, previous: status, now: LATER })).toEqual(status)
      }),
      { numRuns: 300 },
    )
  })

  test('does not depend on the order of the clusters', () => {
    fc.assert(
      fc.property(anyInput, (given) => {
        const placements = given.placements?.toReversed() ?? null
        expect(fold({ ...given, placements })).toEqual(fold(given))
      }),
    )
  })

  test('moves a time exactly where a status moves', () => {
    fc.assert(
      fc.property(anyInput, anyInput, (before, given) => {
        const backends = given.backends
        const first = fold({ ...before, backends })
        const second = fold({ ...given, previous: first, now: LATER })
        for (const after of second.conditions) {
          const was = first.conditions.find(({ type }) => type === after.type)
          if (was)
            expect(after.lastTransitionTime).toBe(
              was.status === after.status ? was.lastTransitionTime : LATER,
            )
        }
      }),
    )
  })

  test('holds where nothing is enabled and nothing known', () => {
    const given = input({ backends: [backend(1, { adminState: 'STANDBY' })], placements: null })
    holdTrue(given, fold(given))
  })
})
