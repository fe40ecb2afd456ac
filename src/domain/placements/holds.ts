import type { Store } from '../../db/client.ts'
import { sqlState } from '../../db/failure.ts'
import { retried } from '../../db/transaction.ts'
import { LeaseLost, type Ownership } from './ownership.ts'

/**
 * Opens holds before rules are applied for the first time, and answers the VIPs for which that may be
 * done: not those that another load balancer may still be carried with somewhere.
 */
export async function openHolds(
  store: Store,
  owner: Ownership,
  loadBalancer: string,
  wanted: { vip: string; rule: string }[],
): Promise<Set<string>> {
  try {
    // A transaction by itself, in one round trip.
    const { rows } = await retried(() =>
      store.pool.query<{ vip: string }>({
        name: 'open-holds',
        text: 'SELECT host(vip) AS vip FROM open_holds($1, $2, $3, $4::inet[], $5::text[]) AS vip',
        values: [
          owner.cluster,
          owner.epoch,
          loadBalancer,
          wanted.map(({ vip }) => vip),
          wanted.map(({ rule }) => rule),
        ],
      }),
    )
    return new Set(rows.map(({ vip }) => vip))
  } catch (error) {
    if (sqlState(error) === 'LB002')
      throw new LeaseLost(`cluster ${owner.cluster} has another owner`)
    throw error
  }
}
