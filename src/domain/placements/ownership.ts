import type { PoolClient } from 'pg'

/** The right to speak for a cluster: an epoch that was taken over since is refused. 0: nobody ever had it. */
export type Ownership = { cluster: string; epoch: number }

/** A worker that lost its cluster must stop at once. */
export class LeaseLost extends Error {
  override name = 'LeaseLost'
}

/**
 * Refuses a worker whose cluster was taken over; nobody can take it over before this transaction ends.
 * (Taking over skips locked rows: see renewLeases. Renewing doesn't conflict.)
 */
export async function demandEpoch(
  client: PoolClient,
  { cluster, epoch }: Ownership,
): Promise<void> {
  const { rows } = await client.query({
    name: 'demand-epoch',
    text: 'SELECT FROM cluster WHERE id = $1 AND lease_epoch = $2 FOR KEY SHARE',
    values: [cluster, epoch],
  })
  if (rows.length === 0) throw new LeaseLost(`cluster ${cluster} has another owner`)
}
