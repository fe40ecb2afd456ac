import {
  astFromValue,
  BreakingChangeType,
  DangerousChangeType,
  findBreakingChanges,
  findDangerousChanges,
  type GraphQLInputField,
  type GraphQLSchema,
  isInputObjectType,
  print,
} from 'graphql'

/** Dangerous to clients that were made from the schema before: what they send or get means something else. */
const BREAKING_TOO: string[] = [
  DangerousChangeType.ARG_DEFAULT_VALUE_CHANGE,
  // Generated clients end at a member that they don't know.
  DangerousChangeType.TYPE_ADDED_TO_UNION,
  DangerousChangeType.IMPLEMENTED_INTERFACE_ADDED,
]

/** Everything that breaks clients of `before` on `after`, each in one line that names it. */
export function breakingDifferences(before: GraphQLSchema, after: GraphQLSchema): string[] {
  return [
    ...findBreakingChanges(before, after).map(told),
    ...findDangerousChanges(before, after)
      .filter(({ type }) => BREAKING_TOO.includes(type))
      .map(told),
    ...changedDefaults(before, after),
  ]
}

const told = ({ type, description }: { type: string; description: string }): string =>
  type === BreakingChangeType.FIELD_CHANGED_KIND ? description : `${type}: ${description}`

/** graphql-js compares those of arguments, not those of input fields. */
function changedDefaults(before: GraphQLSchema, after: GraphQLSchema): string[] {
  const inputs = Object.values(before.getTypeMap()).filter(isInputObjectType)
  return inputs.flatMap((type) => {
    const now = after.getType(type.name)
    if (!isInputObjectType(now)) return []
    const fields = now.getFields()
    return Object.values(type.getFields()).flatMap((field) => {
      const later = fields[field.name]
      if (later === undefined) return []
      const [was, is] = [shown(field), shown(later)]
      if (was === is) return []
      return `INPUT_FIELD_DEFAULT_VALUE_CHANGE: ${type.name}.${field.name} has changed defaultValue from ${was} to ${is}.`
    })
  })
}

function shown({ defaultValue, type }: GraphQLInputField): string {
  if (defaultValue === undefined) return 'none'
  const value = astFromValue(defaultValue, type)
  return value == null ? 'none' : print(value)
}
