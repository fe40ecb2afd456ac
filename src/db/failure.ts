import pg from 'pg'

/** PostgreSQL's code for a failed statement, sent by our pool or by Prisma; else undefined. */
export function sqlState(error: unknown): string | undefined {
  if (error instanceof pg.DatabaseError) return error.code
  const { originalCode } = driverCause(error)
  return typeof originalCode === 'string' ? originalCode : undefined
}

/**
 * The name of the constraint that a statement violated: unique (23505), exclusion (23P01) or
 * foreign key (23503). Undefined for every other failure. Prisma doesn't pass on the name of an
 * exclusion constraint: statements that may hit one go through the pool.
 */
export function violatedConstraint(error: unknown): string | undefined {
  const state = sqlState(error)
  if (state !== '23505' && state !== '23P01' && state !== '23503') return undefined
  if (error instanceof pg.DatabaseError) return error.constraint
  const { index } = record(driverCause(error).constraint)
  return typeof index === 'string' ? index : undefined
}

type DriverCause = { originalCode?: unknown; constraint?: unknown }

/** Prisma's account of the driver's error: the error's own cause, or within its `meta`. */
function driverCause(error: unknown): DriverCause {
  if (!(error instanceof Error)) return {}
  const { driverAdapterError } = record('meta' in error ? error.meta : undefined)
  const { cause } = record(driverAdapterError ?? error)
  return record(cause)
}

/** The value where it is an object, so that fields can be looked for; else an empty one. */
function record(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {}
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}
