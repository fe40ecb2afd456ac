import { PrismaPg } from '@prisma/adapter-pg'
import pg from 'pg'
import { PrismaClient } from './generated/client.ts'

/** Our database: the pool for statements of our own, Prisma over the same connections. */
export type Store = {
  pool: pg.Pool
  prisma: PrismaClient
  close(): Promise<void>
}

/**
 * Our statements are prepared once and sent thousands of times with much the same values. Left to
 * itself PostgreSQL plans the hot ones anew at every call, since one id looks cheaper than the ten it
 * assumes: half of a create's and most of a read's time (measured). None is large enough for JIT.
 */
const PLANNING = '-c plan_cache_mode=force_generic_plan -c jit=off'
/** How long (ms) a statement may take, and a transaction in all: the server ends what takes longer. */
export const DEADLINE = 5_000
/**
 * So much later (ms) nothing is awaited any more from a server that didn't say so. More than this process may
 * be too busy to read what the server says: only that tells who asked to come again.
 */
const GRACE = 3_000
/**
 * A process that is paused in the middle of a transaction would keep its locks, and with them clusters
 * that nobody then could take over. So the server ends what idles for half as long (ms) as a transaction
 * may take in all: who waits for such a lock still has it in time.
 */
const SETTINGS = `${PLANNING} -c idle_in_transaction_session_timeout=2500`

/**
 * Opens the store; nothing is sent before the first query. By the pool, BIGINT (so also `count(*)`)
 * comes as a number, and a value that a number can't hold exactly fails the query; timestamptz is a
 * Date, json and jsonb are parsed, inet, cidr, uuid, xid8 and numeric are text. Prisma keeps its own
 * conversions. `onError` hears of idle connections that broke (the pool replaces them).
 */
export function openStore(options: {
  connectionString: string
  maxConnections?: number
  onError?: (error: Error) => void
  /** Another one than `DEADLINE`, for statements outside of transactions. */
  deadline?: number
}): Store {
  const { deadline = DEADLINE } = options
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.maxConnections ?? 10,
    connectionTimeoutMillis: 10_000,
    options: `${SETTINGS} -c statement_timeout=${deadline}`,
    query_timeout: deadline + GRACE,
    types: { getTypeParser },
  })
  // Without listeners a server that goes away ends the process: through the pool while a connection
  // is idle, through the connection while it is lent out (there the next query fails too).
  // What pg attaches to it (the whole client, its statements) is in no log's interest.
  pool.on('error', ({ message }) => options.onError?.(new Error(message)))
  pool.on('connect', (client) => client.on('error', () => undefined))
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
  return {
    pool,
    prisma,
    async close() {
      await prisma.$disconnect()
      await pool.end()
    },
  }
}

const exactInteger = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`${text} doesn't fit a number exactly`)
  return value
}

/** One dimension, `{1,NULL,3}`: we have no other. */
const exactIntegers = (text: string): (number | null)[] =>
  text === '{}'
    ? []
    : text
        .slice(1, -1)
        .split(',')
        .map((item) => (item === 'NULL' ? null : exactInteger(item)))

/** pg's own parsers, but for int8 (type 20) and int8[] (1016). */
const getTypeParser: pg.CustomTypesConfig['getTypeParser'] = (oid, format = 'text') => {
  if (format === 'text' && Number(oid) === 20) return exactInteger
  if (format === 'text' && Number(oid) === 1016) return exactIntegers
  return pg.types.getTypeParser(oid, format)
}
