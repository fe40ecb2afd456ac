import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql'

/** The fields of a document that answer with interfaces or unions, as `Type.field`. */
export function abstractFields(schema: GraphQLSchema, document: DocumentNode): string[] {
  const found = new Set<string>()
  const types = new TypeInfo(schema)
  const enter = () => {
    const field = types.getFieldDef()
    const parent = types.getParentType()
    if (field && parent && isAbstractType(getNamedType(field.type)))
      found.add(`${parent.name}.${field.name}`)
  }
  visit(document, visitWithTypeInfo(types, { Field: { enter } }))
  return [...found].sort()
}
