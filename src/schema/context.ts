import type { Store } from '../db/client.ts'
import type { EventLog } from '../domain/events/log.ts'
import type { Actor } from '../domain/records.ts'
import type { Scope } from '../domain/scope.ts'
import { badUserInput, forbidden } from './failures.ts'
import type { Loaders } from './loaders.ts'

/** What every resolver is given: the store, and on whose behalf it works in which project (null: all). */
export type Context = {
  store: Store
  log: EventLog
  clock: Clock
  /** null: operators', whose lists span all projects. */
  project: string | null
  caller: { subject: string; email: string | null; actor: Actor }
  /** Permission ids that the caller has there, without the service's prefix. */
  permissions: ReadonlySet<string>
  loaders: Loaders
  /** What is to be noted of the request; nothing where nobody asked for it. */
  noted?: Noted | undefined
}

/** What is told, and what is carried along, of one request. */
export interface Noted {
  /** The client was told it, and the log has it in each of its lines. */
  readonly requestId: string
  /** A W3C `traceparent` for what the request causes; undefined where it isn't traced. */
  readonly trace: string | undefined
  /** A mutation was answered: `answer` is its payload, its refusal, or the error that it ended by. */
  answered(mutation: string, input: unknown, answer: unknown): void
}

/** Time as streams need it; tests give their own. */
export type Clock = {
  now(): Date
  /** Calls back once after `ms`; what it returns takes that back. */
  after(ms: number, callback: () => void): () => void
}

export const SERVICE = 'networking.datumapis.com'

type Verb = 'get' | 'list' | 'create' | 'update' | 'delete' | 'use'
type OperatorsVerb = Exclude<Verb, 'use'>
export type Permission =
  | `loadbalancers.${Verb}`
  | `ipv4reservations.${Verb}`
  | `${'regions' | 'clusters' | 'addresspools' | 'quotas' | 'projects'}.${OperatorsVerb}`
  | 'reachability.report'

const TENANTS_CHANGES = /^(?:loadbalancers|ipv4reservations)\.(?:create|update|delete|use)$/

/** Refuses callers who may not do this in the project of the request. */
export function requirePermission(context: Context, ...needed: Permission[]): void {
  const { project, permissions } = context
  for (const permission of needed) {
    // Wherever a change of a tenant is asked for without a project, it can't be made by anybody.
    if (project === null && TENANTS_CHANGES.test(permission)) projectOf(context)
    if (permissions.has(permission)) continue
    const where = project === null ? 'everywhere' : `in project "${project}"`
    throw forbidden(`You need ${SERVICE}/${permission} ${where}.`)
  }
}

/** The one project of the request; where it is about all of them, what needs one can't be asked. */
export function projectOf({ project }: Context): string {
  if (project !== null) return project
  throw badUserInput(
    'This is asked of one project: send it to /projects/<project>/graphql of that project.',
  )
}

/** The scope that the domain acts in. */
export function scopeOf(context: Context): Scope {
  const { caller, noted } = context
  return { project: projectOf(context), actor: caller.actor, trace: noted?.trace }
}
