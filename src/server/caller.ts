import type { IncomingHttpHeaders } from 'node:http'
import type { Actor } from '../domain/records.ts'
import { type Permission, SERVICE } from '../schema/context.ts'

/** Somebody who was recognised, and what they may do where. */
export type Caller = {
  /** The identity that the token was issued for. */
  subject: string
  email: string | null
  /** How the log of changes names them. */
  actor: Actor
  /** Permission ids (`networking.datumapis.com/loadbalancers.create`, …) by project, or `ANYWHERE`. */
  projects: ReadonlyMap<string, ReadonlySet<string>>
  /** When this stops being true, in milliseconds since 1970; nothing: when the connection ends. */
  expiresAt?: number
}

/** In place of a project: operators, whose permissions hold in all of them. */
export const ANYWHERE = '*'

/** What is known about a request when its sender is to be recognised. */
export type Credentials = {
  /** A websocket's `connectionParams` may stand in for `authorization`: browsers can't send it. */
  headers: IncomingHttpHeaders
  /** The client's address, e.g. `127.0.0.1`; behind a trusted proxy the one that it tells. */
  remoteAddress: string | undefined
}

/**
 * Answers who calls; null: nobody that is known. `where` is the project that they want to get at, or
 * `ANYWHERE`: of other places nothing needs to be found out.
 */
export type Identify = (
  credentials: Credentials,
  where: string,
) => Caller | null | Promise<Caller | null>

/** All that there is: what an editor of a project has. */
export const EDITOR: readonly Permission[] = [
  'loadbalancers.get',
  'loadbalancers.list',
  'loadbalancers.create',
  'loadbalancers.update',
  'loadbalancers.delete',
  'loadbalancers.use',
  'ipv4reservations.get',
  'ipv4reservations.list',
  'ipv4reservations.create',
  'ipv4reservations.update',
  'ipv4reservations.delete',
  'ipv4reservations.use',
]

/** What operators have, and only they: everywhere. Of tenants' objects they see all and change none. */
export const OPERATOR: readonly Permission[] = [
  'loadbalancers.get',
  'loadbalancers.list',
  'ipv4reservations.get',
  'ipv4reservations.list',
  'regions.create',
  'clusters.get',
  'clusters.list',
  'clusters.create',
  'clusters.update',
  'clusters.delete',
  'addresspools.get',
  'addresspools.list',
  'addresspools.create',
  'addresspools.update',
  'addresspools.delete',
  'quotas.list',
  'quotas.update',
  'projects.list',
  'projects.update',
  'reachability.report',
]

/** Permission ids as they are written in tokens. */
export function permissionIds(permissions: readonly Permission[]): ReadonlySet<string> {
  return new Set(permissions.map((permission) => `${SERVICE}/${permission}`))
}
