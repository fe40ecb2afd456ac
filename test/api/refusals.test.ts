import { beforeAll, describe, expect, test } from 'vitest'
import { REFUSAL_CODES } from '../../src/domain/refusalCodes.ts'
import { operatorSchema, schema } from '../../src/server/schema.ts'
import { useInstallation } from '../support/installation.ts'
import { loadBalancerCases } from './refusals/loadBalancers.ts'
import { operatorCases } from './refusals/operators.ts'
import {
  type Answer,
  type Ask,
  type Case,
  documentOf,
  ownFields,
  refusalIn,
  refusalsOf,
  STAGES,
} from './refusals/register.ts'
import { reservationCases } from './refusals/reservations.ts'
import { Stock } from './refusals/stock.ts'

const installation = useInstallation({
  workers: false,
  pools: [
    { name: 'east6', region: 'us-east-1', prefix: '2001:db8:1::/64', skipFirstAndLast: true },
    { name: 'west6', region: 'us-west-1', prefix: '2001:db8:2::/64', skipFirstAndLast: true },
    { name: 'east4', region: 'us-east-1', prefix: '198.18.0.0/20' },
    { name: 'west4', region: 'us-west-1', prefix: '203.0.113.0/24' },
  ],
})

/** What unions of the contract list and nothing gives: whoever finds a way to it adds it to the register. */
const NEVER: Record<string, Record<string, string>> = {
  setBackends: { NameTaken: 'all names are in the input, where two of one name are not valid' },
  bindIPv4Reservation: { ValidationFailed: 'ids and numbers are all it takes' },
  forgetCluster: { ValidationFailed: 'an id and a choice are all it takes' },
}

const stock = new Stock(installation)
const tenants = new Set(Object.keys(schema.getMutationType()?.getFields() ?? {}))
const all = Object.keys(operatorSchema.getMutationType()?.getFields() ?? {})
const ask: Ask = async (mutation, input) => {
  const api = tenants.has(mutation) ? installation.api : installation.operators
  const before = await traces()
  const answer = await api.get<Answer>(documentOf(operatorSchema, mutation), { input })
  if (!answer.__typename.endsWith('Payload')) expect(await traces()).toEqual(before)
  return answer
}
/** What no refused change may leave. */
async function traces(): Promise<unknown> {
  const { rows } = await installation.store.pool.query(
    `SELECT (SELECT count(*) FROM event) AS events, (SELECT count(*) FROM idempotency_key) AS keys,
       (SELECT count(*) FROM ipv4_address WHERE reservation_id IS NOT NULL) AS ipv4,
       (SELECT count(*) FROM ipv6_block) AS ipv6, (SELECT count(*) FROM cluster) AS clusters,
       (SELECT count(*) FROM region) AS regions, (SELECT count(*) FROM address_pool) AS pools,
       (SELECT sum(version) FROM load_balancer) AS versions`,
  )
  return rows
}
/** The endpoints' addresses are known once the installation is there. */
const cases = (): Case[] => [
  ...loadBalancerCases(stock, ask),
  ...reservationCases(stock, ask),
  ...operatorCases(stock, ask),
]
const caseOf = (mutation: string): Case => {
  const found = cases().find((one) => one.mutation === mutation)
  if (found === undefined) throw new Error(`${mutation} is not in the register`)
  return found
}

beforeAll(() => stock.make())

describe('the register of refusals', () => {
  test('has every refusal that a mutation may give by the schema, and no other', () => {
    const listed = all.flatMap((mutation) =>
      refusalsOf(operatorSchema, mutation).map((refusal) => `${mutation} ${refusal}`),
    )
    const provoked = cases().flatMap(({ mutation, refusals }) =>
      refusals.map(({ refusal }) => `${mutation} ${refusal}`),
    )
    const never = Object.entries(NEVER).flatMap(([mutation, refusals]) =>
      Object.keys(refusals).map((refusal) => `${mutation} ${refusal}`),
    )
    expect([...new Set(provoked), ...never].sort()).toEqual(listed.sort())
  })

  test('has every code of the closed list, by its type or by itself', () => {
    const refusals = new Set(all.flatMap((mutation) => refusalsOf(operatorSchema, mutation)))
    const code = (name: string) => name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase()
    const given = [...refusals].map((name) => (/^[A-Z_]+$/.test(name) ? name : code(name)))
    expect(given.sort()).toEqual(Object.keys(REFUSAL_CODES).sort())
  })
})

describe.each(all)('%s', (mutation) => {
  test('is accepted without a flaw', async () => {
    expect((await caseOf(mutation).accepted()).__typename).toMatch(/Payload$/)
  })

  test('is refused with all that its refusals tell, and nothing is changed', async () => {
    for (const { refusal, how, told } of caseOf(mutation).refusals) {
      const { answer, told: expected } = await told()
      expect([how, refusalIn(answer)]).toEqual([how, refusal])
      expect(answer).toMatchObject(expected)
      expect(answer).toMatchObject({ message: expect.stringMatching(/\.$/) })
      const own = ownFields(operatorSchema, answer.__typename)
      expect([how, Object.keys(expected).sort()]).toEqual([how, ['path', ...own].sort()])
    }
  })

  test('that breaks two rules is refused by the one that is looked at first', async () => {
    const { refusals, askedWith } = caseOf(mutation)
    for (const [first, earlier] of refusals.entries()) {
      for (const [second, later] of refusals.entries()) {
        if (earlier.stage >= later.stage) continue
        const answer = await askedWith(first, second)
        const both = `${earlier.how} (${STAGES[earlier.stage]}), ${later.how}`
        expect([both, refusalIn(answer)]).toEqual([both, earlier.refusal])
      }
    }
  })
})
