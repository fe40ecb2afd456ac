import { isDeepStrictEqual } from 'node:util'
import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import type { Protocol } from '../../rules/wanted.ts'
import { type FieldChange, fieldChanges } from '../events/append.ts'
import { defaultHealthCheck, healthCheckIssues, mergeHealthCheck } from '../healthCheck.ts'
import { invalidValues, setAndReset, type ValidationIssue } from '../input.ts'
import type { Planned } from '../plans/plan.ts'
import type { HealthCheckSettings, Label, LoadBalancerRecord } from '../records.ts'
import { NameTaken, type Refusal } from '../refusals.ts'
import type { Scope } from '../scope.ts'
import { textIssues } from '../texts.ts'
import { changeLoadBalancer, type Decision } from './change.ts'
import type { LoadBalancerField, UpdateLoadBalancerInput } from './inputs.ts'
import type { StoredLoadBalancer } from './stored.ts'

/** What an update may change, as one set of values. */
type Fields = Pick<
  LoadBalancerRecord,
  | 'name'
  | 'displayName'
  | 'description'
  | 'protocol'
  | 'port'
  | 'sessionAffinity'
  | 'deletionProtection'
> & { labels: Label[]; healthCheck: HealthCheckSettings }

/** A change of one of these touches rules: the others are words about the load balancer. */
const IN_RULES = ['protocol', 'port', 'sessionAffinity', 'healthCheck'] as const

/** Fields absent or null are kept, `reset` ones go back to their defaults; what stays the same is no change. */
export async function updateLoadBalancer(
  store: Store,
  scope: Scope,
  input: UpdateLoadBalancerInput,
): Promise<{ loadBalancer: LoadBalancerRecord } | Planned | Refusal> {
  const { id, expectedGeneration, validateOnly } = input
  const issues = (current: StoredLoadBalancer) => issuesOf(current, input)
  const ask = { id, path: ['id'], expectedGeneration, issues, validateOnly }
  try {
    return await changeLoadBalancer(store, scope, ask, (current) => decide(current, input))
  } catch (error) {
    if (violatedConstraint(error) !== 'load_balancer_live_name') throw error
    return new NameTaken({
      message: `The region has a load balancer named "${String(input.name)}" already.`,
      path: ['name'],
      hint: 'Choose another name.',
      takenName: String(input.name),
    })
  }
}

const FIELD_OF = {
  DISPLAY_NAME: 'displayName',
  DESCRIPTION: 'description',
  LABELS: 'labels',
  SESSION_AFFINITY: 'sessionAffinity',
  HEALTH_CHECK: 'healthCheck',
  DELETION_PROTECTION: 'deletionProtection',
} as const satisfies Record<LoadBalancerField, keyof UpdateLoadBalancerInput>

function issuesOf(current: StoredLoadBalancer, input: UpdateLoadBalancerInput): ValidationIssue[] {
  const after = merged(fieldsOf(current), input)
  // What was taken before a rule got stricter, and stays as it is, keeps nothing else from being changed.
  const stays =
    after.protocol === current.protocol && isDeepStrictEqual(after.healthCheck, current.healthCheck)
  return [
    ...invalidValues(input),
    ...textIssues(input),
    ...setAndReset(input, FIELD_OF),
    ...(stays ? [] : healthCheckIssues(after.healthCheck, after.protocol)),
  ]
}

function decide(current: StoredLoadBalancer, input: UpdateLoadBalancerInput): Decision {
  const before = fieldsOf(current)
  const after = merged(before, input)
  const changes = fieldChanges(flat(before), flat(after))
  const touched = new Set(changes.map(({ path }) => path[0]))
  return {
    changes,
    reason: 'LoadBalancerUpdated',
    message: `Load balancer "${after.name}" was changed: ${describe(changes)}.`,
    touchesRules: IN_RULES.some((field) => touched.has(field)),
    async write(client) {
      await client.query(
        `UPDATE load_balancer SET name = $2, display_name = $3, description = $4, labels = $5,
           protocol = $6, port = $7, session_affinity = $8, health_check = $9, deletion_protection = $10
         WHERE id = $1`,
        [
          current.id,
          after.name,
          after.displayName,
          after.description,
          JSON.stringify(after.labels),
          after.protocol,
          after.port,
          after.sessionAffinity,
          JSON.stringify(after.healthCheck),
          after.deletionProtection,
        ],
      )
      if (before.healthCheck.enabled === after.healthCheck.enabled) return
      // Turned off nobody looks any more; turned on nothing is known yet.
      await client.query(
        `UPDATE backend SET health_state = health.state, health_reason = health.reason,
           health_message = health.message, health_since = clock_timestamp(), health_flaps = NULL
         FROM backend AS now, first_health($3, $2, now.admin_state) AS health
         WHERE now.id = backend.id AND backend.load_balancer_id = $1`,
        [current.id, after.healthCheck.enabled, current.regionId],
      )
    },
  }
}

const fieldsOf = (current: StoredLoadBalancer): Fields => ({
  name: current.name,
  displayName: current.displayName,
  description: current.description,
  labels: current.labels,
  protocol: current.protocol,
  port: current.port,
  sessionAffinity: current.sessionAffinity,
  healthCheck: current.healthCheck,
  deletionProtection: current.deletionProtection,
})

function merged(before: Fields, input: UpdateLoadBalancerInput): Fields {
  const reset = new Set<LoadBalancerField>(input.reset ?? [])
  const { protocol, port } = protocolOf(before, input)
  const base = reset.has('HEALTH_CHECK')
    ? defaultHealthCheck(protocol)
    : carriedOver(before, protocol)
  return {
    name: typeof input.name === 'string' ? input.name : before.name,
    displayName: reset.has('DISPLAY_NAME') ? null : (input.displayName ?? before.displayName),
    description: reset.has('DESCRIPTION') ? null : (input.description ?? before.description),
    labels: reset.has('LABELS') ? [] : (input.labels ?? before.labels),
    protocol,
    port,
    sessionAffinity: reset.has('SESSION_AFFINITY')
      ? 'NONE'
      : (input.sessionAffinity ?? before.sessionAffinity),
    healthCheck: mergeHealthCheck(base, input.healthCheck, protocol),
    deletionProtection: reset.has('DELETION_PROTECTION')
      ? false
      : (input.deletionProtection ?? before.deletionProtection),
  }
}

/**
 * The health check under another protocol: one that nobody set is that protocol's own default, and
 * one that can't probe UDP is off until it is given a port.
 */
function carriedOver({ protocol: former, healthCheck }: Fields, protocol: Protocol) {
  if (protocol === former) return healthCheck
  if (isDeepStrictEqual(healthCheck, defaultHealthCheck(former)))
    return defaultHealthCheck(protocol)
  if (protocol === 'TCP' || healthCheck.probe.port !== null) return healthCheck
  return { ...healthCheck, enabled: false }
}

function protocolOf(
  before: Fields,
  { protocol }: UpdateLoadBalancerInput,
): { protocol: Protocol; port: number } {
  const given = protocol?.udp ?? protocol?.tcp
  if (typeof given?.port !== 'number') return { protocol: before.protocol, port: before.port }
  return { protocol: protocol?.udp ? 'UDP' : 'TCP', port: given.port }
}

/** Fields as the history names them: the health check's one by one. */
function flat(fields: Fields): Record<string, unknown> {
  const { healthCheck, ...rest } = fields
  const settings = Object.entries(healthCheck).map(([key, value]) => [`healthCheck.${key}`, value])
  return { ...rest, ...Object.fromEntries(settings) }
}

const describe = (changes: FieldChange[]): string =>
  changes.map(({ path }) => path.join('.')).join(', ')
