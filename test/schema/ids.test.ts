import fc from 'fast-check'
import { expect, test } from 'vitest'
import { backendId, decodeId, globalId, uuidOf } from '../../src/schema/ids.ts'

const TYPES = ['LoadBalancer', 'IPv4Reservation', 'Vpc', 'Region', 'ChangeEvent'] as const
const type = fc.constantFrom(...TYPES)

test('an id gives back what it was made of, and only as its own type', () => {
  fc.assert(
    fc.property(type, type, fc.uuid(), (made, asked, uuid) => {
      const id = globalId(made, uuid)
      expect(decodeId(id)).toEqual({ type: made, uuid })
      expect(uuidOf(asked, id)).toBe(asked === made ? uuid : null)
      expect(uuidOf('Backend', id)).toBeNull()
    }),
  )
})

test('the id of a backend names its load balancer too', () => {
  fc.assert(
    fc.property(fc.uuid(), fc.uuid(), (loadBalancer, uuid) => {
      const id = backendId(loadBalancer, uuid)
      expect(decodeId(id)).toEqual({ type: 'Backend', uuid, loadBalancer })
      expect(uuidOf('LoadBalancer', id)).toBeNull()
    }),
  )
})

test('any other text names nothing and is never thrown at', () => {
  const uuid = '0190a7b1-0000-7000-8000-000000000000'
  const encoded = (text: string) => Buffer.from(text).toString('base64url')
  const garbage = [
    uuid,
    encoded(uuid),
    encoded(`LoadBalancer:${uuid.toUpperCase()}`),
    encoded(`LoadBalancer:${uuid}:`),
    encoded(`LoadBalancer:${uuid}:${uuid}`),
    encoded(`LoadBalancer:${uuid}${uuid}`),
    encoded(`Backend:${uuid}`),
    encoded(`Gateway:${uuid}`),
    encoded(`constructor:${uuid}`),
    `${globalId('Vpc', uuid)}=`,
    ` ${globalId('Vpc', uuid)}`,
    '',
  ]
  for (const id of garbage) expect([id, decodeId(id)]).toEqual([id, null])
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (id) => {
      expect(decodeId(id)).toBeNull()
    }),
  )
})
