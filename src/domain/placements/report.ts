import type { PoolClient } from 'pg'
import type { Store } from '../../db/client.ts'
import { transaction } from '../../db/transaction.ts'
import type { PlacementReport } from '../../rules/report.ts'
import { hint } from '../hints.ts'
import { finishDeletion } from '../loadBalancers/finish.ts'
import { refoldAll } from '../loadBalancers/refold.ts'
import type { Ownership } from './ownership.ts'

/** What a cluster says of a load balancer. */
export type Told = {
  owner: Ownership
  loadBalancer: string
  report: PlacementReport
  /** Everything asked for up to the report's number was applied. */
  applied: boolean
  /** The VIPs of which nothing is left there. */
  gone: string[]
}

/** `over`: there is no such placement any more; `lease-lost`: nothing of it was written. */
export type Outcome = 'taken' | 'over' | 'lease-lost'

/**
 * Takes in what clusters say of load balancers, in one transaction since every statement costs a round trip:
 * the reports themselves (never an older one over a newer; one that tells nothing new writes nothing), what
 * was applied, what is gone; folds it all into the status, once for each load balancer. Ends a placement once
 * it isn't wanted any more and nothing is left, and the load balancer with its last one where it is being
 * deleted. Answers what became of each, in the same order. At most one for each placement.
 */
export async function reportPlacements(store: Store, told: readonly Told[]): Promise<Outcome[]> {
  const outcomes = await transaction(store, async (client) => {
    const taken = await take(client, told)
    const kept = taken.filter(({ lost }) => !lost)
    const letGo = idsOf(kept.filter(({ closed }) => closed))
    await refoldAll(client, idsOf(kept), { announce: true, letGo })
    for (const id of idsOf(kept.filter(({ deleting }) => deleting)))
      await finishDeletion(client, id)
    return taken.map(({ lost, over }): Outcome => (lost ? 'lease-lost' : over ? 'over' : 'taken'))
  })
  hint(store)
  return outcomes
}

/** As `take_reports` answers, in the order of what was told. */
type Answer = { lost: boolean; over: boolean; closed: boolean; deleting: boolean }
type Taken = Answer & { loadBalancer: string }

const idsOf = (taken: Taken[]): string[] => [
  ...new Set(taken.map(({ loadBalancer }) => loadBalancer)),
]

async function take(client: PoolClient, told: readonly Told[]): Promise<Taken[]> {
  const list = told.map(({ owner, loadBalancer, report, applied, gone }, place) => ({
    place,
    ...owner,
    load_balancer: loadBalancer,
    report,
    applied,
    gone,
  }))
  const { rows } = await client.query<Answer>({
    name: 'take-reports',
    text: 'SELECT lost, over, closed, deleting FROM take_reports($1) ORDER BY place',
    values: [JSON.stringify(list)],
  })
  return rows.flatMap((row, place) => {
    const { loadBalancer } = told[place] ?? {}
    return loadBalancer === undefined ? [] : { ...row, loadBalancer }
  })
}

/**
 * Puts a placement off after a failure: due again after `delaySeconds`, unless it was asked for anew
 * meanwhile.
 */
export async function postponePlacement(
  store: Store,
  owner: Ownership,
  loadBalancer: string,
  failure: { asked: number; message: string; delaySeconds: number },
): Promise<void> {
  await store.pool.query({
    name: 'postpone-placement',
    text: `
UPDATE placement SET attempts = attempts + 1, last_error = $4,
  due = CASE WHEN asked = $3 THEN clock_timestamp() + make_interval(secs => $5) ELSE due END
WHERE load_balancer_id = $1 AND cluster_id = $2
  AND EXISTS (SELECT FROM cluster WHERE cluster.id = $2 AND cluster.lease_epoch = $6)`,
    values: [
      loadBalancer,
      owner.cluster,
      failure.asked,
      failure.message.slice(0, 1_000),
      failure.delaySeconds,
      owner.epoch,
    ],
  })
}

/** Makes a placement due, as for drift that was seen: what should be there isn't. */
export async function askPlacement(
  store: Store,
  cluster: string,
  loadBalancer: string,
): Promise<void> {
  await store.pool.query({
    name: 'ask-placement',
    text: `
UPDATE placement SET asked = asked + 1, due = clock_timestamp()
WHERE load_balancer_id = $1 AND cluster_id = $2`,
    values: [loadBalancer, cluster],
  })
}
