import { beforeAll, describe, expect, test } from 'vitest'
import { type Api, apiAt } from '../support/api.ts'
import { cutFirstAnswer } from '../support/cut.ts'
import { useInstallation } from '../support/installation.ts'
import {
  ADD_BACKENDS,
  accepted,
  BIND,
  CREATE,
  createLoadBalancer,
  DELETE,
  inputOf,
  MOVE,
  RELEASE,
  RESERVE,
  type Reservation,
  UPDATE,
} from './operations.ts'
import { tell } from './operators.ts'

const installation = useInstallation({ workers: false })
let number = 0
const next = (): string => {
  number += 1
  return `key-${number}`
}

beforeAll(() =>
  tell(installation.operators, 'setQuota', {
    project: 'demo',
    resource: 'networking.datumapis.com/ipv4reservations',
    region: 'us-east-1',
    limit: null,
  }),
)

type Named = { id: string; generation: number }
type Answer = { __typename: string; loadBalancer?: Named; reservation?: Named }
type Scene = {
  operation: string
  input: Record<string, unknown>
  /** The same with something else meant. */
  other: Record<string, unknown>
  /** What may be written besides, or otherwise, and means the same. */
  same: Record<string, unknown>[]
}

const reserve = async (name = next()): Promise<Reservation> => {
  const input = { name, region: 'us-east-1' }
  return (await accepted<{ reservation: Reservation }>(installation.api, RESERVE, input))
    .reservation
}

const LABELS = [
  { key: 'tier', value: 'front' },
  { key: 'env', value: 'test' },
]

/** What a key may be given to. */
const KEYED: Record<string, () => Promise<Scene>> = {
  createLoadBalancer: async () => {
    const input = inputOf(installation, { name: next(), labels: LABELS })
    return {
      operation: CREATE,
      same: [
        { displayName: null, description: null, backends: null, ipv4Reservations: null },
        { backends: [], ipv4Reservations: [], sessionAffinity: 'NONE', deletionProtection: false },
        { sessionAffinity: null, healthCheck: null, labels: LABELS.toReversed() },
        { healthCheck: { enabled: true, rise: null, probe: { tcp: {} } } },
      ],
      input,
      other: { ...input, protocol: { tcp: { port: 81 } } },
    }
  },
  createIPv4Reservation: async () => {
    const input = { name: next(), region: 'us-east-1' }
    return {
      operation: RESERVE,
      same: [
        { labels: null, displayName: null, description: null },
        { labels: [], deletionProtection: false },
      ],
      input,
      other: { ...input, description: 'another' },
    }
  },
  moveIPv4Reservation: () => toMove(),
}

async function toMove(): Promise<Scene> {
  const [from, to] = [
    await createLoadBalancer(installation, { name: next() }),
    await createLoadBalancer(installation, { name: next() }),
  ]
  const [first, second] = [await reserve(), await reserve()]
  for (const { id } of [first, second]) {
    await accepted(installation.api, BIND, { reservation: id, loadBalancer: from.id })
  }
  const input = { reservation: first.id, from: from.id, to: to.id }
  return {
    operation: MOVE,
    same: [{ expectedGeneration: null }, { validateOnly: false }],
    input,
    other: { ...input, reservation: second.id },
  }
}

const madeBy = (answer: Answer): Named => {
  const made = answer.reservation ?? answer.loadBalancer
  if (made === undefined) throw new Error(JSON.stringify(answer))
  return made
}
const ask = (operation: string, input: object, api: Api = installation.api): Promise<Answer> =>
  api.get<Answer>(operation, { input })
const events = () => installation.store.prisma.event.count()

describe.each(Object.entries(KEYED))('a key given to %s', (mutation, sceneOf) => {
  test('makes one change however often it is sent, and answers the object as it is now', async () => {
    const { operation, input, same } = await sceneOf()
    const keyed = { ...input, idempotencyKey: next() }
    const first = madeBy(await ask(operation, keyed))
    const before = await events()
    const again = madeBy(await ask(operation, keyed))
    expect(again).toMatchObject({ id: first.id, generation: first.generation })
    // null is what clients send for what they don't set, others write every default out.
    for (const more of same) {
      expect(madeBy(await ask(operation, { ...keyed, ...more })).id).toBe(first.id)
    }
    expect(await events()).toBe(before)
  })

  test('makes one where the answer was cut off after it was committed', async () => {
    const { operation, input } = await sceneOf()
    const keyed = { ...input, idempotencyKey: next() }
    const { url, answers } = await cutFirstAnswer(installation.api.url, mutation)
    const cut = apiAt(url.replace('/projects/demo/graphql', ''), 'demo')
    await expect(ask(operation, keyed, cut)).rejects.toThrow()
    const before = await events()
    const { __typename } = await ask(operation, keyed, cut)
    expect([answers(), __typename]).toEqual([2, expect.stringMatching(/Payload$/)])
    expect(await events()).toBe(before)
  })

  test('makes one for twins that come at the same time', async () => {
    const { operation, input } = await sceneOf()
    const keyed = { ...input, idempotencyKey: next() }
    const answers = await Promise.all(Array.from({ length: 8 }, () => ask(operation, keyed)))
    expect(new Set(answers.map((answer) => madeBy(answer).id)).size).toBe(1)
    expect(new Set(answers.map((answer) => madeBy(answer).generation)).size).toBe(1)
  })

  test("is refused for another input until 24 h have passed, and is another project's or mutation's own", async () => {
    const { operation, input, other } = await sceneOf()
    const key = next()
    await ask(operation, { ...input, idempotencyKey: key })
    const reused = { ...other, idempotencyKey: key }
    expect((await ask(operation, reused)).__typename).toBe('IdempotencyKeyReused')
    const elsewhere = { name: next(), region: 'us-east-1', idempotencyKey: key }
    const foreign = { ...elsewhere, vpc: installation.vpc('other'), protocol: { udp: { port: 9 } } }
    await accepted(installation.other, CREATE, foreign)
    if (mutation !== 'createIPv4Reservation') await accepted(installation.api, RESERVE, elsewhere)
    await age(key, '23 hours 59 minutes')
    expect((await ask(operation, reused)).__typename).toBe('IdempotencyKeyReused')
    await age(key, '24 hours 1 second')
    // As good as new: what is refused now is refused for what it is.
    const { __typename } = await ask(operation, reused)
    expect(__typename).toBe(
      mutation.startsWith('create') ? 'NameTaken' : 'MoveIPv4ReservationPayload',
    )
  })
})

test('a key is not used up by what was refused or only planned', async () => {
  const taken = await createLoadBalancer(installation, { name: next() })
  const key = { idempotencyKey: next() }
  const input = inputOf(installation, { ...key, name: taken.name })
  expect((await ask(CREATE, input)).__typename).toBe('NameTaken')
  const plan = inputOf(installation, { ...key, name: next(), validateOnly: true })
  await accepted(installation.api, CREATE, plan)
  await accepted(installation.api, CREATE, inputOf(installation, { ...key, name: next() }))
})

test('a key whose object changed answers it as it is, and whose object is gone says so', async () => {
  const input = inputOf(installation, { name: next(), idempotencyKey: next() })
  const { id } = madeBy(await ask(CREATE, input))
  await accepted(installation.api, UPDATE, { id, displayName: 'changed' })
  expect(madeBy(await ask(CREATE, input))).toMatchObject({ id, generation: 2 })
  await accepted(installation.api, DELETE, { id })
  expect(await ask(CREATE, input)).toMatchObject({
    __typename: 'NotFound',
    path: ['idempotencyKey'],
  })

  const reservation = { name: next(), region: 'us-east-1', idempotencyKey: next() }
  const reserved = madeBy(await ask(RESERVE, reservation))
  await accepted(installation.api, RELEASE, { id: reserved.id })
  expect(await ask(RESERVE, reservation)).toMatchObject({
    __typename: 'NotFound',
    path: ['idempotencyKey'],
  })
})

test('a move that was made is answered again while its target is being deleted', async () => {
  const [address] = installation.addresses('us-east-1-a')
  const { operation, input } = await toMove()
  const loadBalancer = input['to']
  await accepted(installation.api, ADD_BACKENDS, { loadBalancer, backends: [{ address }] })
  const keyed = { ...input, idempotencyKey: next() }
  await ask(operation, keyed)
  await accepted(installation.api, DELETE, { id: loadBalancer })
  expect((await ask(operation, keyed)).__typename).toBe('MoveIPv4ReservationPayload')
  const late = { ...keyed, idempotencyKey: next() }
  expect((await ask(operation, late)).__typename).toMatch(/^(?:StaleHolder|BeingDeleted)$/)
})

/** Has a key been used so long ago. */
async function age(key: string, past: string): Promise<void> {
  await installation.store.pool.query(
    'UPDATE idempotency_key SET created_at = clock_timestamp() - $2::interval WHERE key = $1',
    [key, past],
  )
}
