import type { Store } from '../../db/client.ts'
import { transaction } from '../../db/transaction.ts'

/**
 * Opens holds before rules are applied for the first time, and answers the VIPs for which that may be
 * done: not those that another load balancer may still be carried with somewhere.
 */
export async function openHolds(
  store: Store,
  where: { cluster: string; loadBalancer: string },
  wanted: { vip: string; rule: string }[],
): Promise<Set<string>> {
  return transaction(store, async (client) => {
    const { rows } = await client.query<{ vip: string }>({
      name: 'open-holds',
      text: 'SELECT host(vip) AS vip FROM open_holds($1, $2, $3::inet[], $4::text[]) AS vip',
      values: [
        where.cluster,
        where.loadBalancer,
        wanted.map(({ vip }) => vip),
        wanted.map(({ rule }) => rule),
      ],
    })
    return new Set(rows.map(({ vip }) => vip))
  })
}
