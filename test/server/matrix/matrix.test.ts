import { beforeAll, describe, expect, test } from 'vitest'
import { operatorSchema, schema } from '../../../src/server/schema.ts'
import { statementsOf } from '../../support/statements.ts'
import { type Answer, answerOf, create } from '../service.ts'
import { coordinatesFrom, type Walk, walksOf } from './walk.ts'
import { argumentsFor, type Ids, MARK, NOTHING, populate, useWorld } from './world.ts'

const service = useWorld()
let ids: Ids
beforeAll(async () => {
  ids = await populate(service)
})

/** The same walks are gone by many, and writing them takes longest. */
function written(kind: 'query' | 'mutation' | 'subscription') {
  const walks = new Map<Ids, Walk[]>()
  return (of = ids): Walk[] =>
    walks.get(of) ?? walks.set(of, walksOf(schema, kind, argumentsFor(of))).get(of) ?? []
}
const queries = written('query')
const mutations = written('mutation')
const subscriptions = written('subscription')
const ask = (as: string, query: string, project = 'alpha') =>
  service.query(query, {}, { as, project })
const askEverywhere = async (as: string, query: string): Promise<Answer> =>
  answerOf(
    await fetch(`${service.server.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${as}` },
      body: JSON.stringify({ query }),
    }),
  )
const codesOf = ({ body }: Answer) => [
  ...new Set((body.errors ?? []).map(({ extensions }) => extensions.code)),
]
/** An answer but for what tells when it was given, and what it was asked about. */
const wordsOf = ({ body }: Answer, about: Ids): string => {
  const { data, errors } = body
  let text = JSON.stringify({ data, errors: errors?.map(({ message }) => message) })
  for (const [name, id] of Object.entries(about)) text = text.replaceAll(id, `<${name}>`)
  return text.replace(/"cursor":"[^"]+"/g, '"cursor":""')
}

/** The first events of a subscription, until it ends or says that it is done. */
async function firstEvents(
  as: string,
  query: string,
  project = 'alpha',
): Promise<Answer & { text: string }> {
  const leaving = new AbortController()
  const response = await fetch(service.url(project), {
    method: 'POST',
    headers: {
      ...{ accept: 'text/event-stream', 'content-type': 'application/json' },
      authorization: `Bearer ${as}`,
    },
    body: JSON.stringify({ query }),
    signal: leaving.signal,
  })
  if (response.headers.get('content-type')?.includes('json')) {
    return { ...(await answerOf(response)), text: '' }
  }
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (/"type":"SYNCED"|"outcome":"WAITING"|event: complete/.test(text)) break
  }
  leaving.abort()
  const datas = [...text.matchAll(/^data: (.+)$/gm)].map(([, json = '{}']) => JSON.parse(json))
  const errors = datas.flatMap((one) => one.errors ?? [])
  return { status: response.status, headers: response.headers, body: { errors }, text }
}

describe('control: the walk', () => {
  test('asks for every field of the schema that tenants are served', () => {
    const asked = new Set(queries().flatMap((walk) => [...walk.asked]))
    expect([...coordinatesFrom(schema)].filter((one) => !asked.has(one))).toEqual([])
    expect(asked.size).toBeGreaterThan(150)
  })

  test('asks for every field of the schema that operators are served', () => {
    const walks = walksOf(operatorSchema, 'query', argumentsFor(ids))
    const asked = new Set(walks.flatMap((walk) => [...walk.asked]))
    expect([...coordinatesFrom(operatorSchema)].filter((one) => !asked.has(one))).toEqual([])
  })

  test('sees the project, as its editor: every root field tells something, most of them what is marked', async () => {
    const marked: string[] = []
    for (const { field, query } of queries()) {
      const { status, body } = await ask('alice', query)
      expect([field, status, body.errors]).toEqual([field, 200, undefined])
      const told = body.data?.[field]
      expect([field, told]).not.toEqual([field, null])
      if (JSON.stringify(told).includes(MARK)) marked.push(field)
    }
    expect(marked).toEqual(
      expect.arrayContaining([
        ...['events', 'ipv4Reservation', 'ipv4ReservationByName', 'ipv4Reservations'],
        ...['loadBalancer', 'loadBalancerByName', 'loadBalancers', 'node', 'nodes'],
      ]),
    )
  })

  test('sees the project in every subscription, as its editor', async () => {
    for (const { field, query } of subscriptions()) {
      const { status, body, text } = await firstEvents('alice', query)
      expect([field, status, body.errors]).toEqual([field, 200, []])
      // The log's past is not sent.
      if (field !== 'events') expect([field, text.includes(MARK)]).toEqual([field, true])
    }
  })
})

describe.each([
  ['a stranger', 'stranger', 401, 'UNAUTHENTICATED'],
  ['somebody who may do nothing anywhere', 'nobody', 403, 'FORBIDDEN'],
  ['a tenant of another project', 'other', 403, 'FORBIDDEN'],
] as const)('%s', (_, as, status, code) => {
  test('is refused every query and mutation, and told nothing', async () => {
    for (const { field, query } of [...queries(), ...mutations()]) {
      const answer = await ask(as, query)
      expect([field, answer.status, codesOf(answer)]).toEqual([field, status, [code]])
      expect(answer.body).not.toHaveProperty('data')
      expect(JSON.stringify(answer.body)).not.toContain(MARK)
    }
  })

  test('is refused every subscription', async () => {
    for (const { field, query } of subscriptions()) {
      const answer = await firstEvents(as, query)
      expect([field, answer.status, codesOf(answer)]).toEqual([field, status, [code]])
    }
  })

  test('is refused all that operators are served', async () => {
    const walks = [
      ...walksOf(operatorSchema, 'query', argumentsFor(ids)),
      ...walksOf(operatorSchema, 'mutation', argumentsFor(ids)),
    ]
    for (const { field, query } of walks) {
      const answer = await askEverywhere(as, query)
      expect([field, answer.status, codesOf(answer)]).toEqual([field, status, [code]])
    }
  })
})

describe("a tenant who names another project's objects in their own", () => {
  test('finds nothing by any query, in the words and by the statements of what does not exist', async () => {
    const foreign = queries(ids)
    const missing = queries(NOTHING)
    for (const [index, { field, query }] of foreign.entries()) {
      // Once unrecorded: what is remembered between requests isn't what this is about.
      await ask('other', query, 'beta')
      const answers: Answer[] = []
      const first = await statementsOf(async () => {
        answers.push(await ask('other', query, 'beta'))
      })
      const second = await statementsOf(async () => {
        answers.push(await ask('other', missing[index]?.query ?? '', 'beta'))
      })
      const [about, aboutNothing] = answers
      if (about === undefined || aboutNothing === undefined) throw new Error('not answered')
      expect([field, codesOf(about)]).toEqual([field, []])
      expect(JSON.stringify(about.body)).not.toContain(MARK)
      expect([field, wordsOf(about, ids)]).toEqual([field, wordsOf(aboutNothing, NOTHING)])
      expect([field, first.statements]).toEqual([field, second.statements])
      const one = /^(?:loadBalancer|ipv4Reservation|node|nodes)/.test(field) && !field.endsWith('s')
      if (one) expect(JSON.stringify(first.values)).toContain('beta')
    }
  })

  test('changes nothing by any mutation, in the words and by the statements of what does not exist', async () => {
    const state = async () => {
      const { body } = await ask(
        'alice',
        queries().find(({ field }) => field === 'loadBalancers')?.query ?? '',
      )
      const events = await service.store.pool.query(
        `SELECT count(*) FROM "event" WHERE project = 'alpha'`,
      )
      return [body.data, events.rows]
    }
    const before = await state()
    const missing = mutations(NOTHING)
    for (const [index, { field, query }] of mutations(ids).entries()) {
      const answers: Answer[] = []
      const first = await statementsOf(async () => {
        answers.push(await ask('other', query, 'beta'))
      })
      const second = await statementsOf(async () => {
        answers.push(await ask('other', missing[index]?.query ?? '', 'beta'))
      })
      const [about, aboutNothing] = answers
      if (about === undefined || aboutNothing === undefined) throw new Error('not answered')
      expect([field, codesOf(about)]).toEqual([field, []])
      expect(JSON.stringify(about.body)).not.toContain(MARK)
      // What names nothing of anybody's is theirs to make.
      if (field === 'createIPv4Reservation') continue
      expect(JSON.stringify(about.body.data?.[field])).toContain('"__typename":"NotFound"')
      expect([field, wordsOf(about, ids)]).toEqual([field, wordsOf(aboutNothing, NOTHING)])
      expect([field, first.statements]).toEqual([field, second.statements])
      expect([field, first.statements.length > 0]).toEqual([field, true])
      expect(JSON.stringify(first.values)).toContain('beta')
    }
    expect(await state()).toEqual(before)
  })

  test('sees nothing by any subscription', async () => {
    const missing = subscriptions(NOTHING)
    for (const [index, { field, query }] of subscriptions(ids).entries()) {
      const about = await firstEvents('other', query, 'beta')
      const refused = field === 'loadBalancerSettled' ? ['BAD_USER_INPUT'] : []
      const codes = (about.body.errors ?? []).map(({ extensions }) => extensions?.['code'])
      expect([field, about.status, codes]).toEqual([field, 200, refused])
      expect(about.text).not.toContain(MARK)
      const aboutNothing = await firstEvents('other', missing[index]?.query ?? '', 'beta')
      const plain = (text: string) => text.replace(/"(?:cursor|at)":"[^"]+"/g, '')
      if (/ADDED/.test(about.text)) continue
      expect([field, plain(about.text)]).toEqual([field, plain(aboutNothing.text)])
    }
  })
})

describe('a reader', () => {
  test('sees what an editor sees', async () => {
    for (const { field, query } of queries()) {
      if (field === 'caller') continue
      const [theirs, editors] = [await ask('reader', query), await ask('alice', query)]
      expect([field, theirs.body.errors]).toEqual([field, undefined])
      expect([field, wordsOf(theirs, ids)]).toEqual([field, wordsOf(editors, ids)])
    }
    for (const { field, query } of subscriptions()) {
      expect([field, (await firstEvents('reader', query)).body.errors]).toEqual([field, []])
    }
  })

  test('is refused every mutation, whether or not what it names is there and the project is open', async () => {
    for (const released of [false, true]) {
      await service.store.prisma.project.update({ where: { name: 'alpha' }, data: { released } })
      for (const { field, query } of [...mutations(ids), ...mutations(NOTHING)]) {
        const answer = await ask('reader', query)
        expect([field, answer.status, codesOf(answer)]).toEqual([field, 200, ['FORBIDDEN']])
        expect(answer.body.data).toEqual({ [field]: null })
      }
    }
  })
})

describe('an operator', () => {
  test('sees every project, in its own place and in that of all', async () => {
    for (const { field, query } of queries()) {
      const answer = await ask('operator', query)
      expect([field, answer.status, codesOf(answer)]).toEqual([field, 200, []])
    }
    const ofOne = new Set(['loadBalancerByName', 'ipv4ReservationByName', 'vpcByName', 'quotas'])
    for (const { field, query } of walksOf(operatorSchema, 'query', argumentsFor(ids))) {
      const answer = await askEverywhere('operator', query)
      const codes = ofOne.has(field) ? ['BAD_USER_INPUT'] : []
      expect([field, answer.status, codesOf(answer)]).toEqual([field, 200, codes])
    }
  })

  test("may not change what is tenants', in either place", async () => {
    for (const { field, query } of mutations()) {
      const answer = await ask('operator', query)
      expect([field, answer.status, codesOf(answer)]).toEqual([field, 200, ['FORBIDDEN']])
      const everywhere = codesOf(await askEverywhere('operator', query))
      expect([field, everywhere]).toEqual([
        field,
        [expect.stringMatching(/^(FORBIDDEN|BAD_USER_INPUT)$/)],
      ])
    }
  })

  test("may do what is operators', where it is served", async () => {
    const tenants = new Set(mutations().map(({ field }) => field))
    const own = walksOf(operatorSchema, 'mutation', argumentsFor(ids)).filter(
      ({ field }) => !tenants.has(field),
    )
    expect(own.length).toBeGreaterThan(5)
    for (const { field, query } of own) {
      expect([field, codesOf(await askEverywhere('operator', query))]).toEqual([field, []])
      const atTenants = await ask('operator', query)
      expect([field, codesOf(atTenants)]).toEqual([field, ['BAD_USER_INPUT']])
      const editors = await askEverywhere('alice', query)
      expect([field, editors.status]).toEqual([field, 403])
    }
  })
})

describe('an editor', () => {
  test('is refused no mutation for want of a right', async () => {
    const made = await create(service, `second-${MARK}`)
    expect(made.id).not.toBe(ids.loadBalancer)
    // What deletes comes last.
    const walks = mutations().sort(
      (a, b) => Number(/^delete/.test(a.field)) - Number(/^delete/.test(b.field)),
    )
    for (const { field, query } of walks) {
      const answer = await ask('alice', query)
      expect([field, codesOf(answer)]).toEqual([field, []])
      expect([field, answer.body.data?.[field]]).not.toEqual([field, null])
    }
  })
})

test('ids of another type, of another deployment, or none at all are nothing, never a fault', async () => {
  const garbage = ['', 'x', '💥', 'a'.repeat(10_000), Buffer.from('Vpc:').toString('base64url')]
  const others = Object.values(NOTHING).concat(garbage)
  for (const id of others) {
    const { body } = await service.query(
      `query ($id: ID!) { node(id: $id) { id } nodes(ids: [$id, $id]) { id } loadBalancer(id: $id) { id }
         ipv4Reservation(id: $id) { id } }`,
      { id },
    )
    expect(body.errors).toBeUndefined()
    expect(body.data).toEqual({
      ...{ node: null, nodes: [null, null] },
      ...{ loadBalancer: null, ipv4Reservation: null },
    })
  }
})
