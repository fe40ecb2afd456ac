import { afterEach, describe, expect, it } from 'vitest'
import type { NetworkRule } from '../../src/rules/objects.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import {
  accepted,
  createLoadBalancer,
  DELETE,
  type LoadBalancer,
  MOVE,
  RESERVE,
  type Refusal,
  type Reservation,
  SHOW_RESERVATION,
} from './operations.ts'
import { tell } from './operators.ts'

const installation = useInstallation({ guarded: true })
const west = (letter: string) => installation.fleet.get(`us-west-1-${letter}`)
const isOf = (address: string) => (rule: NetworkRule) => rule.spec.vipAddresses.includes(address)
let number = 0

afterEach(() => {
  for (const [name, { dataPlane }] of installation.fleet.clusters) {
    dataPlane.resume()
    installation.gatekeeper(name).rule(undefined)
  }
})

async function create(letter: string, more: object = {}): Promise<LoadBalancer> {
  number += 1
  const made = await createLoadBalancer(installation, {
    name: `move-${number}`,
    region: 'us-west-1',
    protocol: { tcp: { port: 4_000 + number } },
    backends: installation.addresses(`us-west-1-${letter}`).map((address) => ({ address })),
    ...more,
  })
  await installation.api.settled(made.id)
  return made
}

/** A reservation that is served in cluster a, and another load balancer in cluster b. */
async function bound() {
  number += 1
  const input = { name: `moved-${number}`, region: 'us-west-1' }
  const { reservation } = await accepted<{ reservation: Reservation }>(
    installation.api,
    RESERVE,
    input,
  )
  const from = await create('a', { ipv4Reservations: [reservation.id] })
  const to = await create('b')
  await rulesUntil(west('a'), (rules) => rules.some(isOf(reservation.address)))
  return { reservation, from, to, input: { reservation: reservation.id, from: from.id, to: to.id } }
}

const show = (id: string) => installation.api.get<Reservation>(SHOW_RESERVATION, { id })
const refusal = (input: object) => installation.api.get<Refusal>(MOVE, { input })

describe('a reservation that is moved', () => {
  it('leaves the one and then comes to the other, and is in two rules at no instant', async () => {
    const { reservation, from, to, input } = await bound()
    const inRules = new Map<string, Set<string>>([
      ['a', new Set()],
      ['b', new Set()],
    ])
    const both: string[] = []
    for (const letter of ['a', 'b']) {
      const mine = inRules.get(letter)
      west(letter).server.storage.observe(
        'networkrules.network.datumapis.com',
        ({ type, object }) => {
          const { metadata, spec } = object as NetworkRule
          if (!spec.vipAddresses.includes(reservation.address)) return
          if (type === 'DELETED') mine?.delete(metadata.name)
          else mine?.add(metadata.name)
          if ([...inRules.values()].every(({ size }) => size > 0)) both.push(metadata.name)
        },
      )
    }
    for (const rule of (await rulesIn(west('a'))).filter(isOf(reservation.address))) {
      inRules.get('a')?.add(rule.metadata.name)
    }
    const moved = await accepted<{
      from: LoadBalancer
      to: LoadBalancer
      reservation: Reservation
    }>(installation.api, MOVE, input)
    expect(moved).toMatchObject({
      from: { id: from.id, generation: 2 },
      to: { id: to.id, generation: 2 },
    })
    expect(moved.from.addresses).toHaveLength(1)
    expect(moved.to.addresses.map(({ address }) => address)).toContain(reservation.address)
    await rulesUntil(west('b'), (rules) => rules.some(isOf(reservation.address)))
    expect((await rulesIn(west('a'))).filter(isOf(reservation.address))).toEqual([])
    expect(both).toEqual([])
  })

  it('ends on the target also when the source answers late and the workers begin anew meanwhile', async () => {
    const { reservation, to, input } = await bound()
    west('a').dataPlane.pause()
    await accepted(installation.api, MOVE, input)
    await installation.restartWorkers()
    expect(await show(reservation.id)).toMatchObject({ state: 'BINDING' })
    expect((await rulesIn(west('b'))).filter(isOf(reservation.address))).toEqual([])
    west('a').dataPlane.resume()
    await rulesUntil(west('b'), (rules) => rules.some(isOf(reservation.address)))
    await installation.api.settled(to.id)
    expect(await show(reservation.id)).toMatchObject({
      state: 'BOUND',
      bindings: [{ loadBalancer: { id: to.id } }],
    })
  })

  it("ends on the target also when the source's cluster can not be reached for a while", async () => {
    const { reservation, to, input } = await bound()
    const gate = installation.gatekeeper('us-west-1-a')
    gate.rule(() => 'reset')
    gate.breakWatches()
    await accepted(installation.api, MOVE, input)
    // What the cluster is asked meanwhile doesn't come through, and the target waits for it.
    await expect.poll(() => gate.log().length, { timeout: 10_000 }).toBeGreaterThan(0)
    expect((await rulesIn(west('a'))).filter(isOf(reservation.address))).toHaveLength(1)
    expect((await rulesIn(west('b'))).filter(isOf(reservation.address))).toEqual([])
    expect((await show(reservation.id)).state).toBe('BINDING')
    gate.rule(undefined)
    await rulesUntil(west('b'), (rules) => rules.some(isOf(reservation.address)))
    await installation.api.settled(to.id)
    expect(await show(reservation.id)).toMatchObject({
      state: 'BOUND',
      bindings: [{ loadBalancer: { id: to.id } }],
    })
  })

  it('is only reserved when the target is deleted meanwhile', async () => {
    const { reservation, from, to, input } = await bound()
    west('a').dataPlane.pause()
    await accepted(installation.api, MOVE, input)
    await accepted(installation.api, DELETE, { id: to.id })
    west('a').dataPlane.resume()
    await rulesUntil(west('a'), (rules) => !rules.some(isOf(reservation.address)))
    await installation.api.settled(from.id)
    await expect.poll(async () => (await show(reservation.id)).state).toBe('RESERVED')
    expect((await show(reservation.id)).address).toBe(reservation.address)
  })

  it('is moved once by one idempotency key, and the key is for that move alone', async () => {
    const { from, to, input } = await bound()
    const keyed = { ...input, idempotencyKey: 'move-it' }
    await accepted(installation.api, MOVE, keyed)
    const again = await accepted<{ to: LoadBalancer }>(installation.api, MOVE, keyed)
    expect(again.to.generation).toBe(2)
    expect(await refusal({ ...keyed, from: to.id, to: from.id })).toMatchObject({
      __typename: 'IdempotencyKeyReused',
    })
  })

  it('needs no room in a VPC that it does not leave', async () => {
    const { input } = await bound()
    const quota = { project: 'demo', resource: 'networking.datumapis.com/rulespervpc' }
    const limit = (limit: number | null) =>
      tell(installation.operators, 'setQuota', { ...quota, region: 'us-west-1', limit })
    await limit(1)
    await accepted(installation.api, MOVE, input)
    await limit(null)
  })

  it('is refused where the source has it no longer, and nothing changes', async () => {
    const { reservation, from, to, input } = await bound()
    expect(await refusal({ ...input, from: to.id, to: from.id })).toMatchObject({
      __typename: 'StaleHolder',
    })
    expect((await show(reservation.id)).bindings[0]?.loadBalancer.id).toBe(from.id)
    expect(await refusal({ ...input, to: 'bm90aGluZw==' })).toMatchObject({
      __typename: 'NotFound',
      path: ['to'],
    })
  })
})
