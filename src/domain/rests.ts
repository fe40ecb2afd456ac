/**
 * Each change of a backend set moves flows. So after one that health or the inventory made, from whatever
 * cluster, a load balancer rests for so long (ms), and what comes of them meanwhile goes together then.
 */
export const REST = 1_000
