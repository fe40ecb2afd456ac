import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { LIMIT_NAMES, type LimitName } from '../../../src/schema/failures.ts'
import { LIMITS } from '../../../src/server/limits/limits.ts'
import { openSocket } from '../protocols/socket.ts'
import { type Body, useService } from '../service.ts'

/** Whoever asks for anything has asked for too much. */
const none = useService({
  limits: {
    ...{ tokens: 60, depth: 3, aliases: 0, repeats: 1, cost: 200 },
    budget: { most: 8_000, perSecond: 0.1 },
    ...{ socketsPerCaller: 0, streamsPerCaller: 0, waitingPerAddress: LIMITS.waitingPerAddress },
  },
})

const told = async (query: string): Promise<string | undefined> =>
  (await none.query(query)).body.errors?.[0]?.extensions.limit

const PROVOKED: Record<LimitName, () => Promise<string | undefined>> = {
  body: () => told(`{ cursor } #${' '.repeat(1_048_576)}`),
  tokens: () => told(`{ ${'cursor '.repeat(60)} }`),
  depth: () => told('{ vpcs { nodes { endpoints { totalCount } } } }'),
  aliases: () => told('{ a: cursor }'),
  repeats: () => told('{ cursor cursor }'),
  cost: () => told('{ events(first: 100) { nodes { id } } vpcs(first: 100) { nodes { id } } }'),
  page: () => told('{ vpcs(first: 101) { totalCount } }'),
  sockets: async () => {
    const socket = await openSocket(none.url())
    void socket.init()
    const { code, reason } = await socket.closed
    expect(code).toBe(4429)
    return LIMIT_NAMES.find((name) => reason.includes(name))
  },
  streams: async () => {
    const response = await fetch(none.url(), {
      method: 'POST',
      headers: {
        ...{ accept: 'text/event-stream', 'content-type': 'application/json' },
        authorization: 'Bearer alice',
      },
      body: JSON.stringify({ query: 'subscription { loadBalancers { type } }' }),
    })
    const { errors }: Body = JSON.parse(await response.text())
    return errors?.[0]?.extensions.limit
  },
  budget: async () => {
    const query = '{ vpcs(first: 100) { nodes { id } } }'
    for (let spent = 0; spent < 1_000; spent += 1) {
      const limit = await told(query)
      if (limit !== undefined) return limit
    }
    return undefined
  },
}

test.each(Object.entries(PROVOKED))(
  'whoever is over the limit %s is told so',
  async (name, provoke) => {
    expect(await provoke()).toBe(name)
  },
)

test('docs/access.md has the limits that there are', () => {
  const access = readFileSync(new URL('../../../docs/access.md', import.meta.url), 'utf8')
  const [, table = ''] = access.split('| --- | --- | --- |')
  const documented = [...table.matchAll(/^\| `(\w+)` \|/gm)].map(([, name]) => name)
  expect(documented.sort()).toEqual([...LIMIT_NAMES].sort())
})
