import type { Store } from '../../db/client.ts'
import { sqlState, violatedConstraint } from '../../db/failure.ts'
import { retried, rollback, transaction } from '../../db/transaction.ts'
import { inTurn } from '../../db/turns.ts'
import type { Protocol } from '../../rules/wanted.ts'
import { defaultHealthCheck, healthCheckIssues, mergeHealthCheck } from '../healthCheck.ts'
import { hint } from '../hints.ts'
import { hashOf } from '../idempotency.ts'
import { isId, newId } from '../ids.ts'
import { askable, invalidValues, isValid, type Valid, type ValidationIssue } from '../input.ts'
import { byKey } from '../labels.ts'
import { carryTrace } from '../placements/trace.ts'
import type { Planned } from '../plans/plan.ts'
import { rehearse } from '../plans/rehearse.ts'
import type { Querier } from '../querier.ts'
import type { HealthCheckSettings, LoadBalancerRecord } from '../records.ts'
import {
  NotFound,
  PoolExhausted,
  type QuotaExceeded,
  type Refusal,
  ValidationFailed,
} from '../refusals.ts'
import { regionOf } from '../regions.ts'
import { refoldReservations } from '../reservations/refold.ts'
import type { Scope } from '../scope.ts'
import { idempotencyKeyIssues, textIssues } from '../texts.ts'
import { backendIssues, namedBackends, tooManyBackends } from './backendRules.ts'
import {
  type Answer,
  type CreateRefused,
  MOST_RESERVATIONS,
  nameTaken,
  refusalOf,
  tooManyReservations,
} from './createRefusals.ts'
import type { CreateLoadBalancerInput, ProtocolInput } from './inputs.ts'
import { type Made, storedOf, type Wanted } from './made.ts'
import { readLoadBalancers, readStored } from './read.ts'
import { type StoredLoadBalancer, toRecord } from './stored.ts'

/**
 * Creates a load balancer with its IPv6 address, backends and bound reservations, as one transaction
 * in one round trip. With an idempotency key that was used for the same input within 24 hours the
 * load balancer of then is answered, as it is now. With `validateOnly` the answer is the plan.
 */
export async function createLoadBalancer(
  store: Store,
  scope: Scope,
  input: CreateLoadBalancerInput,
): Promise<{ loadBalancer: LoadBalancerRecord } | Planned | Refusal> {
  const protocol = protocolOf(input.protocol)
  const healthCheck = mergeHealthCheck(
    defaultHealthCheck(protocol.name),
    input.healthCheck,
    protocol.name,
  )
  const issues = issuesOf(input, healthCheck, protocol.name)
  const overfull = tooMany(input)
  const id = newId()
  const settle = (answer: CreateRefused) => {
    if (answer.refused === 'INVALID') return new ValidationFailed(issues)
    if (answer.refused === 'OVERFULL' && overfull) return overfull
    return refusalOf(answer, scope, input)
  }
  let answer: { stored: StoredLoadBalancer } | Exclude<Answer, Made>
  try {
    const right = issues.length === 0 && isValid(input)
    const asked = {
      id,
      ...visible(scope, input),
      overfull: overfull !== undefined,
      // With something wrong in it only the checks that come before are made, and nothing is sent
      // that may not be JSON for PostgreSQL.
      ...(right
        ? given(scope, input, protocol, healthCheck)
        : { invalid: true as const, backends: [] }),
    }
    if (input.validateOnly) {
      return await inTurn(store, scope.project, () => plan(store, input, asked, settle))
    }
    answer = await inTurn(store, scope.project, () => ask(store, scope, asked))
  } catch (error) {
    if (sqlState(error) === 'LB001') return new PoolExhausted(input.region, 'IPV6')
    if (violatedConstraint(error) === 'load_balancer_live_name') return nameTaken(input)
    throw error
  }
  if ('refused' in answer) return settle(answer)
  if ('existing' in answer) return existing(store, scope, answer.existing)
  hint(store)
  const { stored } = answer
  return { loadBalancer: toRecord(stored, await regionOf(store, stored.regionId)) }
}

type Asked = { id: string } & ReturnType<typeof visible> &
  (({ invalid: false } & Wanted) | { invalid: true; backends: never[] })

async function ask(
  store: Store,
  { trace }: Scope,
  asked: Asked,
): Promise<{ stored: StoredLoadBalancer } | Exclude<Answer, Made>> {
  const binds = asked.reservations.length > 0
  if (!binds && trace === undefined) {
    const answer = await retried(() => askWith(store.pool, asked))
    return 'at' in answer ? { stored: storedAs(asked, answer) } : answer
  }
  return transaction(store, async (client) => {
    const answer = binds ? await askAndFold(client, asked) : await askWith(client, asked)
    await carryTrace(client, asked.id, trace)
    if (!('at' in answer)) return answer
    const [read] = binds
      ? await readStored(client, { project: asked.project, ids: [asked.id] })
      : []
    return { stored: read ?? storedAs(asked, answer) }
  })
}

function storedAs(asked: Asked, made: Made): StoredLoadBalancer {
  if (asked.invalid) throw new Error('what is not valid was created')
  return storedOf(asked, made)
}

async function askAndFold(client: Querier, asked: Asked): Promise<Answer> {
  const answer = await askWith(client, asked)
  if ('at' in answer) await refoldReservations(client, [asked.id])
  return answer
}

/** The same, undone again. The address that it took is the one that would be next now. */
async function plan(
  store: Store,
  { backends, ipv4Reservations }: CreateLoadBalancerInput,
  asked: Asked,
  settle: (answer: CreateRefused) => Refusal,
): Promise<Planned | Refusal> {
  const reservations = ipv4Reservations ?? []
  const named = namedBackends(backends ?? [])
  for (const [index, id] of reservations.entries()) {
    named.set(id, ['ipv4Reservations', String(index)])
  }
  const about = { loadBalancers: [asked.id], reservations: reservations.filter(isId), named }
  return transaction(store, async (client) =>
    rollback(
      await rehearse(client, about, async () => {
        const answer = await askAndFold(client, asked)
        return 'refused' in answer ? settle(answer) : []
      }),
    ),
  )
}

async function askWith(client: Querier, asked: Asked): Promise<Answer> {
  const { rows } = await client.query<{ answer: Answer }>({
    name: 'create-load-balancer',
    text: 'SELECT create_load_balancer($1) AS answer',
    values: [JSON.stringify(asked)],
  })
  const answer = rows[0]?.answer
  if (answer === undefined) throw new Error('create_load_balancer gave no answer')
  return answer
}

/** What is looked for before the input itself is looked at. */
const visible = (scope: Scope, input: CreateLoadBalancerInput) => ({
  project: scope.project,
  vpc: isId(input.vpc) ? input.vpc : NOBODY,
  region: askable(input.region),
  reservations: (input.ipv4Reservations ?? []).map((id) => (isId(id) ? id : NOBODY)),
})

type ValidInput = Valid<CreateLoadBalancerInput>

const given = (
  scope: Scope,
  input: ValidInput,
  protocol: { name: Protocol; port: number },
  healthCheck: HealthCheckSettings,
) => {
  const wanted = wantedOf(input, protocol, healthCheck)
  return {
    ...wanted,
    invalid: false as const,
    actor: scope.actor,
    backends: wanted.backends.map((backend) => ({ id: newId(), ...backend })),
    idempotencyKey: input.idempotencyKey ?? null,
    inputHash: input.idempotencyKey ? hashOf(meant(scope, input, wanted)) : null,
    eventMessage: `Load balancer "${input.name}" was created.`,
  }
}

/** What a key stands for: defaults as what they are, and in one order what has none. */
const meant = (scope: Scope, input: ValidInput, wanted: ReturnType<typeof wantedOf>) => {
  const named = visible(scope, input)
  const labels = byKey(wanted.labels)
  return { ...wanted, ...named, labels, reservations: named.reservations.toSorted() }
}

const wantedOf = (
  input: ValidInput,
  protocol: { name: Protocol; port: number },
  healthCheck: HealthCheckSettings,
) => ({
  name: input.name,
  displayName: input.displayName ?? null,
  description: input.description ?? null,
  labels: input.labels ?? [],
  protocol: protocol.name,
  port: protocol.port,
  sessionAffinity: input.sessionAffinity ?? 'NONE',
  healthCheck,
  backends: (input.backends ?? []).map((backend) => ({
    address: backend.address,
    name: backend.name ?? null,
    adminState: backend.adminState ?? 'ENABLED',
  })),
  deletionProtection: input.deletionProtection ?? false,
})

/** The id of nothing: what isn't an id is looked for like one, and not found alike. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

function protocolOf(input: ProtocolInput): { name: Protocol; port: number } {
  const name = input.udp ? 'UDP' : 'TCP'
  const port = (input.udp ?? input.tcp)?.port
  // An invalid port is among the issues; nothing is written then.
  return { name, port: typeof port === 'number' ? port : 1 }
}

function issuesOf(
  input: CreateLoadBalancerInput,
  healthCheck: HealthCheckSettings,
  protocol: Protocol,
): ValidationIssue[] {
  const reservations = input.ipv4Reservations ?? []
  return [
    ...invalidValues(input),
    ...textIssues(input),
    ...backendIssues(input.backends ?? [], 'backends'),
    ...healthCheckIssues(healthCheck, protocol),
    ...idempotencyKeyIssues(input.idempotencyKey),
    ...reservations.flatMap((id, index) =>
      reservations.indexOf(id) === index
        ? []
        : [
            {
              code: 'DUPLICATE',
              message: 'This reservation is given twice.',
              path: ['ipv4Reservations', String(index)],
              suggestion: null,
            },
          ],
    ),
  ]
}

function tooMany(input: CreateLoadBalancerInput): QuotaExceeded | undefined {
  const reservations = input.ipv4Reservations?.length ?? 0
  if (reservations > MOST_RESERVATIONS) return tooManyReservations(reservations)
  return tooManyBackends(input.backends?.length ?? 0)
}

async function existing(store: Store, scope: Scope, id: string) {
  const found = await readLoadBalancers(store, { project: scope.project, ids: [id] })
  const loadBalancer = found.get(id)
  if (loadBalancer !== undefined) return { loadBalancer }
  return new NotFound({
    message: 'The load balancer that this idempotency key made is gone.',
    path: ['idempotencyKey'],
    hint: 'Use a new key to make a new one.',
    missingId: id,
  })
}
