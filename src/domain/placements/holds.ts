import type { Store } from '../../db/client.ts'
import { sqlState } from '../../db/failure.ts'
import { retried } from '../../db/transaction.ts'
import { LeaseLost, type Ownership } from './ownership.ts'

/** A VIP that is to get a rule of a name in the cluster. */
export type HoldWish = { loadBalancer: string; vip: string; rule: string }

/**
 * Opens holds before rules are applied for the first time, and answers those for which that may be
 * done, each by `holdKey`: not those that another load balancer may still be carried with somewhere.
 */
export async function openHolds(
  store: Store,
  owner: Ownership,
  wanted: readonly HoldWish[],
): Promise<ReadonlySet<string>> {
  try {
    // A transaction by itself, in one round trip.
    const { rows } = await retried(() =>
      store.pool.query<{ loadBalancer: string; vip: string }>({
        name: 'open-holds',
        text: `
SELECT load_balancer AS "loadBalancer", host(vip) AS vip FROM open_holds($1, $2, $3::uuid[], $4::inet[], $5::text[])`,
        values: [
          owner.cluster,
          owner.epoch,
          wanted.map(({ loadBalancer }) => loadBalancer),
          wanted.map(({ vip }) => vip),
          wanted.map(({ rule }) => rule),
        ],
      }),
    )
    return new Set(rows.map(holdKey))
  } catch (error) {
    if (sqlState(error) === 'LB002')
      throw new LeaseLost(`cluster ${owner.cluster} has another owner`)
    throw error
  }
}

/** Tells one hold of a cluster from another. */
export const holdKey = ({ loadBalancer, vip }: { loadBalancer: string; vip: string }): string =>
  `${loadBalancer} ${vip}`
