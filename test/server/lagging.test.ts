import { expect, test } from 'vitest'
import { finishDeletion } from '../../src/domain/loadBalancers/finish.ts'
import { decodeId } from '../../src/schema/ids.ts'
import { create, field, useService } from './service.ts'
import { subscribe, TRANSPORTS } from './streams.ts'

const service = useService()
const WATCH = `subscription ($filter: LoadBalancerFilter, $after: LogCursor) {
  loadBalancers(filter: $filter, after: $after) { type cursor id } }`
type Event = { type: string; cursor: string; id: string | null }

test.each(TRANSPORTS)(
  'over %s, what a client saw before the log was read up to it, and what goes then, is told as gone',
  async (transport) => {
    const filter = { nameContains: `lagging-${transport}` }
    const held = await service.store.pool.connect()
    try {
      // While it is open nobody knows whether something will appear in the log before what follows.
      await held.query('BEGIN')
      await held.query('SELECT pg_current_xact_id()')
      const made = await create(service, `lagging-${transport}`)
      const first = subscribe<Event>(service, transport, WATCH, { filter })
      expect(await first.next()).toMatchObject({ type: 'ADDED', id: made.id })
      const synced = await first.next()
      expect(synced?.type).toBe('SYNCED')
      await first.end()
      await held.query('COMMIT')
      const { body } = await service.query(
        'mutation ($id: ID!) { deleteLoadBalancer(input: { id: $id }) { __typename } }',
        { id: made.id },
      )
      expect(field(body)).toEqual({ __typename: 'DeleteLoadBalancerPayload' })
      const again = subscribe<Event>(service, transport, WATCH, { filter, after: synced?.cursor })
      let event = await again.next()
      while (event !== undefined && event.type !== 'DELETED' && event.type !== 'HEARTBEAT') {
        event = await again.next()
      }
      expect(event).toMatchObject({ type: 'DELETED', id: made.id })
      await again.end()
    } finally {
      held.release()
    }
  },
)

test.each(TRANSPORTS)(
  'over %s, an end that stands in the log before an earlier change is told as gone',
  async (transport) => {
    const name = `inverted-${transport}`
    const made = await create(service, name)
    const stream = subscribe<Event>(service, transport, WATCH, { filter: { nameContains: name } })
    expect((await stream.next())?.type).toBe('ADDED')
    expect((await stream.next())?.type).toBe('SYNCED')
    const deleting = await service.store.pool.connect()
    try {
      // It begins first, and so its event comes first, though it waits for the change.
      await deleting.query('BEGIN')
      await deleting.query('SELECT pg_current_xact_id()')
      const { body } = await service.query(
        `mutation ($id: ID!) { updateLoadBalancer(input: { id: $id, displayName: "Changed" }) { __typename } }`,
        { id: made.id },
      )
      expect(field(body)).toEqual({ __typename: 'UpdateLoadBalancerPayload' })
      const uuid = decodeId(made.id)?.uuid ?? ''
      await deleting.query(
        'UPDATE load_balancer SET deleting_since = now(), version = version + 1 WHERE id = $1',
        [uuid],
      )
      await finishDeletion(deleting, uuid)
      await deleting.query('COMMIT')
    } finally {
      deleting.release()
    }
    expect(await stream.next()).toMatchObject({ type: 'DELETED', id: made.id })
    await stream.end()
  },
)
