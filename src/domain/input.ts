/**
 * Values on their way in. A scalar of a mutation never throws on a string or number: it yields a
 * value or an `InvalidValue`, and the mutation collects all of them into one `ValidationFailed`.
 */

export class InvalidValue {
  readonly code: string
  readonly message: string
  readonly suggestion: string | null

  constructor(code: string, message: string, suggestion: string | null = null) {
    this.code = code
    this.message = message
    this.suggestion = suggestion
  }
}

/** A value as a scalar hands it on. */
export type Checked<T> = T | InvalidValue

/** The same input once nothing in it is invalid. */
export type Valid<T> = T extends InvalidValue
  ? never
  : T extends readonly (infer Item)[]
    ? Valid<Item>[]
    : T extends object
      ? { [Key in keyof T]: Valid<T[Key]> }
      : T

/** One thing that is wrong with an input; `path` leads to it from the input's root. */
export type ValidationIssue = {
  code: string
  message: string
  path: string[]
  suggestion: string | null
}

/** Every invalid value in an input, in the order of its fields. */
export function invalidValues(input: unknown, path: string[] = []): ValidationIssue[] {
  if (input instanceof InvalidValue) {
    return [{ code: input.code, message: input.message, path, suggestion: input.suggestion }]
  }
  if (typeof input === 'string' && !isText(input)) {
    const message = 'U+0000 and halves of surrogate pairs are no text that can be kept.'
    return [{ code: 'INVALID_TEXT', message, path, suggestion: null }]
  }
  if (Array.isArray(input)) {
    return input.flatMap((item, index) => invalidValues(item, [...path, String(index)]))
  }
  if (typeof input === 'object' && input !== null) {
    return Object.entries(input).flatMap(([key, value]) => invalidValues(value, [...path, key]))
  }
  return []
}

/** PostgreSQL keeps neither U+0000 nor what isn't well-formed Unicode. */
const isText = (text: string): boolean => text.isWellFormed() && !text.includes('\0')

/** Narrows an input whose scalars were all valid. */
export function isValid<T>(input: T): input is T & Valid<T> {
  return invalidValues(input).length === 0
}

/** A text by which something is looked up before it is told whether it is one that can be kept. */
export const askable = (text: string): string =>
  text.isWellFormed() ? text.replaceAll('\0', '') : ''

/** Fields that are given a value and reset at once; `fieldOf`: the field that each member of `reset` is about. */
export function setAndReset<Member extends string, Field extends string>(
  input: { readonly [F in Field]?: unknown } & { reset?: readonly Member[] | null | undefined },
  fieldOf: Record<Member, Field>,
): ValidationIssue[] {
  return (input.reset ?? []).flatMap((member, index) => {
    const field = fieldOf[member]
    if (input[field] === null || input[field] === undefined) return []
    return [
      {
        code: 'SET_AND_RESET',
        message: `${field} is given a value and reset at once.`,
        path: ['reset', String(index)],
        suggestion: null,
      },
    ]
  })
}
