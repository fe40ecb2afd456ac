import { NETWORK_RULES, type Resource, SERVICE_VIP_BINDINGS } from '../rules/objects.ts'
import type { CallOptions, Cluster } from './cluster.ts'
import { isRecord } from './failure.ts'

/** What is written of each kind: a schema that lacks a part of it refuses the whole. */
const RULE = ['vpcRef', 'vipAddresses', 'protocol', 'port']
const WRITTEN = {
  backends: [...RULE, 'vpcAttachmentRef', 'backends'],
  selector: [...RULE, 'backendSelector', 'backendPort'],
  binding: [
    'targetRef',
    'vipAddress',
    'port',
    'protocol',
    'backendAddress',
    'backendPort',
    'egressKind',
  ],
}

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

/**
 * The capabilities an OpenAPI v3 document tells. There is no dialect where what it takes can't be written
 * whole: every apply would be refused, and what is there reads back without what was written.
 */
export function capabilitiesOf(document: unknown): RuleCapabilities {
  const schemas = Object.values(inside(document, 'components', 'schemas'))
  const fields = fieldsOf(schemas, NETWORK_RULES)
  // A schema with both fields is read as the later dialect.
  const dialect = 'backendSelector' in fields ? 'selector' : 'backends'
  const sessionAffinity = 'sessionAffinity' in fields
  const written = WRITTEN[dialect].every((field) => field in fields)
  const binds = dialect === 'selector' || takesBindings(schemas)
  return { dialect: written && binds ? dialect : undefined, sessionAffinity }
}

/** Where there are none at all, their list says so. */
function takesBindings(schemas: unknown[]): boolean {
  const fields = fieldsOf(schemas, SERVICE_VIP_BINDINGS)
  return (
    !schemas.some(isOf(SERVICE_VIP_BINDINGS)) || WRITTEN.binding.every((field) => field in fields)
  )
}

const fieldsOf = (schemas: unknown[], resource: Resource): Record<string, unknown> =>
  inside(schemas.find(isOf(resource)), 'properties', 'spec', 'properties')

const isOf =
  ({ group, version, kind }: Resource) =>
  (schema: unknown): boolean => {
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
