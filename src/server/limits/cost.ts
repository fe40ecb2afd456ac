/**
 * What an operation costs, told from its document and variables before anything is executed: one for
 * every object that its answer may hold. Lists count with the size that is asked for.
 */
import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isCompositeType,
  isListType,
  isUnionType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValueNode,
} from 'graphql'
import { DEFAULT_PAGE, LARGEST_PAGE } from '../../schema/pages.ts'

/** Lists that aren't paged: addresses, conditions, regions. */
const SHORT_LIST = 8
/** A transaction, with its event and what it sets off. */
const MUTATION = 10
/** It reads no row, but takes a process some milliseconds. */
const INTROSPECTION = 100

type Variables = Readonly<Record<string, unknown>>
/** A number, or how it follows from the variables where it depends on them. */
type Cost = number | ((variables: Variables) => number)

/** Answers the cost of an operation of a valid document; what doesn't depend on variables is computed once. */
export function costsOf(document: DocumentNode, schema: GraphQLSchema) {
  const costs = new Map<OperationDefinitionNode, Cost>()
  return (operation: OperationDefinitionNode, variables: Variables | null): number => {
    let cost = costs.get(operation)
    if (cost === undefined) {
      cost = new Reckoning(document, schema, operation).cost()
      costs.set(operation, cost)
    }
    return at(cost, variables ?? {})
  }
}

const at = (cost: Cost, variables: Variables): number =>
  typeof cost === 'number' ? cost : cost(variables)

function sum(costs: readonly Cost[]): Cost {
  const fixed = costs.reduce<number>((all, one) => (typeof one === 'number' ? all + one : all), 0)
  const varying = costs.filter((one) => typeof one === 'function')
  if (varying.length === 0) return fixed
  return once((variables) => varying.reduce((all, one) => all + one(variables), fixed))
}

function times(count: Cost, each: Cost): Cost {
  if (typeof count === 'number' && typeof each === 'number') return count * each
  return once((variables) => at(count, variables) * at(each, variables))
}

/** The same part may be reached in any number of ways. */
function once(cost: (variables: Variables) => number): (variables: Variables) => number {
  let last: Variables | undefined
  let value = 0
  return (variables) => {
    if (last !== variables) {
      value = cost(variables)
      last = variables
    }
    return value
  }
}

type Placed = [field: FieldNode, parent: GraphQLCompositeType]

class Reckoning {
  readonly #schema: GraphQLSchema
  readonly #operation: OperationDefinitionNode
  readonly #fragments = new Map<string, FragmentDefinitionNode>()
  /** Fields of fragments are reached in many ways, but cost the same in a page of the same size. */
  readonly #known = new Map<FieldNode, Map<Cost | undefined, Cost>>()

  constructor(document: DocumentNode, schema: GraphQLSchema, operation: OperationDefinitionNode) {
    this.#schema = schema
    this.#operation = operation
    for (const definition of document.definitions) {
      if (definition.kind === Kind.FRAGMENT_DEFINITION) {
        this.#fragments.set(definition.name.value, definition)
      }
    }
  }

  cost(): Cost {
    const { operation, selectionSet } = this.#operation
    const root = this.#schema.getRootType(operation)
    return root == null ? 0 : sum([1, this.#selections(selectionSet, root, undefined)])
  }

  /** `page`: how many nodes there are, where the parent is a page of a list. */
  #selections(set: SelectionSetNode, parent: GraphQLCompositeType, page: Cost | undefined): Cost {
    const fields = this.#fieldsOf(set, parent, new Set())
    return sum(fields.map(([field, type]) => this.#once(field, type, page)))
  }

  /** As the executor collects them: each fragment once. */
  #fieldsOf(set: SelectionSetNode, parent: GraphQLCompositeType, seen: Set<string>): Placed[] {
    return set.selections.flatMap((selection): Placed[] => {
      if (selection.kind === Kind.FIELD) return [[selection, parent]]
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        const type = this.#typeOf(selection.typeCondition?.name.value) ?? parent
        return this.#fieldsOf(selection.selectionSet, type, seen)
      }
      const name = selection.name.value
      const fragment = this.#fragments.get(name)
      const type = this.#typeOf(fragment?.typeCondition.name.value)
      if (seen.has(name) || fragment === undefined || type === undefined) return []
      seen.add(name)
      return this.#fieldsOf(fragment.selectionSet, type, seen)
    })
  }

  #once(field: FieldNode, parent: GraphQLCompositeType, page: Cost | undefined): Cost {
    const costs = this.#known.get(field) ?? new Map<Cost | undefined, Cost>()
    this.#known.set(field, costs)
    const cost = costs.get(page) ?? this.#field(field, parent, page)
    costs.set(page, cost)
    return cost
  }

  #typeOf(name: string | undefined): GraphQLCompositeType | undefined {
    const type = name === undefined ? undefined : this.#schema.getType(name)
    return isCompositeType(type) ? type : undefined
  }

  #field(node: FieldNode, parent: GraphQLCompositeType, page: Cost | undefined): Cost {
    const name = node.name.value
    if (name.startsWith('__')) return name === '__typename' ? 0 : INTROSPECTION
    const field = isUnionType(parent) ? undefined : parent.getFields()[name]
    if (field === undefined || node.selectionSet === undefined) return 0
    const type = getNamedType(field.type)
    if (!isCompositeType(type)) return 0
    const inner = this.#selections(node.selectionSet, type, this.#pageOf(node, field))
    const each = sum([parent === this.#schema.getMutationType() ? 1 + MUTATION : 1, inner])
    if (!isListType(getNullableType(field.type))) return each
    return times(page ?? this.#idsOf(node) ?? SHORT_LIST, each)
  }

  /** How many a paged field is asked for. */
  #pageOf(node: FieldNode, { args }: GraphQLField<unknown, unknown>): Cost | undefined {
    if (!args.some(({ name }) => name === 'first')) return undefined
    const given = ['first', 'last'].flatMap((name) => this.#argument(node, name) ?? [])
    if (given.length === 0) return DEFAULT_PAGE
    const sizes = given.map((value) => this.#number(value))
    const [only] = sizes
    if (sizes.length === 1 && typeof only === 'number') return only
    return (variables) => {
      for (const size of sizes) {
        const number = typeof size === 'function' ? size(variables) : size
        if (number !== undefined) return number
      }
      return DEFAULT_PAGE
    }
  }

  /** What is more than a page is refused when it is executed; whatever isn't a number, too. */
  #number(value: ValueNode): number | ((variables: Variables) => number | undefined) {
    if (value.kind === Kind.INT) return clamp(Number(value.value))
    if (value.kind !== Kind.VARIABLE) return DEFAULT_PAGE
    const name = value.name.value
    const standard = this.#operation.variableDefinitions?.find(
      ({ variable }) => variable.name.value === name,
    )?.defaultValue
    const otherwise = standard?.kind === Kind.INT ? clamp(Number(standard.value)) : undefined
    return (variables) => {
      const given = variables[name]
      if (given === undefined) return otherwise
      return typeof given === 'number' ? clamp(given) : undefined
    }
  }

  /** How many objects are asked for by id. */
  #idsOf(node: FieldNode): Cost | undefined {
    const ids = this.#argument(node, 'ids')
    if (ids?.kind === Kind.LIST) return clamp(ids.values.length)
    if (ids?.kind !== Kind.VARIABLE) return undefined
    const name = ids.name.value
    return (variables) => {
      const given = variables[name]
      return Array.isArray(given) ? clamp(given.length) : 1
    }
  }

  #argument(node: FieldNode, name: string): ValueNode | undefined {
    const value = node.arguments?.find((argument) => argument.name.value === name)?.value
    return value?.kind === Kind.NULL ? undefined : value
  }
}

const clamp = (size: number): number => Math.min(LARGEST_PAGE, Math.max(0, size))
