/** Queries are parsed and validated once and remembered, since clients send the same few. */
import {
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  Kind,
  parse,
  type SelectionSetNode,
  specifiedRules,
  type ValidationRule,
  validate,
} from 'graphql'

/** Longer ones are not remembered: a thousand of them must fit in memory. */
const LONGEST_REMEMBERED = 16_384
const MOST_REMEMBERED = 1_000
/** GraphiQL's introspection has some 600 tokens. */
const MOST_TOKENS = 4_000
/** Introspection goes 14 deep; a load balancer's widest use about 8. */
const DEEPEST = 20
const MOST_ERRORS = 20

/** `document` is there unless it could not be parsed; without errors it can be executed. */
export type Checked = { document: DocumentNode | undefined; errors: readonly GraphQLError[] }

/** Parses and validates queries against one schema. */
export class Documents {
  readonly schema: GraphQLSchema
  readonly #rules: readonly ValidationRule[]
  /** In the order they were last used. */
  readonly #remembered = new Map<string, Checked>()

  constructor(schema: GraphQLSchema) {
    this.schema = schema
    this.#rules = [...specifiedRules, notTooDeep]
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
    let document: DocumentNode
    try {
      document = parse(query, { maxTokens: MOST_TOKENS })
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error
      return { document: undefined, errors: [refused(error)] }
    }
    const errors = validate(this.schema, document, this.#rules, { maxErrors: MOST_ERRORS })
    return { document, errors: errors.map(refused) }
  }
}

/** 400 for clients of the later media type; those of application/json are told in a 200. */
function refused({ message, nodes, source, positions }: GraphQLError): GraphQLError {
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    source,
    positions,
    extensions: { code: 'BAD_USER_INPUT', http: { spec: true, status: 400 } },
  })
}

/** Refuses operations whose fields lie deeper than anybody needs. */
const notTooDeep: ValidationRule = (context) => {
  const depths = new Map<string, number>()
  /** Of a fragment that contains itself, which another rule refuses, the depth doesn't matter. */
  const fragmentDepth = (name: string): number => {
    const known = depths.get(name)
    if (known !== undefined) return known
    depths.set(name, 0)
    const depth = depthOf(context.getFragment(name)?.selectionSet)
    depths.set(name, depth)
    return depth
  }
  const depthOf = (set: SelectionSetNode | undefined): number =>
    Math.max(
      0,
      ...(set?.selections ?? []).map((selection) => {
        if (selection.kind === Kind.FIELD) return 1 + depthOf(selection.selectionSet)
        if (selection.kind === Kind.INLINE_FRAGMENT) return depthOf(selection.selectionSet)
        return fragmentDepth(selection.name.value)
      }),
    )
  return {
    OperationDefinition(operation) {
      if (depthOf(operation.selectionSet) <= DEEPEST) return
      context.reportError(
        new GraphQLError(`The query goes more than ${DEEPEST} fields deep.`, { nodes: operation }),
      )
    },
  }
}

/** The queries of tenants and those of operators, each against the schema that they are served. */
export type DocumentsByAudience = { tenants: Documents; operators: Documents }

/** Those of whoever was let in to a project, or to all of them. */
export const documentsFor = (
  { tenants, operators }: DocumentsByAudience,
  { project }: { project: string | null },
): Documents => (project === null ? operators : tenants)
