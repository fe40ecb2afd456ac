import { invalidValues, isValid, type Valid } from '../domain/input.ts'
import { badUserInput } from './failures.ts'

/** Arguments of a query or subscription: a wrong value ends it. (A mutation lists them instead.) */
export function valid<T>(args: T): Valid<T> {
  if (isValid(args)) return args
  const told = invalidValues(args).map(({ path, message, suggestion }) => {
    const meant = suggestion === null ? '' : ` Did you mean "${suggestion}"?`
    return `${path.join('.')}: ${message}${meant}`
  })
  throw badUserInput(told.join(' '))
}

/** A filter of a query, checked, and without its empty fields: null and absent mean the same in it. */
export function filterOf<T extends object>(filter: T | null | undefined): Filled<Valid<T>> {
  if (filter == null) return {}
  const entries = Object.entries(valid(filter)).filter(([, value]) => value != null)
  // Built from the entries of a Valid<T>; Object.fromEntries can't say so.
  return Object.fromEntries(entries) as Filled<Valid<T>>
}

type Filled<T> = { [Key in keyof T]?: NonNullable<T[Key]> }
