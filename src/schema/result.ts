import type { ObjectFieldBuilder, ObjectRef } from '@pothos/core'
import type { Planned } from '../domain/plans/plan.ts'
import type { RefusalCode } from '../domain/refusalCodes.ts'
import { Refusal, Refused } from '../domain/refusals.ts'
import { type BuilderTypes, builder } from './builder.ts'
import { ChangePlan } from './changePlan.ts'
import { typeOfRefusal } from './errors.ts'

/**
 * What a mutation answers: its payload, or one of its refusals. Unions are closed, since generated
 * clients break on a member that they don't know: a refusal that isn't listed is a bug. So is one that
 * is told by a code alone which isn't among `refusedCodes`.
 */
export function resultUnion<
  Payload extends object,
  Refs extends readonly ObjectRef<BuilderTypes, Refusal>[],
>(
  name: `${string}Result`,
  payload: ObjectRef<BuilderTypes, Payload>,
  errors: Refs,
  {
    extensions,
    refusedCodes = [],
  }: { extensions?: Record<string, unknown>; refusedCodes?: RefusalCode[] } = {},
) {
  return builder.unionType(name, {
    extensions: { ...extensions, refusedCodes },
    description: `What the change came to: ${payload.name} when it was accepted, else why it was refused.`,
    types: [payload, ...errors],
    resolveType: (value) => {
      if (!(value instanceof Refusal)) return payload.name
      if (value instanceof Refused && !refusedCodes.includes(value.code)) {
        throw new Error(`${name} doesn't list the code ${value.code}`)
      }
      return typeOfRefusal(value)
    },
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
