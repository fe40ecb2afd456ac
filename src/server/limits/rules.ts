/** Rules that a document has to keep besides those of GraphQL itself. */
import {
  GraphQLError,
  Kind,
  Lexer,
  NoSchemaIntrospectionCustomRule,
  type SelectionSetNode,
  Source,
  TokenKind,
  type ValidationRule,
} from 'graphql'
import type { LimitName } from '../../schema/failures.ts'
import type { Limits } from './limits.ts'

/** `introspection`: whether the schema may be asked about itself. */
export function rulesFor(limits: Limits, introspection: boolean): ValidationRule[] {
  const rules = [notTooDeep(limits.depth), fewAliases(limits.aliases), fewRepeats(limits.repeats)]
  return introspection ? rules : [...rules, NoSchemaIntrospectionCustomRule]
}

/** Refuses operations whose fields lie deeper than anybody needs. */
const notTooDeep =
  (most: number): ValidationRule =>
  (context) => {
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
        if (depthOf(operation.selectionSet) <= most) return
        const message = `The query goes more than ${most} fields deep.`
        context.reportError(
          new GraphQLError(message, {
            nodes: operation,
            extensions: { limit: 'depth' satisfies LimitName },
          }),
        )
      },
    }
  }

/** With aliases one document can ask for the same thing any number of times. */
const fewAliases =
  (most: number): ValidationRule =>
  (context) => {
    let count = 0
    return {
      Field(field) {
        if (field.alias === undefined) return
        count += 1
        if (count !== most + 1) return
        const message = `The document has more than ${most} aliases.`
        context.reportError(
          new GraphQLError(message, {
            nodes: field,
            extensions: { limit: 'aliases' satisfies LimitName },
          }),
        )
      },
    }
  }

/** Fields of one name are merged, which is decided by comparing each with each. */
const fewRepeats =
  (most: number): ValidationRule =>
  (context) => ({
    SelectionSet(set) {
      const counts = new Map<string, number>()
      for (const selection of set.selections) {
        if (selection.kind !== Kind.FIELD) continue
        const name = (selection.alias ?? selection.name).value
        const count = (counts.get(name) ?? 0) + 1
        counts.set(name, count)
        if (count !== most + 1) continue
        const message = `A selection names ${name} more than ${most} times.`
        context.reportError(
          new GraphQLError(message, {
            nodes: selection,
            extensions: { limit: 'repeats' satisfies LimitName },
          }),
        )
      }
    },
  })

/** Whether that is why a document could not be parsed: the parser doesn't tell one fault from another. */
export function hasMoreTokens(query: string, most: number): boolean {
  const lexer = new Lexer(new Source(query))
  try {
    for (let count = 0; count <= most; count += 1) {
      if (lexer.advance().kind === TokenKind.EOF) return false
    }
    return true
  } catch (error) {
    if (error instanceof GraphQLError) return false
    throw error
  }
}
