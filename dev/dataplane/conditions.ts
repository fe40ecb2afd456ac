import type { ConditionStatus, ObjectCondition } from '../../src/rules/objects.ts'

export type Said = { type: string; status: ConditionStatus; reason: string; message: string }

/** The condition of one type; undefined where it was never set. */
export function conditionOf(
  conditions: readonly ObjectCondition[] | undefined,
  type: string,
): ObjectCondition | undefined {
  return conditions?.find((condition) => condition.type === type)
}

/** True at the given generation, or at any where none is given. */
export function isTrue(
  conditions: readonly ObjectCondition[] | undefined,
  type: string,
  generation?: number,
): boolean {
  const condition = conditionOf(conditions, type)
  if (condition?.status !== 'True') return false
  return generation === undefined || condition.observedGeneration === generation
}

/**
 * The conditions with `said` in them, or undefined where nothing would change. As in Kubernetes, the
 * time of the last transition moves with the status only.
 */
export function withCondition(
  conditions: readonly ObjectCondition[] | undefined,
  said: Said,
  generation: number | undefined,
): ObjectCondition[] | undefined {
  const before = conditionOf(conditions, said.type)
  if (
    before !== undefined &&
    before.status === said.status &&
    before.reason === said.reason &&
    before.message === said.message &&
    before.observedGeneration === generation
  ) {
    return undefined
  }
  const since =
    before?.status === said.status
      ? before.lastTransitionTime
      : new Date().toISOString().replace(/\.\d+Z$/, 'Z')
  const after: ObjectCondition = {
    ...said,
    lastTransitionTime: since,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  }
  return [...(conditions ?? []).filter(({ type }) => type !== said.type), after]
}
