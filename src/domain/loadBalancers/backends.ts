import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import type { BackendAdminState } from '../../rules/wanted.ts'
import { type FieldChange, fieldChanges } from '../events/append.ts'
import { newId } from '../ids.ts'
import { InvalidValue, invalidValues, type ValidationIssue } from '../input.ts'
import type { Planned } from '../plans/plan.ts'
import type { LoadBalancerRecord } from '../records.ts'
import { BackendsOutsideRegion, NameTaken, NotFound, Refusal } from '../refusals.ts'
import { regionOf } from '../regions.ts'
import type { Scope } from '../scope.ts'
import { backendIssues, namedBackends, tooManyBackends } from './backendRules.ts'
import { type Ask, changeLoadBalancer, type Decision } from './change.ts'
import { vpcNotOwned } from './createRefusals.ts'
import type {
  AddBackendsInput,
  BackendInput,
  RemoveBackendsInput,
  SetBackendsInput,
  UpdateBackendsInput,
} from './inputs.ts'
import type { StoredLoadBalancer } from './stored.ts'

type Changed = { loadBalancer: LoadBalancerRecord }
type ChangedBackends = Changed & { backends: string[] }

/** A backend as it shall be; `id` where it is there already. */
type Wanted = { id?: string; address: string; name: string | null; adminState: BackendAdminState }

/** Adds; an address that is already there is left as it is. Answers the ids of all that were named. */
export async function addBackends(
  store: Store,
  scope: Scope,
  input: AddBackendsInput,
): Promise<ChangedBackends | Planned | Refusal> {
  const issues = [...invalidValues(input), ...backendIssues(input.backends, 'backends')]
  const changed = await changeLoadBalancer(
    store,
    scope,
    askOf(input, issues),
    (current, client) => {
      const present = new Set(current.backends.map(({ address }) => address))
      const added = input.backends.map(toWanted).filter(({ address }) => !present.has(address))
      return decide(store, client, current, [...current.backends, ...added])
    },
  )
  return withBackends(changed, input.backends)
}

/** Removes; an address that isn't there is no error. */
export function removeBackends(
  store: Store,
  scope: Scope,
  input: RemoveBackendsInput,
): Promise<Changed | Planned | Refusal> {
  const removed = new Set(input.addresses)
  return changeLoadBalancer(store, scope, askOf(input, invalidValues(input)), (current, client) =>
    decide(
      store,
      client,
      current,
      current.backends.filter(({ address }) => !removed.has(address)),
    ),
  )
}

/** Makes the set exactly this one; backends that stay keep their id, health and history. */
export function setBackends(
  store: Store,
  scope: Scope,
  input: SetBackendsInput,
): Promise<Changed | Planned | Refusal> {
  const issues = [...invalidValues(input), ...backendIssues(input.backends, 'backends')]
  return changeLoadBalancer(store, scope, askOf(input, issues), (current, client) => {
    const present = new Map(current.backends.map((backend) => [backend.address, backend]))
    const wanted = input.backends.map((backend) => {
      const { id } = present.get(String(backend.address)) ?? {}
      return id === undefined ? toWanted(backend) : { ...toWanted(backend), id }
    })
    return decide(store, client, current, wanted)
  })
}

/** Changes some, by address, as one change; what isn't named in a change is kept. */
export async function updateBackends(
  store: Store,
  scope: Scope,
  input: UpdateBackendsInput,
): Promise<ChangedBackends | Planned | Refusal> {
  const issues = [...invalidValues(input), ...backendIssues(input.backends, 'backends')]
  input.backends.forEach((change, index) => {
    if (change.resetName && change.name) {
      issues.push({
        code: 'SET_AND_RESET',
        message: 'A name is given and taken away at once.',
        path: ['backends', String(index), 'resetName'],
        suggestion: null,
      })
    }
  })
  const changed = await changeLoadBalancer(
    store,
    scope,
    { ...askOf(input, issues), missing: (current) => missingBackend(current, input) },
    (current, client) => {
      const changes = new Map(input.backends.map((change) => [String(change.address), change]))
      const wanted = current.backends.map((backend): Wanted => {
        const change = changes.get(backend.address)
        if (change === undefined) return backend
        const name = typeof change.name === 'string' ? change.name : backend.name
        return {
          id: backend.id,
          address: backend.address,
          name: change.resetName ? null : name,
          adminState: change.adminState ?? backend.adminState,
        }
      })
      return decide(store, client, current, wanted)
    },
  )
  return withBackends(changed, input.backends)
}

const askOf = (
  input: AddBackendsInput | RemoveBackendsInput | UpdateBackendsInput,
  issues: ValidationIssue[],
): Ask => ({
  id: input.loadBalancer,
  path: ['loadBalancer'],
  expectedGeneration: input.expectedGeneration,
  issues: () => issues,
  validateOnly: input.validateOnly,
  named: 'backends' in input ? namedBackends(input.backends) : new Map(),
})

const toWanted = (backend: BackendInput): Wanted => ({
  address: String(backend.address),
  name: typeof backend.name === 'string' ? backend.name : null,
  adminState: backend.adminState ?? 'ENABLED',
})

/** The first address that could be a backend's and is none's. */
function missingBackend(
  current: StoredLoadBalancer,
  { backends }: UpdateBackendsInput,
): NotFound | undefined {
  const present = new Set(current.backends.map(({ address }) => address))
  for (const [index, { address }] of backends.entries()) {
    if (address instanceof InvalidValue || present.has(address)) continue
    return new NotFound({
      message: `${address} is no backend of this load balancer.`,
      path: ['backends', String(index), 'address'],
      hint: 'Add it by addBackends.',
      missingId: null,
    })
  }
  return undefined
}

function withBackends(
  changed: Changed | Planned | Refusal,
  named: readonly { address: string | InvalidValue }[],
): ChangedBackends | Planned | Refusal {
  if (changed instanceof Refusal || 'plan' in changed) return changed
  const ids = new Map(changed.loadBalancer.backends.map(({ id, address }) => [address, id]))
  return { ...changed, backends: named.flatMap(({ address }) => ids.get(String(address)) ?? []) }
}

/** What it takes to get from the backends that are to those that shall be. */
async function decide(
  store: Store,
  client: PoolClient,
  current: StoredLoadBalancer,
  wanted: Wanted[],
): Promise<Decision | Refusal> {
  const before = new Map(current.backends.map((backend) => [backend.id, backend]))
  const kept = new Set(wanted.flatMap(({ id }) => id ?? []))
  const removed = current.backends.filter(({ id }) => !kept.has(id))
  const added = wanted.filter(({ id }) => id === undefined)
  const edited = wanted.filter(({ id, name, adminState }) => {
    const now = id === undefined ? undefined : before.get(id)
    return now !== undefined && (now.name !== name || now.adminState !== adminState)
  })
  const refused =
    (added.length > 0 ? await refuseAdded(store, client, current, added) : undefined) ??
    tooManyBackends(wanted.length) ??
    nameTwice(wanted)
  if (refused) return refused
  const describe = ({ name, adminState }: Pick<Wanted, 'name' | 'adminState'>) => ({
    name,
    adminState,
  })
  const changes: FieldChange[] = [
    ...removed.map(({ address }) => ({
      path: ['backends', address],
      before: address,
      after: null,
    })),
    ...added.map(({ address }) => ({ path: ['backends', address], before: null, after: address })),
    ...edited.flatMap((backend) => {
      const now = before.get(backend.id ?? '')
      return fieldChanges(now ? describe(now) : {}, describe(backend)).map((change) => ({
        ...change,
        path: ['backends', backend.address, ...change.path],
      }))
    }),
  ]
  const names = added.length + removed.length > 0
  const states = edited.some(
    ({ id, adminState }) => before.get(id ?? '')?.adminState !== adminState,
  )
  return {
    changes,
    reason: 'BackendsChanged',
    message: `Backends of load balancer "${current.name}" were changed: ${added.length} added, ${removed.length} removed, ${edited.length} edited.`,
    touchesRules: names || states,
    write: (transaction) => write(transaction, current, { removed, added, edited }),
  }
}

/** The VPC must still be the project's, and none may be known to live in another region. */
async function refuseAdded(
  store: Store,
  client: PoolClient,
  current: StoredLoadBalancer,
  added: Wanted[],
): Promise<Refusal | undefined> {
  const { rows } = await client.query<{ owned: boolean; outside: string[] }>(
    `SELECT vpc.owned AND vpc.project = $4 AS owned, ARRAY(
       SELECT host(wanted.address) FROM unnest($2::inet[]) WITH ORDINALITY AS wanted (address, place)
       JOIN endpoint ON endpoint.vpc_id = vpc.id AND endpoint.address = wanted.address
       JOIN cluster ON cluster.id = endpoint.cluster_id AND cluster.forgotten_at IS NULL
       GROUP BY wanted.address, wanted.place HAVING bool_and(cluster.region_id <> $3)
       ORDER BY wanted.place) AS outside
     FROM vpc WHERE vpc.id = $1 FOR SHARE`,
    [current.vpc.id, added.map(({ address }) => address), current.regionId, current.project],
  )
  const [row] = rows
  if (row === undefined) throw new Error(`load balancer ${current.id} has no VPC`)
  if (!row.owned) return vpcNotOwned(['loadBalancer'])
  if (row.outside.length === 0) return undefined
  const { code } = await regionOf(store, current.regionId, client)
  return new BackendsOutsideRegion(row.outside, code)
}

function nameTwice(wanted: Wanted[]): Refusal | undefined {
  const names = new Set<string>()
  for (const { name } of wanted) {
    if (name === null) continue
    if (names.has(name)) {
      return new NameTaken({
        message: `Another backend of this load balancer is named "${name}".`,
        path: ['backends'],
        hint: 'Choose another name.',
        takenName: name,
      })
    }
    names.add(name)
  }
  return undefined
}

async function write(
  client: PoolClient,
  current: StoredLoadBalancer,
  { removed, added, edited }: { removed: { id: string }[]; added: Wanted[]; edited: Wanted[] },
): Promise<void> {
  // Names may be exchanged: all are let go of before any is taken.
  await client.query('DELETE FROM backend WHERE id = ANY ($1::uuid[])', [
    removed.map(({ id }) => id),
  ])
  await client.query('UPDATE backend SET name = NULL WHERE id = ANY ($1::uuid[])', [
    edited.map(({ id }) => id),
  ])
  const checked = current.healthCheck.enabled
  for (const { id, name, adminState } of edited) {
    // Health is known as long as somebody probes: only entering or leaving DISABLED begins anew.
    await client.query(
      `UPDATE backend SET name = $2, admin_state = $3,
         health_state = CASE WHEN anew THEN health.state ELSE health_state END,
         health_reason = CASE WHEN anew THEN health.reason ELSE health_reason END,
         health_message = CASE WHEN anew THEN health.message ELSE health_message END,
         health_since = CASE WHEN anew THEN clock_timestamp() ELSE health_since END,
         health_flaps = CASE WHEN anew THEN NULL ELSE health_flaps END
       FROM (SELECT id AS it, (admin_state = 'DISABLED') <> ($3 = 'DISABLED') AS anew FROM backend WHERE id = $1) AS now,
         first_health($4, $5, $3) AS health
       WHERE id = now.it`,
      [id, name, adminState, current.regionId, checked],
    )
  }
  for (const { address, name, adminState } of added) {
    await client.query(
      `INSERT INTO backend (id, load_balancer_id, address, name, admin_state, health_state,
         health_reason, health_message, health_since, created_at)
       SELECT $1, $2, $3, $4, $5, state, reason, message, clock_timestamp(), clock_timestamp()
       FROM first_health($6, $7, $5)`,
      [newId(), current.id, address, name, adminState, current.regionId, checked],
    )
  }
}
