import { ApiFailure } from '../clusters/cluster.ts'
import type { Trouble } from '../domain/clusters.ts'
import {
  NAMESPACES,
  NETWORK_RULES,
  type Resource,
  VPC_ATTACHMENTS,
  VPCS,
} from '../rules/objects.ts'
import { REASONS, type Reason } from '../rules/reasons.ts'

/** While these can't be read, what rules rest on is kept, and the rules themselves are seen. */
const OF_INVENTORY: ReadonlySet<Resource> = new Set([VPC_ATTACHMENTS, VPCS, NAMESPACES])

/**
 * What a cluster's refusal says that it lacks: the kind, the namespace, or rights for us; undefined:
 * nothing of these. By code and reason of the API server's Status alone.
 */
export function lackOf(error: unknown): Reason | undefined {
  if (!(error instanceof ApiFailure)) return undefined
  if (error.namespaceMissing) return 'NamespaceMissing'
  if (error.code === 401 || error.code === 403) return 'RightsMissing'
  // Not the object isn't there, whose Status would have a reason, but its kind.
  if (error.code === 404 && error.reason === undefined) return 'SchemaMissing'
  return undefined
}

/** What a write that failed says of the cluster as a whole. */
export function troubleOfWrite(error: ApiFailure): Trouble | undefined {
  const reason = lackOf(error)
  return reason && { reason, message: `${REASONS[reason]} ${error.message}`, blind: false }
}

/**
 * What a list or watch that failed says of the cluster as a whole. `served`: all that it serves has been
 * seen before.
 */
export function troubleOfFollow(
  kind: Resource,
  error: Error,
  served: boolean,
): Trouble | undefined {
  const lack = lackOf(error)
  const judged = !OF_INVENTORY.has(kind)
  // Where these can't be reached either, the others say it.
  if (lack === undefined)
    return judged
      ? { reason: 'ClusterUnreachable', message: error.message, blind: true }
      : undefined
  const isMissing = lack === 'SchemaMissing'
  // That there are no rules is what the schema is asked for.
  if (isMissing && kind === NETWORK_RULES) return undefined
  const message = `${REASONS[lack]} ${kind.plural}: ${error.message}`
  return { reason: lack, message, blind: !served || (judged && !isMissing) }
}

/** The namespace of the rules isn't there, or won't be for long. */
export const NAMESPACE_MISSING: Trouble = {
  reason: 'NamespaceMissing',
  message: REASONS.NamespaceMissing,
  blind: false,
}
