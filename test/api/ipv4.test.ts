import { afterEach, describe, expect, it } from 'vitest'
import {
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import { useInstallation } from '../support/installation.ts'
import { objectsUntil, rulesIn, rulesUntil } from '../support/objects.ts'
import { PATIENCE } from '../support/patience.ts'
import {
  accepted,
  BIND,
  CREATE,
  createLoadBalancer,
  DELETE,
  inputOf,
  type LoadBalancer,
  RELEASE,
  RESERVE,
  type Refusal,
  type Reservation,
  SHOW,
  SHOW_RESERVATION,
  UNBIND,
} from './operations.ts'

const installation = useInstallation()
const west = (letter: string) => installation.fleet.get(`us-west-1-${letter}`)
const isOf = (address: string) => (rule: NetworkRule) => rule.spec.vipAddresses.includes(address)
let number = 0

afterEach(() => {
  for (const { dataPlane } of installation.fleet.clusters.values()) dataPlane.resume()
})

async function reserve(region: string): Promise<Reservation> {
  number += 1
  const input = { name: `address-${number}`, region }
  return (await accepted<{ reservation: Reservation }>(installation.api, RESERVE, input))
    .reservation
}

async function create(where: string, more: object = {}): Promise<LoadBalancer> {
  number += 1
  const made = await createLoadBalancer(installation, {
    name: `lb-${number}`,
    region: where.slice(0, 'us-west-1'.length),
    protocol: { tcp: { port: 9_000 + number } },
    backends: installation.addresses(where).map((address) => ({ address })),
    ...more,
  })
  await installation.api.settled(made.id)
  return made
}

const show = (id: string) => installation.api.get<LoadBalancer>(SHOW, { id })
const showReservation = (id: string) => installation.api.get<Reservation>(SHOW_RESERVATION, { id })

/** Follows the reservation's stream until its state is the one waited for. */
async function stateOf(reservation: string, state: string): Promise<Reservation> {
  const query = `subscription { ipv4Reservations { type reservation { id } } }`
  const signal = AbortSignal.timeout(PATIENCE)
  for await (const _ of installation.api.stream(query, {}, { over: 'ws', signal })) {
    const now = await showReservation(reservation)
    if (now.state === state) return now
  }
  throw new Error(`still ${JSON.stringify(await showReservation(reservation))}`)
}

describe('an IPv4 reservation', () => {
  it('holds an address without a load balancer, and gives it back', async () => {
    const reservation = await reserve('us-west-1')
    expect(reservation).toMatchObject({
      state: 'RESERVED',
      bindings: [],
      address: expect.stringMatching(/^203\.0\.113\.\d+$/),
    })
    await accepted(installation.api, RELEASE, { id: reservation.id })
    expect(await showReservation(reservation.id)).toBeNull()
  })

  it('gets a rule of its own where the clusters serve IPv4', async () => {
    const reservation = await reserve('us-west-1')
    const made = await create('us-west-1')
    const input = { reservation: reservation.id, loadBalancer: made.id }
    await accepted(installation.api, BIND, input)
    await installation.api.settled(made.id)
    expect(await stateOf(reservation.id, 'BOUND')).toMatchObject({
      bindings: [{ state: 'BOUND', loadBalancer: { id: made.id }, effective: { status: 'TRUE' } }],
    })
    for (const letter of ['a', 'b']) {
      expect((await rulesIn(west(letter))).filter(isOf(reservation.address))).toHaveLength(1)
    }
    const { addresses, status } = await show(made.id)
    expect(addresses.map(({ family, address }) => [family, address])).toEqual([
      ['IPV6', made.addresses[0]?.address],
      ['IPV4', reservation.address],
    ])
    expect(status).toMatchObject({ phase: 'ACTIVE', ready: { status: 'TRUE' } })
  })

  it('is bound without a rule where the clusters do not serve IPv4, and says so', async () => {
    const reservation = await reserve('us-east-1')
    const made = await create('us-east-1', { ipv4Reservations: [reservation.id] })
    expect(await stateOf(reservation.id, 'BOUND')).toMatchObject({
      bindings: [{ effective: { status: 'FALSE', reason: 'AddressFamilyNotServed' } }],
    })
    const { status } = await show(made.id)
    expect(status.conditions).toContainEqual(
      expect.objectContaining({
        type: 'IPv4Served',
        status: 'FALSE',
        reason: 'AddressFamilyNotServed',
      }),
    )
    expect(status).toMatchObject({ phase: 'ACTIVE', ready: { status: 'TRUE' } })
    for (const letter of ['a', 'b']) {
      const rules = await rulesIn(installation.fleet.get(`us-east-1-${letter}`))
      expect(rules.filter(isOf(reservation.address))).toEqual([])
    }
  })

  it('that was unbound leaves the rules and stays reserved with its address', async () => {
    const reservation = await reserve('us-west-1')
    const made = await create('us-west-1-a', { ipv4Reservations: [reservation.id] })
    await accepted(installation.api, UNBIND, { reservation: reservation.id, loadBalancer: made.id })
    await rulesUntil(west('a'), (rules) => !rules.some(isOf(reservation.address)))
    expect(await stateOf(reservation.id, 'RESERVED')).toMatchObject({
      address: reservation.address,
      bindings: [],
    })
  })

  it("is in no other load balancer's rule before the old cluster, answering late, has let go of it", async () => {
    const reservation = await reserve('us-west-1')
    const from = await create('us-west-1-a', { ipv4Reservations: [reservation.id] })
    const to = await create('us-west-1-b')
    west('a').dataPlane.pause()
    await accepted(installation.api, UNBIND, { reservation: reservation.id, loadBalancer: from.id })
    await accepted(installation.api, BIND, { reservation: reservation.id, loadBalancer: to.id })
    expect(await showReservation(reservation.id)).toMatchObject({
      state: 'BINDING',
      bindings: [
        {
          state: 'WAITING',
          loadBalancer: { id: to.id },
          effective: { reason: 'AddressHeldElsewhere' },
        },
        { state: 'UNBINDING', loadBalancer: { id: from.id } },
      ],
    })
    // What binds it is being deleted by now, and kept by the data plane that doesn't answer.
    await objectsUntil<ServiceVIPBinding>(west('a'), SERVICE_VIP_BINDINGS, (bindings) =>
      bindings.some(
        ({ metadata, spec }) =>
          spec.vipAddress === reservation.address && metadata.deletionTimestamp !== undefined,
      ),
    )
    expect((await rulesIn(west('b'))).filter(isOf(reservation.address))).toEqual([])
    west('a').dataPlane.resume()
    await rulesUntil(west('b'), (rules) => rules.some(isOf(reservation.address)))
    expect((await rulesIn(west('a'))).filter(isOf(reservation.address))).toEqual([])
    await stateOf(reservation.id, 'BOUND')
  })

  it('outlives the load balancer that was deleted', async () => {
    const reservation = await reserve('us-west-1')
    const made = await create('us-west-1-a', { ipv4Reservations: [reservation.id] })
    await accepted(installation.api, DELETE, { id: made.id })
    expect(await stateOf(reservation.id, 'RESERVED')).toMatchObject({
      address: reservation.address,
      bindings: [],
    })
  })
})

describe('refused:', () => {
  const refusal = (operation: string, input: object) =>
    installation.api.get<Refusal>(operation, { input })

  it('deleting a bound reservation', async () => {
    const reservation = await reserve('us-west-1')
    await create('us-west-1-a', { ipv4Reservations: [reservation.id] })
    expect(await refusal(RELEASE, { id: reservation.id })).toMatchObject({
      __typename: 'ReservationInUse',
    })
  })

  it('binding one that another load balancer has', async () => {
    const reservation = await reserve('us-west-1')
    await create('us-west-1-a', { ipv4Reservations: [reservation.id] })
    const second = await create('us-west-1-b')
    const input = { reservation: reservation.id, loadBalancer: second.id }
    expect(await refusal(BIND, input)).toMatchObject({ __typename: 'ReservationInUse' })
    const creating = inputOf(installation, {
      name: 'third',
      region: 'us-west-1',
      ipv4Reservations: [reservation.id],
    })
    expect(await refusal(CREATE, creating)).toMatchObject({ __typename: 'ReservationInUse' })
  })

  it('unbinding from a load balancer that no longer has it', async () => {
    const reservation = await reserve('us-west-1')
    const made = await create('us-west-1-a')
    const input = { reservation: reservation.id, loadBalancer: made.id }
    expect(await refusal(UNBIND, input)).toMatchObject({ __typename: 'StaleHolder' })
  })

  it('binding across regions', async () => {
    const reservation = await reserve('us-east-1')
    const made = await create('us-west-1-a')
    const input = { reservation: reservation.id, loadBalancer: made.id }
    expect(await refusal(BIND, input)).toMatchObject({ __typename: 'RegionMismatch' })
  })

  it("another project's reservation, as one that does not exist", async () => {
    const reservation = await reserve('us-west-1')
    const input = {
      name: 'thief',
      vpc: installation.vpc('other'),
      region: 'us-west-1',
      protocol: { tcp: { port: 80 } },
      ipv4Reservations: [reservation.id],
    }
    const foreign = await installation.other.get<Refusal>(CREATE, { input })
    const absent = await installation.other.get<Refusal>(CREATE, {
      input: { ...input, ipv4Reservations: ['bm90aGluZw=='] },
    })
    expect(foreign).toMatchObject({ __typename: 'NotFound', path: ['ipv4Reservations', '0'] })
    expect(absent).toEqual(foreign)
    expect(await installation.other.get(SHOW_RESERVATION, { id: reservation.id })).toBeNull()
  })

  it('more addresses than the region has', async () => {
    const { store } = installation
    const region = await store.prisma.region.findUniqueOrThrow({ where: { code: 'us-east-1' } })
    await store.prisma.addressPool.updateMany({
      where: { regionId: region.id, family: 'IPV4' },
      data: { state: 'DISABLED' },
    })
    const input = { name: 'too-much', region: 'us-east-1' }
    expect(await refusal(RESERVE, input)).toMatchObject({ __typename: 'PoolExhausted' })
    await store.prisma.addressPool.updateMany({
      where: { regionId: region.id },
      data: { state: 'ACTIVE' },
    })
  })
})
