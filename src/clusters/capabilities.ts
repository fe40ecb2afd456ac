import { NETWORK_RULES } from '../rules/objects.ts'
import type { CallOptions, Cluster } from './cluster.ts'
import { isRecord } from './failure.ts'

/** What a cluster's NetworkRule can say. */
export type RuleCapabilities = {
  /** Undefined: the cluster has no NetworkRule, or one we can't write. */
  dialect: 'backends' | 'selector' | undefined
  sessionAffinity: boolean
}

/**
 * Reads them from the schema the cluster publishes: any authenticated user may, while CRDs need
 * rights of their own.
 */
export async function readCapabilities(
  cluster: Cluster,
  options: CallOptions = {},
): Promise<RuleCapabilities> {
  const { group, version } = NETWORK_RULES
  return capabilitiesOf(await cluster.openapi(group, version, options))
}

/** The capabilities an OpenAPI v3 document tells. */
export function capabilitiesOf(document: unknown): RuleCapabilities {
  const schemas = Object.values(inside(document, 'components', 'schemas'))
  const fields = inside(schemas.find(isNetworkRule), 'properties', 'spec', 'properties')
  // A schema with both fields is read as the later dialect.
  const dialect =
    'backendSelector' in fields ? 'selector' : 'backends' in fields ? 'backends' : undefined
  return { dialect, sessionAffinity: 'sessionAffinity' in fields }
}

function isNetworkRule(schema: unknown): boolean {
  const { group, version, kind } = NETWORK_RULES
  const kinds: unknown = isRecord(schema) ? schema['x-kubernetes-group-version-kind'] : undefined
  return (
    Array.isArray(kinds) &&
    kinds.some(
      (one) =>
        isRecord(one) &&
        one['group'] === group &&
        one['version'] === version &&
        one['kind'] === kind,
    )
  )
}

/** The record at a path; an empty one where there is none. */
function inside(value: unknown, ...path: string[]): Record<string, unknown> {
  let at = value
  for (const key of path) at = isRecord(at) ? at[key] : undefined
  return isRecord(at) ? at : {}
}
