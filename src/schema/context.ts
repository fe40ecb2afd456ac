import type { Store } from '../db/client.ts'
import type { EventLog } from '../domain/events/log.ts'
import type { Actor } from '../domain/records.ts'
import type { Scope } from '../domain/scope.ts'
import { forbidden } from './failures.ts'
import type { Loaders } from './loaders.ts'

/** What every resolver is given: the store, and on whose behalf it works in which project. */
export type Context = {
  store: Store
  log: EventLog
  clock: Clock
  project: string
  caller: { subject: string; email: string | null; actor: Actor }
  /** Permission ids that the caller has in this project, without the service's prefix. */
  permissions: ReadonlySet<string>
  loaders: Loaders
}

/** Time as streams need it; tests give their own. */
export type Clock = {
  now(): Date
  /** Calls back once after `ms`; what it returns takes that back. */
  after(ms: number, callback: () => void): () => void
}

export const SERVICE = 'networking.datumapis.com'

type Verb = 'get' | 'list' | 'create' | 'update' | 'delete' | 'use'
export type Permission = `loadbalancers.${Verb}` | `ipv4reservations.${Verb}`

/** Refuses callers who may not do this in the project of the request. */
export function requirePermission(context: Context, ...needed: Permission[]): void {
  for (const permission of needed) {
    if (!context.permissions.has(permission)) {
      throw forbidden(`You need ${SERVICE}/${permission} in project "${context.project}".`)
    }
  }
}

/** The scope that the domain acts in. */
export function scopeOf(context: Context): Scope {
  return { project: context.project, actor: context.caller.actor }
}
