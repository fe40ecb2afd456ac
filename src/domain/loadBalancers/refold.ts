import { isDeepStrictEqual } from 'node:util'
import { type FieldChange, fieldChanges, SYSTEM } from '../events/append.ts'
import type { EventReason } from '../events/reasons.ts'
import type { VantageProbe } from '../folding/probes.ts'
import type { Querier } from '../querier.ts'
import { PROBES_JSON } from '../reachability/read.ts'
import type { StatusCondition } from '../records.ts'
import { refoldReservations } from '../reservations/refold.ts'
import type { BackendStatus, Status, VipStatus } from '../status.ts'
import { foldStored, type StoredLoadBalancer } from './stored.ts'

type ForFold = { stored: StoredLoadBalancer; now: string; probes: VantageProbe[] }

/** Reads a load balancer with all that a fold needs; undefined when it is gone. */
export async function readForFold(client: Querier, id: string): Promise<ForFold | undefined> {
  return (await readAllForFold(client, [id]))[0]
}

async function readAllForFold(client: Querier, ids: readonly string[]): Promise<ForFold[]> {
  const { rows } = await client.query<ForFold>({
    name: 'read-for-fold',
    text: `
SELECT record AS stored, rfc3339(clock_timestamp()) AS now, ${PROBES_JSON} AS probes
FROM load_balancers_json($1::uuid[], NULL, true) AS whole
JOIN load_balancer lb ON lb.id = whole.id`,
    values: [ids],
  })
  return rows
}

/** `refoldAll` of one. */
export function refold(client: Querier, id: string, options: { announce: boolean }): Promise<void> {
  return refoldAll(client, [id], options)
}

/**
 * Folds the reports of all their clusters into the status of load balancers, whose rows the caller has
 * locked in an earlier statement of the transaction (or two clusters that report at once would each
 * miss the other). Writes nothing where nothing changed. `announce`: a change of status is an event
 * of its own; otherwise it belongs to the change that the caller makes. `letGo`: those of them that let go of
 * an address somewhere, which their reservations tell in any case.
 */
export async function refoldAll(
  client: Querier,
  ids: readonly string[],
  { announce, letGo = [] }: { announce: boolean; letGo?: readonly string[] },
): Promise<void> {
  if (ids.length === 0) return
  const folded = (await readAllForFold(client, ids)).flatMap(({ stored, now, probes }) => {
    const status = foldStored(stored, now, probes)
    if (isDeepStrictEqual(status, stored.status)) return []
    const version = announce ? stored.version + 1 : stored.version
    const { phase, observedGeneration: observed } = status
    const event = announce ? announcement(stored, status) : null
    return { id: stored.id, status, phase, observed, version, event }
  })
  const followed = folded.length === 0 ? [] : await write(client, folded)
  await refoldReservations(client, [...new Set([...followed, ...letGo])])
}

/** Answers those that reservations follow. */
async function write(client: Querier, folded: readonly object[]): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>({
    name: 'write-statuses',
    text: 'SELECT id FROM write_statuses($1) AS id',
    values: [JSON.stringify(folded)],
  })
  return rows.map(({ id }) => id)
}

/** The event of a new status, as `write_statuses` takes it. */
function announcement(stored: StoredLoadBalancer, status: Status) {
  const before = stored.status
  const settled =
    status.observedGeneration === stored.generation &&
    status.observedGeneration !== stored.observedGeneration
  const facts = (of: Status | null) => ({
    phase: of?.phase ?? stored.phase,
    observedGeneration: of?.observedGeneration ?? stored.observedGeneration,
    ...Object.fromEntries(
      (of?.conditions ?? []).map((condition) => [condition.type, said(condition)]),
    ),
  })
  const ready = status.conditions.find(({ type }) => type === 'Ready')
  const reason: EventReason = settled ? 'LoadBalancerSettled' : 'LoadBalancerStatusChanged'
  return {
    reason,
    message: settled
      ? `Generation ${stored.generation} of load balancer "${stored.name}" is in effect.`
      : `Load balancer "${stored.name}" is ${status.phase}: ${ready?.message ?? ''}`,
    actor: SYSTEM,
    changes: [
      ...fieldChanges(facts(before), facts(status)),
      ...(before === null ? [] : partChanges(stored, before, status)),
    ],
  }
}

/** What changed of addresses and backends: it may be all that did. */
function partChanges(
  { backends }: StoredLoadBalancer,
  before: Status,
  after: Status,
): FieldChange[] {
  const within = (path: string[], was: object | undefined, is: object | undefined) =>
    fieldChanges({ ...was }, { ...is }).map((change) => ({
      ...change,
      path: [...path, ...change.path],
    }))
  return [
    ...Object.entries(after.vips).flatMap(([address, vip]) =>
      within(['addresses', address], vipFacts(before.vips[address]), vipFacts(vip)),
    ),
    ...backends.flatMap(({ id, address }) =>
      within(
        ['backends', address],
        backendFacts(before.backends[id]),
        backendFacts(after.backends[id]),
      ),
    ),
  ]
}

const said = ({ status, reason }: StatusCondition) => `${status} ${reason}`

const vipFacts = (vip: VipStatus | undefined) =>
  vip && {
    provisioned: said(vip.provisioned),
    advertised: said(vip.advertised),
    reachable: said(vip.reachable),
  }

const backendFacts = (backend: BackendStatus | undefined) =>
  backend && { resolved: said(backend.resolved), serving: backend.serving }
