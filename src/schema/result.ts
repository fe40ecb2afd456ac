import type { ObjectFieldBuilder, ObjectRef } from '@pothos/core'
import type { Planned } from '../domain/plans/plan.ts'
import { Refusal } from '../domain/refusals.ts'
import { type BuilderTypes, builder } from './builder.ts'
import { ChangePlan } from './changePlan.ts'
import { typeOfRefusal } from './errors.ts'

/**
 * What a mutation answers: its payload, or one of its refusals. Unions are closed, since generated
 * clients break on a member that they don't know: a refusal that isn't listed is a bug.
 */
export function resultUnion<
  Payload extends object,
  Refs extends readonly ObjectRef<BuilderTypes, Refusal>[],
>(
  name: `${string}Result`,
  payload: ObjectRef<BuilderTypes, Payload>,
  errors: Refs,
  options: { extensions?: Record<string, unknown> } = {},
) {
  return builder.unionType(name, {
    ...options,
    description: `What the change came to: ${payload.name} when it was accepted, else why it was refused.`,
    types: [payload, ...errors],
    resolveType: (value) => (value instanceof Refusal ? typeOfRefusal(value) : payload.name),
  })
}

/** The plan of a payload, the same in all of them. */
export const planOf = <Payload extends object>(
  t: ObjectFieldBuilder<BuilderTypes, Payload | Planned>,
) =>
  t.field({
    type: ChangePlan,
    nullable: true,
    description:
      'What the change would do, where only that was asked for (`validateOnly`); else null.',
    resolve: (answer) => ('plan' in answer ? answer.plan : null),
  })
