import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import {
  countLoadBalancers,
  type LoadBalancerFilter,
  listLoadBalancers,
} from '../../src/domain/loadBalancers/list.ts'
import { readLoadBalancers } from '../../src/domain/loadBalancers/read.ts'
import type { LoadBalancerRecord, ReservationRecord } from '../../src/domain/records.ts'
import {
  countReservations,
  listReservations,
  type ReservationFilter,
  readReservations,
} from '../../src/domain/reservations/read.ts'
import { NOTHING } from '../../src/schema/ids.ts'
import { matchesReservation } from '../../src/schema/ipv4ReservationFilter.ts'
import { matchesLoadBalancer } from '../../src/schema/loadBalancerFilter.ts'
import { create, field, useService } from '../server/service.ts'

const service = useService()
const project = 'alpha'
const page = { first: 100 }
let loadBalancers: LoadBalancerRecord[] = []
let reservations: ReservationRecord[] = []

beforeAll(async () => {
  const ids: string[] = []
  for (const [index, name] of ['web', 'web-a', 'b-web', 'api', 'we'].entries()) {
    const { body } = await service.query(
      `mutation ($input: CreateIPv4ReservationInput!) { createIPv4Reservation(input: $input) {
         ... on CreateIPv4ReservationPayload { reservation { id } } ... on UserError { message } } }`,
      { input: { name, region: 'us-east-1', labels: labels(index) } },
    )
    ids.push(field<{ reservation: { id: string } }>(body).reservation.id)
  }
  for (const [index, name] of ['web', 'web-a', 'b-web', 'api', 'we', 'w'].entries()) {
    const addresses = ['fd00:1::1', 'fd00:1::2', 'fd00:1::99'].slice(0, index % 4)
    await create(service, name, {
      protocol: { tcp: { port: 1000 + index } },
      labels: labels(index),
      backends: addresses.map((address) => ({ address })),
      ipv4Reservations: ids.slice(index, index % 2 === 0 ? index + 1 : index),
    })
  }
  const { store } = service
  const listed = await listLoadBalancers(store, { project, page })
  const uuids = listed.items.map(({ item }) => item)
  loadBalancers = [...(await readLoadBalancers(store, { project, ids: uuids })).values()]
  const held = await listReservations(store, { project, page })
  const heldIds = held.items.map(({ item }) => item)
  reservations = [...(await readReservations(store, { project, ids: heldIds })).values()]
  expect([loadBalancers.length, reservations.length]).toEqual([6, 5])
})

const labels = (index: number) =>
  [
    { key: 'team', value: index % 2 === 0 ? 'search' : '' },
    { key: 'tier%', value: `${index % 3}` },
  ].slice(0, index % 3)

const some = <T>(...values: T[]) => fc.subarray(values)
const label = fc.record({
  key: fc.constantFrom('team', 'tier%', 'tier', 'other'),
  values: fc.option(some('search', '', '0', '1', '2'), { nil: null }),
})
const shared = {
  nameContains: fc.constantFrom('', 'w', 'web', '-', '%', '_', 'A'),
  region: some('us-east-1', 'us-west-1'),
  labels: fc.array(label, { maxLength: 2 }),
}

test('a stream chooses the same load balancers as a list does', async () => {
  const ids = loadBalancers.map(({ id }) => id)
  const vips = loadBalancers.flatMap(({ addresses }) => addresses.map(({ address }) => address))
  const filters = fc.record(
    {
      ...shared,
      ids: some(...ids, NOTHING),
      vpc: some(loadBalancers[0]?.vpc.id ?? NOTHING, NOTHING),
      phase: some('PENDING', 'ACTIVE', 'IDLE', 'DEGRADED', 'FAILED'),
      address: fc.constantFrom('fd00:1::1', 'fd00:1::99', 'fd00:1::98', ...vips),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<LoadBalancerFilter>
  await fc.assert(
    fc.asyncProperty(filters, async (filter) => {
      const { items } = await listLoadBalancers(service.store, { project, filter, page })
      const matching = loadBalancers.filter((record) => matchesLoadBalancer(filter, record))
      expect(items.map(({ item }) => item).sort()).toEqual(matching.map(({ id }) => id).sort())
      const count = await countLoadBalancers(service.store, { project, filter })
      expect(count).toBe(matching.length)
    }),
    { numRuns: 300 },
  )
})

test('a stream chooses the same reservations as a list does', async () => {
  const filters = fc.record(
    {
      ...shared,
      ids: some(...reservations.map(({ id }) => id), NOTHING),
      address: fc.constantFrom('192.0.2.1', ...reservations.map(({ address }) => address)),
      state: some('RESERVED', 'BINDING', 'BOUND', 'UNBINDING'),
      bound: fc.boolean(),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<ReservationFilter>
  await fc.assert(
    fc.asyncProperty(filters, async (filter) => {
      const { items } = await listReservations(service.store, { project, filter, page })
      const matching = reservations.filter((record) => matchesReservation(filter, record))
      expect(items.map(({ item }) => item).sort()).toEqual(matching.map(({ id }) => id).sort())
      const count = await countReservations(service.store, { project, filter })
      expect(count).toBe(matching.length)
    }),
    { numRuns: 300 },
  )
})
