import {
  type DefinitionNode,
  type DocumentNode,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
  Kind,
} from 'graphql'

/** Every type, field, argument, input field and enum value of a schema, as `Type.field(arg:)`. */
export function describedCoordinates(schema: GraphQLSchema): Map<string, string | null> {
  const found = new Map<string, string | null>()
  const add = (coordinate: string, { description }: { description?: string | null | undefined }) =>
    found.set(coordinate, description ?? null)
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith('__')) continue
    add(type.name, type)
    if (isEnumType(type)) {
      for (const value of type.getValues()) add(`${type.name}.${value.name}`, value)
    }
    if (isInputObjectType(type)) {
      for (const field of Object.values(type.getFields())) add(`${type.name}.${field.name}`, field)
    }
    if (!isObjectType(type) && !isInterfaceType(type)) continue
    for (const field of Object.values(type.getFields())) {
      add(`${type.name}.${field.name}`, field)
      for (const arg of field.args) add(`${type.name}.${field.name}(${arg.name}:)`, arg)
    }
  }
  return found
}

/** The document without the types and fields that are named. */
export function without(document: DocumentNode, coordinates: ReadonlySet<string>): DocumentNode {
  return {
    ...document,
    definitions: document.definitions.flatMap((definition) => {
      if (!('name' in definition) || definition.name === undefined) return [definition]
      return coordinates.has(definition.name.value) ? [] : [thinned(definition, coordinates)]
    }),
  }
}

function thinned(definition: DefinitionNode, coordinates: ReadonlySet<string>): DefinitionNode {
  switch (definition.kind) {
    case Kind.OBJECT_TYPE_DEFINITION:
    case Kind.OBJECT_TYPE_EXTENSION:
    case Kind.INTERFACE_TYPE_DEFINITION: {
      const { name, fields = [] } = definition
      return {
        ...definition,
        fields: fields.filter((field) => !coordinates.has(`${name.value}.${field.name.value}`)),
      }
    }
    case Kind.INPUT_OBJECT_TYPE_DEFINITION:
    case Kind.INPUT_OBJECT_TYPE_EXTENSION: {
      const { name, fields = [] } = definition
      return {
        ...definition,
        fields: fields.filter((field) => !coordinates.has(`${name.value}.${field.name.value}`)),
      }
    }
    default:
      return definition
  }
}
