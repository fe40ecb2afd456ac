import { isDeepStrictEqual } from 'node:util'
import { appendEvent, fieldChanges, SYSTEM } from '../events/append.ts'
import type { VantageProbe } from '../folding/probes.ts'
import type { Querier } from '../querier.ts'
import { PROBES_JSON } from '../reachability/read.ts'
import { refoldReservations } from '../reservations/refold.ts'
import type { Status } from '../status.ts'
import { foldStored, type StoredLoadBalancer } from './stored.ts'

const READ = {
  name: 'read-for-fold',
  text: `
SELECT record, rfc3339(clock_timestamp()) AS now, ${PROBES_JSON} AS probes
FROM load_balancers_json(ARRAY[$1::uuid], NULL, true) AS whole
JOIN load_balancer lb ON lb.id = whole.id`,
}

/** Reads a load balancer with all that a fold needs; undefined when it is gone. */
export async function readForFold(
  client: Querier,
  id: string,
): Promise<{ stored: StoredLoadBalancer; now: string; probes: VantageProbe[] } | undefined> {
  const { rows } = await client.query<{
    record: StoredLoadBalancer
    now: string
    probes: VantageProbe[]
  }>({
    ...READ,
    values: [id],
  })
  const [row] = rows
  return row && { stored: row.record, now: row.now, probes: row.probes }
}

/**
 * Folds the reports of all its clusters into the status of a load balancer, whose row the caller has
 * locked in an earlier statement of the transaction (or two clusters that report at once would each
 * miss the other). Writes nothing where nothing changed. `announce`: the change of status is an event
 * of its own; otherwise it belongs to the change that the caller makes.
 */
export async function refold(
  client: Querier,
  id: string,
  { announce }: { announce: boolean },
): Promise<void> {
  const read = await readForFold(client, id)
  if (read === undefined) return
  const { stored, now, probes } = read
  const status = foldStored(stored, now, probes)
  if (!isDeepStrictEqual(status, stored.status)) {
    const version = announce ? stored.version + 1 : stored.version
    await client.query({
      name: 'write-status',
      text: `
UPDATE load_balancer SET status = $2, phase = $3, observed_generation = $4, version = $5 WHERE id = $1`,
      values: [id, JSON.stringify(status), status.phase, status.observedGeneration, version],
    })
    if (announce) await announceStatus(client, stored, status, version)
    await refoldReservations(client, id)
  }
}

async function announceStatus(
  client: Querier,
  stored: StoredLoadBalancer,
  status: Status,
  version: number,
): Promise<void> {
  const before = stored.status
  const settled =
    status.observedGeneration === stored.generation &&
    status.observedGeneration !== stored.observedGeneration
  const facts = (of: Status | null) => ({
    phase: of?.phase ?? stored.phase,
    observedGeneration: of?.observedGeneration ?? stored.observedGeneration,
    ...Object.fromEntries(
      (of?.conditions ?? []).map(({ type, status: value, reason }) => [type, `${value} ${reason}`]),
    ),
  })
  const ready = status.conditions.find(({ type }) => type === 'Ready')
  await appendEvent(client, {
    project: stored.project,
    objectKind: 'LoadBalancer',
    objectId: stored.id,
    version,
    generation: stored.generation,
    reason: settled ? 'LoadBalancerSettled' : 'LoadBalancerStatusChanged',
    message: settled
      ? `Generation ${stored.generation} of load balancer "${stored.name}" is in effect.`
      : `Load balancer "${stored.name}" is ${status.phase}: ${ready?.message ?? ''}`,
    actor: SYSTEM,
    changes: fieldChanges(facts(before), facts(status)),
  })
}
