/** Operations that ask for everything: one for each root field of a schema, with all that can be reached from it. */
import {
  type GraphQLCompositeType,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  isCompositeType,
  isObjectType,
  isRequiredArgument,
} from 'graphql'

/** The arguments of fields that have to be told something, by coordinate (`Query.node`), as they are written. */
export type Arguments = Readonly<Record<string, string>>

export type Walk = {
  field: string
  query: string
  /** All fields that it asks for, by coordinate. */
  asked: ReadonlySet<string>
}

type Kind = 'query' | 'mutation' | 'subscription'

/** A walk from every root field of a kind. A field that needs arguments which nobody tells fails the walk. */
export function walksOf(schema: GraphQLSchema, kind: Kind, args: Arguments): Walk[] {
  const root = rootOf(schema, kind)
  return Object.values(root.getFields()).map((field) => {
    const writer = new Writer(schema, args)
    const query = `${kind} { ${writer.field(root, field, [])} }`
    return { field: field.name, query, asked: writer.asked }
  })
}

/** All fields of objects that a query can reach, by coordinate. */
export function coordinatesFrom(schema: GraphQLSchema): Set<string> {
  const found = new Set<string>()
  const seen = new Set<string>()
  const visit = (type: GraphQLCompositeType): void => {
    if (seen.has(type.name)) return
    seen.add(type.name)
    for (const object of objectsOf(schema, type)) {
      seen.add(object.name)
      for (const field of Object.values(object.getFields())) {
        found.add(`${object.name}.${field.name}`)
        const named = getNamedType(field.type)
        if (isCompositeType(named)) visit(named)
      }
    }
  }
  visit(rootOf(schema, 'query'))
  return found
}

function rootOf(schema: GraphQLSchema, kind: Kind): GraphQLObjectType {
  const roots = {
    query: schema.getQueryType(),
    mutation: schema.getMutationType(),
    subscription: schema.getSubscriptionType(),
  }
  const root = roots[kind]
  if (root == null) throw new Error(`there is no ${kind}`)
  return root
}

const objectsOf = (
  schema: GraphQLSchema,
  type: GraphQLCompositeType,
): readonly GraphQLObjectType[] => (isObjectType(type) ? [type] : schema.getPossibleTypes(type))

class Writer {
  readonly #schema: GraphQLSchema
  readonly #args: Arguments
  readonly asked = new Set<string>()

  constructor(schema: GraphQLSchema, args: Arguments) {
    this.#schema = schema
    this.#args = args
  }

  field(parent: GraphQLObjectType, field: GraphQLField<unknown, unknown>, path: string[]): string {
    const coordinate = `${parent.name}.${field.name}`
    const args = this.#args[coordinate]
    const missing = field.args.filter(isRequiredArgument).map(({ name }) => name)
    if (missing.length > 0 && args === undefined) {
      throw new Error(`tell the walk ${missing.join(', ')} of ${coordinate} (matrix/world.ts)`)
    }
    this.asked.add(coordinate)
    const call = `${field.name}${args === undefined ? '' : `(${args})`}`
    const type = getNamedType(field.type)
    return isCompositeType(type) ? `${call} ${this.#selection(type, path)}` : call
  }

  /** A type isn't entered again below itself: it would never end. */
  #selection(type: GraphQLCompositeType, path: string[]): string {
    const fragments = objectsOf(this.#schema, type).flatMap((object) => {
      if (path.includes(object.name)) return []
      const fields = Object.values(object.getFields()).map((field) => {
        // Members of a union may have fields of one name and of different types.
        const alias = isObjectType(type) ? '' : `${object.name}_${field.name}: `
        return `${alias}${this.field(object, field, [...path, object.name])}`
      })
      return isObjectType(type) ? fields : [`... on ${object.name} { ${fields.join(' ')} }`]
    })
    return `{ __typename ${fragments.join(' ')} }`
  }
}
