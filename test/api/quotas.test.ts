import { beforeAll, describe, expect, test } from 'vitest'
import { useInstallation } from '../support/installation.ts'
import {
  accepted,
  inputOf,
  RELEASE,
  RESERVE,
  type Refusal,
  type Reservation,
} from './operations.ts'
import { tell } from './operators.ts'

const installation = useInstallation({
  pools: [
    { name: 'east6', region: 'us-east-1', prefix: '2001:db8:1::/64', skipFirstAndLast: true },
    { name: 'east4', region: 'us-east-1', prefix: '198.51.100.0/31' },
  ],
})
const TIMES = 100
/** Nothing of the answer is of interest but who was made. */
const CREATE = `mutation ($input: CreateLoadBalancerInput!) { createLoadBalancer(input: $input) {
  __typename ... on CreateLoadBalancerPayload { loadBalancer { id } } } }`
const DELETE = `mutation ($input: DeleteLoadBalancerInput!) { deleteLoadBalancer(input: $input) { __typename } }`

describe('at a quota of 1', () => {
  beforeAll(async () => {
    for (const resource of ['loadbalancers', 'ipv4reservations']) {
      const quota = { project: 'demo', resource: `networking.datumapis.com/${resource}` }
      await tell(installation.operators, 'setQuota', { ...quota, region: 'us-east-1', limit: 1 })
    }
  })

  test('a load balancer with a backend can be made and deleted a hundred times, whatever clusters are still to do', async () => {
    const [address] = installation.addresses('us-east-1-a')
    const ids = new Set<string>()
    for (let time = 0; time < TIMES; time += 1) {
      const protocol = { tcp: { port: 1_000 + time } }
      const input = inputOf(installation, { name: 'only', protocol, backends: [{ address }] })
      const { loadBalancer } = await accepted(installation.api, CREATE, input)
      ids.add(loadBalancer.id)
      expect(
        await installation.api.get<Refusal>(CREATE, { input: { ...input, name: 'two' } }),
      ).toMatchObject({ __typename: 'QuotaExceeded' })
      // Of these the rule is there, and stays for a while after the quota is free; the others go while
      // the cluster is at work for them.
      if (time % 10 === 0) await installation.api.settled(loadBalancer.id)
      await accepted(installation.api, DELETE, { id: loadBalancer.id })
    }
    expect(ids.size).toBe(TIMES)
  })

  test('a reservation can be made and given back a hundred times, out of a pool of two addresses', async () => {
    const input = { name: 'only', region: 'us-east-1' }
    const addresses = new Set<string>()
    for (let time = 0; time < TIMES; time += 1) {
      const { reservation } = await accepted<{ reservation: Reservation }>(
        installation.api,
        RESERVE,
        input,
      )
      addresses.add(reservation.address)
      await accepted(installation.api, RELEASE, { id: reservation.id })
    }
    expect(addresses.size).toBeLessThanOrEqual(2)
  })
})
