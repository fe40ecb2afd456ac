import { pino } from 'pino'
import { describe, expect, it } from 'vitest'
import { decodeId } from '../../src/schema/ids.ts'
import { create, useService } from '../server/service.ts'

type Line = { level: number; requestId?: string; mutation?: string; [field: string]: unknown }

const lines: Line[] = []
const logger = pino(
  { level: 'info' },
  { write: (line: string) => void lines.push(JSON.parse(line) as Line) },
)
const service = useService({ logger })

/** What was logged of mutations while something was done. */
async function logged<T>(work: () => Promise<T>): Promise<{ told: Line[]; answer: T }> {
  const before = lines.length
  const answer = await work()
  return { told: lines.slice(before).filter(({ mutation }) => mutation !== undefined), answer }
}

const uuid = (id: string) => decodeId(id)?.uuid

describe('a mutation', () => {
  it('is one line, with the id that the client was told and the object that it made', async () => {
    const { told, answer } = await logged(() => create(service, 'lined'))
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({
      level: 30,
      mutation: 'createLoadBalancer',
      project: 'alpha',
      caller: 'alice',
      object: uuid(answer.id),
      outcome: 'OK',
    })
  })

  it('that is refused names what it was about, the code, and the name that the client gave it', async () => {
    const { id } = await create(service, 'guarded', { deletionProtection: true })
    const { told, answer } = await logged(() =>
      service.query(
        'mutation Away($id: ID!) { deleteLoadBalancer(input: { id: $id }) { __typename } }',
        { id },
      ),
    )
    expect(told).toHaveLength(1)
    expect(told[0]).toMatchObject({
      requestId: answer.headers.get('x-request-id'),
      operation: 'Away',
      object: uuid(id),
      outcome: 'DELETION_PROTECTED',
    })
  })

  it('that is not allowed, or only planned, says so', async () => {
    const { id } = await create(service, 'planned')
    const change = (more: string) =>
      `mutation ($id: ID!) { updateLoadBalancer(input: { id: $id, displayName: "x"${more} }) { __typename } }`
    const forbidden = await logged(() => service.query(change(''), { id }, { as: 'reader' }))
    expect(forbidden.told).toMatchObject([{ caller: 'reader', outcome: 'FORBIDDEN' }])
    const planned = await logged(() => service.query(change(', validateOnly: true'), { id }))
    expect(planned.told).toMatchObject([{ object: uuid(id), outcome: 'PLANNED' }])
  })

  it('among several in one request has a line of its own', async () => {
    const { told, answer } = await logged(() =>
      service.query(`mutation {
        first: deleteLoadBalancer(input: { id: "nothing" }) { __typename }
        second: deleteIPv4Reservation(input: { id: "nothing" }) { __typename }
      }`),
    )
    const requestId = answer.headers.get('x-request-id')
    expect(told).toMatchObject([
      { mutation: 'deleteLoadBalancer', outcome: 'NOT_FOUND', object: null, requestId },
      { mutation: 'deleteIPv4Reservation', outcome: 'NOT_FOUND', object: null, requestId },
    ])
  })
})

describe('a query', () => {
  it('leaves no line, and has an id of its own all the same', async () => {
    const before = lines.length
    const one = await service.query('{ regions { code } }')
    const two = await service.query('{ regions { code } }')
    expect(lines.length).toBe(before)
    expect(one.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
    expect(two.headers.get('x-request-id')).not.toBe(one.headers.get('x-request-id'))
  })
})
