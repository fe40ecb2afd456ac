/** Queries are parsed and validated once and remembered, since clients send the same few. */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  parse,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql'
import type { LimitName } from '../schema/failures.ts'
import { costsOf } from './limits/cost.ts'
import { LIMITS, type Limits } from './limits/limits.ts'
import { hasMoreTokens, rulesFor } from './limits/rules.ts'

/** Longer ones are not remembered: a thousand of them must fit in memory. */
const LONGEST_REMEMBERED = 16_384
const MOST_REMEMBERED = 1_000
const MOST_ERRORS = 20

/** `document` is there unless it could not be parsed; without errors it can be executed. */
export type Checked = {
  document: DocumentNode | undefined
  errors: readonly GraphQLError[]
  /** What an operation of it costs. */
  costOf: ReturnType<typeof costsOf>
}

const free = () => 0

/** Parses and validates queries against one schema. */
export class Documents {
  readonly schema: GraphQLSchema
  readonly #limits: Limits
  /** What is closed to questions isn't given away by suggestions either. */
  readonly hideSuggestions: boolean
  readonly #limiting: readonly ValidationRule[]
  /** In the order they were last used. */
  readonly #remembered = new Map<string, Checked>()

  constructor(schema: GraphQLSchema, { limits = LIMITS, introspection = true } = {}) {
    this.schema = schema
    this.#limits = limits
    this.hideSuggestions = !introspection
    this.#limiting = rulesFor(limits, introspection)
  }

  /** The document of a query, or all that is wrong with it. */
  check(query: string): Checked {
    const known = this.#remembered.get(query)
    if (known !== undefined) {
      this.#remembered.delete(query)
      this.#remembered.set(query, known)
      return known
    }
    const checked = this.#read(query)
    if (query.length <= LONGEST_REMEMBERED) {
      if (this.#remembered.size >= MOST_REMEMBERED) {
        const [oldest] = this.#remembered.keys()
        if (oldest !== undefined) this.#remembered.delete(oldest)
      }
      this.#remembered.set(query, checked)
    }
    return checked
  }

  #read(query: string): Checked {
    const { tokens } = this.#limits
    let document: DocumentNode
    try {
      document = parse(query, { maxTokens: tokens })
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error
      const extensions = hasMoreTokens(query, tokens) ? { limit: 'tokens' satisfies LimitName } : {}
      return {
        document: undefined,
        errors: [refused(error, extensions)],
        costOf: free,
      }
    }
    const { schema, hideSuggestions } = this
    const options = { maxErrors: MOST_ERRORS, hideSuggestions }
    // Ours first: they are quick, and what they refuse may take the others long.
    const beyond = validate(schema, document, this.#limiting, options)
    const found = beyond.length > 0 ? beyond : validate(schema, document, specifiedRules, options)
    const errors = found.map((error) => refused(error))
    return { document, errors, costOf: errors.length > 0 ? free : costsOf(document, schema) }
  }
}

/** 400 for clients of the later media type; those of application/json are told in a 200. */
function refused(
  { message, nodes, source, positions, extensions }: GraphQLError,
  further: Record<string, unknown> = {},
): GraphQLError {
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    source,
    positions,
    extensions: {
      ...extensions,
      ...further,
      code: 'BAD_USER_INPUT',
      http: { spec: true, status: 400 },
    },
  })
}

/** The queries of tenants and those of operators, each against the schema that they are served. */
export type DocumentsByAudience = { tenants: Documents; operators: Documents }

/** Those of whoever was let in to a project, or to all of them. */
export const documentsFor = (
  { tenants, operators }: DocumentsByAudience,
  { project }: { project: string | null },
): Documents => (project === null ? operators : tenants)
