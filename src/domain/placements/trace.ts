import type { Querier } from '../querier.ts'

/**
 * Has the placements that a change just asked for worked as part of its trace, in the transaction of the
 * change. What was asked before and isn't applied yet is worked with it, so it joins that trace.
 */
export async function carryTrace(
  client: Querier,
  loadBalancer: string,
  trace: string | undefined,
): Promise<void> {
  if (trace === undefined) return
  await client.query({
    name: 'carry-trace',
    text: 'UPDATE placement SET trace = $2 WHERE load_balancer_id = $1 AND asked > applied',
    values: [loadBalancer, trace],
  })
}
