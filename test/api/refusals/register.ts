/**
 * The register of refusals: for each mutation a scene in which it would be accepted, and flaws, each of
 * which has it refused in one way.
 */
import { type GraphQLSchema, isObjectType, isUnionType } from 'graphql'

/** A change that breaks several rules is refused by the first of them. */
export const STAGES = ['released', 'visible', 'valid', 'quota', 'conflict'] as const
type Stage = (typeof STAGES)[number]

/** Which check each refusal comes of; those without a type of their own are named by their code. */
const STAGE_OF: Record<string, Stage> = {
  NotReleased: 'released',
  NotFound: 'visible',
  ValidationFailed: 'valid',
  RegionMismatch: 'valid',
  BackendsOutsideRegion: 'valid',
  VPC_NOT_OWNED: 'valid',
  QuotaExceeded: 'quota',
  QUOTA_FIXED: 'quota',
  NameTaken: 'conflict',
  GenerationConflict: 'conflict',
  IdempotencyKeyReused: 'conflict',
  PoolExhausted: 'conflict',
  ReservationInUse: 'conflict',
  StaleHolder: 'conflict',
  DeletionProtected: 'conflict',
  BeingDeleted: 'conflict',
  PoolOverlap: 'conflict',
  PoolInUse: 'conflict',
  ClusterInUse: 'conflict',
  CLUSTER_NOT_DRAINED: 'conflict',
  CLUSTER_REACHABLE: 'conflict',
  CLUSTER_FORGOTTEN: 'conflict',
}

export type Input = Record<string, unknown>
type Mend = () => Promise<unknown>
export type Flaw<Scene> = {
  refusal: string
  how: string
  /** Spoils the scene. Answers how to mend it, where others would notice. */
  spoil: (scene: Scene) => Promise<Mend | undefined> | Mend | undefined
  /** The path, and every field that the refusal has beside those of `UserError`. */
  told: (scene: Scene) => { path: string[]; [field: string]: unknown }
}

/** A flaw as the tests use it, whatever its scene is. */
type Broken = { answer: Answer; told: object }
export type Case = {
  mutation: string
  /** Without a flaw: the answer has to be the payload. */
  accepted: () => Promise<Answer>
  refusals: { refusal: string; how: string; stage: number; told: () => Promise<Broken> }[]
  /** Asks with several flaws at once, the last named spoiling first. */
  askedWith: (...places: number[]) => Promise<Answer>
}
export type Answer = {
  __typename: string
  code?: string
  path?: string[]
  [field: string]: unknown
}
export type Ask = (mutation: string, input: Input) => Promise<Answer>

/** One mutation: `scene` makes a new one each time. */
export function caseOf<Scene extends { input: Input }>(
  ask: Ask,
  mutation: string,
  scene: () => Promise<Scene>,
  flaws: Flaw<Scene>[],
): Case {
  const askedWith = async (...chosen: Flaw<Scene>[]) => {
    const made = await scene()
    const mends: Mend[] = []
    for (const flaw of chosen.toReversed()) {
      const mend = await flaw.spoil(made)
      if (mend) mends.push(mend)
    }
    const answer = await ask(mutation, made.input)
    for (const mend of mends.reverse()) await mend()
    return { answer, made }
  }
  return {
    mutation,
    accepted: async () => (await askedWith()).answer,
    refusals: flaws.map((flaw) => ({
      refusal: flaw.refusal,
      how: flaw.how,
      stage: stageOf(flaw.refusal),
      told: async () => {
        const { answer, made } = await askedWith(flaw)
        return { answer, told: flaw.told(made) }
      },
    })),
    askedWith: async (...places) => {
      const chosen = places.flatMap((place) => flaws[place] ?? [])
      return (await askedWith(...chosen)).answer
    },
  }
}

function stageOf(refusal: string): number {
  const stage = STAGE_OF[refusal]
  if (stage === undefined) throw new Error(`${refusal} has no place in the order of checks`)
  return STAGES.indexOf(stage)
}

/** Spoils one field of the input. */
export const setting =
  (field: string, value: (input: Input) => unknown) =>
  ({ input }: { input: Input }): undefined => {
    input[field] = value(input)
  }

/** As the register names what was answered. */
export const refusalIn = ({ __typename, code }: Answer): string =>
  __typename === 'Refused' ? String(code) : __typename

/** Every refusal that a mutation may answer by the schema: types, and the codes of `Refused`. */
export function refusalsOf(schema: GraphQLSchema, mutation: string): string[] {
  const { members, codes } = resultOf(schema, mutation)
  const typed = members.map(({ name }) => name).filter((name) => name !== 'Refused')
  return [...typed, ...codes]
}

/** The fields that a refusal has beside those of every one. */
export function ownFields(schema: GraphQLSchema, refusal: string): string[] {
  const type = schema.getType(refusal)
  if (!isObjectType(type)) return []
  const common = new Set(['code', 'message', 'path', 'hint', 'retryable'])
  return Object.keys(type.getFields()).filter((field) => !common.has(field))
}

/** A mutation with every field of each of its refusals. */
export function documentOf(schema: GraphQLSchema, mutation: string): string {
  const data = resultOf(schema, mutation).members.flatMap(({ name }) => {
    const fields = ownFields(schema, name).map((field) =>
      field === 'issues' ? 'issues { code message path suggestion }' : field,
    )
    return fields.length === 0 ? [] : [`... on ${name} { ${fields.join(' ')} }`]
  })
  const type = `${mutation[0]?.toUpperCase()}${mutation.slice(1)}`
  return `mutation ($input: ${type}Input!) { ${mutation}(input: $input) {
    __typename ... on UserError { code message path hint retryable } ${data.join(' ')} } }`
}

function resultOf(schema: GraphQLSchema, mutation: string) {
  const union = schema.getMutationType()?.getFields()[mutation]?.type
  if (!isUnionType(union)) throw new Error(`${mutation} answers with no union`)
  const codes: unknown = union.extensions['refusedCodes']
  return {
    members: union.getTypes().filter(({ name }) => !name.endsWith('Payload')),
    codes: Array.isArray(codes) ? codes.map(String) : [],
  }
}
