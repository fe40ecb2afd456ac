import type { Pool, PoolClient } from 'pg'

/** Where a statement is sent: the pool, or the connection of a running transaction. */
export type Querier = Pick<Pool, 'query'> | Pick<PoolClient, 'query'>
