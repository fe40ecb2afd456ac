import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openStore, type Store } from '../../src/db/client.ts'
import { sqlState, violatedConstraint } from '../../src/db/failure.ts'
import { rollback, TransactionTimeout, transaction } from '../../src/db/transaction.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()
let store: Store

beforeAll(async () => {
  store = openStore({ connectionString: database.url })
  await store.pool.query(`
    CREATE TABLE shelf (
      id int PRIMARY KEY,
      label text CONSTRAINT shelf_label UNIQUE,
      below int CONSTRAINT shelf_below REFERENCES shelf,
      span int4range,
      CONSTRAINT shelf_span EXCLUDE USING gist (span WITH &&)
    );
    INSERT INTO shelf VALUES (1, 'top', NULL, '[1,5)')`)
})
afterAll(() => store.close())

const count = async (): Promise<unknown> =>
  (await store.pool.query('SELECT count(*) AS n FROM shelf')).rows[0]?.n

const raise = (state: string): string => `DO $$ BEGIN RAISE SQLSTATE '${state}'; END $$`

describe('a transaction', () => {
  test('answers what its function returns, and keeps what it wrote', async () => {
    const answer = await transaction(store, async (client) => {
      await client.query('INSERT INTO shelf (id) VALUES (2)')
      return 'done'
    })
    expect(answer).toBe('done')
    expect(await count()).toBe(2)
  })

  test('whose function throws leaves nothing', async () => {
    const failed = transaction(store, async (client) => {
      await client.query('INSERT INTO shelf (id) VALUES (3)')
      throw new RangeError('no')
    })
    await expect(failed).rejects.toThrow(RangeError)
    expect(await count()).toBe(2)
  })

  test('that rolls back leaves nothing and still answers', async () => {
    const answer = await transaction(store, async (client) => {
      await client.query('INSERT INTO shelf (id) VALUES (3)')
      return rollback('refused')
    })
    expect(answer).toBe('refused')
    expect(await count()).toBe(2)
  })

  test.each(['40001', '40P01'])('undone because of others (%s) runs again', async (state) => {
    let runs = 0
    const answer = await transaction(
      store,
      async (client) => {
        runs += 1
        if (runs < 3) await client.query(raise(state))
        return runs
      },
      { random: () => 0 },
    )
    expect(answer).toBe(3)
  })

  test('undone again and again gives up after six runs with the failure', async () => {
    let runs = 0
    const failed = transaction(
      store,
      async (client) => {
        runs += 1
        await client.query(raise('40001'))
      },
      { random: () => 0 },
    )
    await expect(failed).rejects.toSatisfy((error) => sqlState(error) === '40001')
    expect(runs).toBe(6)
  })

  test('that fails otherwise runs once', async () => {
    let runs = 0
    const failed = transaction(store, async (client) => {
      runs += 1
      await client.query(raise('P0001'))
    })
    await expect(failed).rejects.toSatisfy((error) => sqlState(error) === 'P0001')
    expect(runs).toBe(1)
  })

  test('that hangs is undone at its limit, and its connection is not used again', async () => {
    const { promise: never } = Promise.withResolvers<void>()
    let pid: unknown
    const failed = transaction(
      store,
      async (client) => {
        pid = (await client.query('SELECT pg_backend_pid() AS pid')).rows[0]?.pid
        await client.query('INSERT INTO shelf (id) VALUES (9)')
        await never
      },
      { limitMilliseconds: 200 },
    )
    await expect(failed).rejects.toThrow(TransactionTimeout)
    await expect
      .poll(async () => {
        const found = await store.pool.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid])
        return found.rowCount
      })
      .toBe(0)
    expect(await count()).toBe(2)
  })

  test('whose statement hangs is undone at its limit', async () => {
    const failed = transaction(store, (client) => client.query('SELECT pg_sleep(60)'), {
      limitMilliseconds: 200,
    })
    await expect(failed).rejects.toThrow()
  })

  test('whose connection is cut between statements fails without ending the process', async () => {
    const failed = transaction(store, async (client) => {
      const { rows } = await client.query('SELECT pg_backend_pid() AS pid')
      const { promise: cut, resolve } = Promise.withResolvers<unknown>()
      client.once('error', resolve)
      await store.pool.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid])
      await cut
      await client.query('SELECT 1')
    })
    await expect(failed).rejects.toThrow()
    expect(await count()).toBe(2)
  })
})

describe('a statement by itself', () => {
  test('that hangs is ended by the server after 5 s, through the pool and through Prisma', async () => {
    const hanging = [
      store.pool.query('SELECT pg_sleep(60)'),
      store.prisma.$executeRawUnsafe('SELECT pg_sleep(60)'),
    ]
    const states = hanging.map((each) => each.then(String, sqlState))
    expect(await Promise.all(states)).toEqual(['57014', '57014'])
  })

  test('that nothing is heard of fails, and its connection is not used again', async () => {
    const deaf = openStore({ connectionString: database.url, maxConnections: 1, deadline: 200 })
    // As if the server were cut off: it doesn't end what takes too long.
    await deaf.pool.query('SET statement_timeout = 0')
    await expect(deaf.pool.query('SELECT pg_sleep(60)')).rejects.toThrow()
    expect((await deaf.pool.query('SELECT 7 AS n')).rows).toEqual([{ n: 7 }])
    await deaf.close()
  })
})

describe('a violated constraint', () => {
  const attempts = {
    shelf_pkey: 'INSERT INTO shelf (id) VALUES (1)',
    shelf_label: `INSERT INTO shelf (id, label) VALUES (5, 'top')`,
    shelf_below: 'INSERT INTO shelf (id, below) VALUES (5, 77)',
  }

  test.each(Object.entries(attempts))(
    '%s is named, through the pool and through Prisma',
    async (name, statement) => {
      const byPool = await store.pool.query(statement).catch((error: unknown) => error)
      const byPrisma = await store.prisma
        .$executeRawUnsafe(statement)
        .catch((error: unknown) => error)
      expect(violatedConstraint(byPool)).toBe(name)
      expect(violatedConstraint(byPrisma)).toBe(name)
    },
  )

  test('shelf_span, an exclusion, is named through the pool', async () => {
    const statement = `INSERT INTO shelf (id, span) VALUES (5, '[2,3)')`
    const failure = await store.pool.query(statement).catch((error: unknown) => error)
    expect(violatedConstraint(failure)).toBe('shelf_span')
  })

  test("of a model is named when Prisma's own method runs into it", async () => {
    const data = { id: 1, instance: crypto.randomUUID(), logEpoch: crypto.randomUUID() }
    const failure = await store.prisma.store.create({ data }).catch((error: unknown) => error)
    expect(violatedConstraint(failure)).toBe('store_pkey')
  })

  test('is not seen in other failures', async () => {
    const failure = await store.pool.query('SELECT 1 / 0').catch((error: unknown) => error)
    expect(sqlState(failure)).toBe('22012')
    expect(violatedConstraint(failure)).toBeUndefined()
    expect(violatedConstraint(new Error('shelf_pkey'))).toBeUndefined()
    expect(violatedConstraint(undefined)).toBeUndefined()
  })
})

describe('what the pool answers', () => {
  test('has numbers for BIGINT, dates for timestamptz, text for addresses', async () => {
    const { rows } = await store.pool.query(`SELECT
      9007199254740991::int8 AS big, '{1,NULL,-3}'::int8[] AS bigs, '{}'::int8[] AS none,
      '2026-01-02T03:04:05.678Z'::timestamptz AS at, '{"a":[1]}'::jsonb AS json,
      '2001:db8::1'::inet AS address, '10.0.0.0/8'::cidr AS prefix`)
    expect(rows).toEqual([
      {
        big: 9007199254740991,
        bigs: [1, null, -3],
        none: [],
        at: new Date('2026-01-02T03:04:05.678Z'),
        json: { a: [1] },
        address: '2001:db8::1',
        prefix: '10.0.0.0/8',
      },
    ])
  })

  test('fails rather than rounds a BIGINT beyond 2^53', async () => {
    await expect(store.pool.query('SELECT 9007199254740993::int8')).rejects.toThrow(RangeError)
    expect(await count()).toBe(2)
  })
})
