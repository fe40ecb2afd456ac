import { NotFound, type Refusal } from '../domain/refusals.ts'
import type { Scope } from '../domain/scope.ts'
import { type Context, type Permission, requirePermission, scopeOf } from '../schema/context.ts'
import { isUuid } from '../schema/ids.ts'
import { GivenIds } from './givenIds.ts'

/** What a change names, by which operators' requests find the project that it is in. */
type Subject = { type: 'LoadBalancer' | 'IPv4Reservation' | 'Vpc'; id: string; path: string }

/** `loadbalancers.update` is about load balancers, which operators may see. */
const toSee = (permission: Permission): Permission =>
  permission.startsWith('ipv4reservations.') ? 'ipv4reservations.get' : 'loadbalancers.get'

/**
 * Makes a change on behalf of the caller, in the project of the request. Operators, whose requests
 * are about all projects, may only ask for the plan of one: it is made in the project of the object
 * named, and is theirs to see as the object is. `make` gets the UUID of what the change names, and the
 * ids for what else the input names.
 */
export async function changing<T extends object>(
  context: Context,
  { validateOnly }: { validateOnly: boolean },
  needed: Permission[],
  subject: Subject,
  make: (scope: Scope, subjectId: string, ids: GivenIds) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  const ids = new GivenIds()
  const subjectId = ids.uuid(subject.type, subject.id)
  if (context.project !== null || !validateOnly) {
    requirePermission(context, ...needed)
    return ids.told(await make(scopeOf(context), subjectId, ids))
  }
  requirePermission(context, ...needed.map(toSee))
  const project = await projectOf(context, subject.type, subjectId)
  if (project === null) return ids.told(notFound(subject))
  return ids.told(await make({ project, actor: context.caller.actor }, subjectId, ids))
}

async function projectOf(
  { loaders }: Context,
  type: Subject['type'],
  uuid: string,
): Promise<string | null> {
  if (!isUuid(uuid)) return null
  switch (type) {
    case 'LoadBalancer':
      return (await loaders.loadBalancers.load(uuid))?.project ?? null
    case 'IPv4Reservation':
      return (await loaders.reservations.load(uuid))?.project ?? null
    case 'Vpc':
      return (await loaders.vpcs.load(uuid))?.project ?? null
  }
}

const NAMES = {
  LoadBalancer: 'load balancer',
  IPv4Reservation: 'IPv4 reservation',
  Vpc: 'VPC',
} as const

const notFound = ({ type, id, path }: Subject): NotFound =>
  new NotFound({ message: `There is no such ${NAMES[type]}.`, path: [path], missingId: id })
