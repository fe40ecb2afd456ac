import { describe, expect, it } from 'vitest'
import { useInstallation } from '../support/installation.ts'
import {
  ADD_BACKENDS,
  accepted,
  BIND,
  CREATE,
  createLoadBalancer,
  DELETE,
  inputOf,
  type LoadBalancer,
  RELEASE,
  REMOVE_BACKENDS,
  RESERVE,
  type Refusal,
  type Reservation,
  SET_BACKENDS,
  SHOW,
  UNBIND,
  UPDATE,
  UPDATE_BACKENDS,
  UPDATE_RESERVATION,
} from './operations.ts'
import { codes, planned, quiet } from './plan.ts'

const installation = useInstallation({ endpointsPerCluster: 4 })
let port = 7_000

const at = (cluster: string, ...which: number[]) => {
  const all = installation.addresses(cluster)
  return which.map((index) => ({ address: all[index] ?? '' }))
}
const east = (...which: number[]) => at('us-east-1-a', ...which)

async function create(backends: object[], more: object = {}): Promise<LoadBalancer> {
  port += 1
  const made = await createLoadBalancer(installation, {
    name: `planned-${port}`,
    protocol: { tcp: { port } },
    backends,
    ...more,
  })
  await quiet(installation)
  return made
}
const plan = (operation: string, input: Record<string, unknown>) =>
  planned(installation.api, operation, input)
const show = (id: string) => installation.api.get<LoadBalancer>(SHOW, { id })
const reserve = async (name: string, region = 'us-east-1') =>
  (
    await accepted<{ reservation: Reservation }>(installation.api, RESERVE, {
      name,
      region,
    })
  ).reservation
const eventCount = () => installation.store.prisma.event.count()

describe('a plan', () => {
  it('changes nothing: no object, no event, no generation, no address', async () => {
    const made = await create(east(0, 1))
    const before = await show(made.id)
    const events = await eventCount()
    const first = await plan(CREATE, inputOf(installation, { name: 'only-planned' }))
    await plan(UPDATE, { id: made.id, displayName: 'other', protocol: { udp: { port: 9 } } })
    await plan(SET_BACKENDS, { loadBalancer: made.id, backends: east(2) })
    await plan(DELETE, { id: made.id })
    await plan(RESERVE, { name: 'only-planned', region: 'us-east-1' })
    expect(await plan(CREATE, inputOf(installation, { name: 'only-planned' }))).toEqual(first)
    expect(await show(made.id)).toEqual(before)
    expect(await eventCount()).toBe(events)
  })

  it('is refused exactly as the change would be', async () => {
    const made = await create(east(0), { deletionProtection: true })
    const refused = (operation: string, input: object) =>
      installation.api.get<Refusal>(operation, { input: { ...input, validateOnly: true } })
    expect(await refused(DELETE, { id: made.id })).toMatchObject({
      __typename: 'DeletionProtected',
    })
    expect(await refused(CREATE, inputOf(installation, { name: made.name }))).toMatchObject({
      __typename: 'NameTaken',
    })
    expect(await refused(UPDATE, { id: made.id, expectedGeneration: 7 })).toMatchObject({
      __typename: 'GenerationConflict',
    })
    const invalid = { loadBalancer: made.id, backends: [{ address: '010.0.0.1' }] }
    expect(await refused(ADD_BACKENDS, invalid)).toMatchObject({
      __typename: 'ValidationFailed',
      issues: [{ path: ['backends', '0', 'address'] }],
    })
    const elsewhere = { name: 'far', backends: at('us-west-1-a', 0) }
    expect(await refused(CREATE, inputOf(installation, elsewhere))).toMatchObject({
      __typename: 'BackendsOutsideRegion',
    })
    const unknown = { reservation: 'nobody', loadBalancer: made.id }
    expect(await refused(BIND, unknown)).toMatchObject({ __typename: 'NotFound' })
  })

  it('says so where nothing would change', async () => {
    const made = await create(east(0))
    const none = { addresses: [], flows: [], changes: [] }
    for (const [operation, input] of [
      [UPDATE, { id: made.id, name: made.name }],
      [ADD_BACKENDS, { loadBalancer: made.id, backends: east(0) }],
      [REMOVE_BACKENDS, { loadBalancer: made.id, addresses: ['fd00::dead'] }],
    ] as const) {
      const answer = await plan(operation, input)
      expect(answer).toMatchObject(none)
      expect(codes(answer)).toEqual(['UNCHANGED'])
    }
  })

  it('counts what a key made before as no change', async () => {
    const input = inputOf(installation, { name: 'keyed', idempotencyKey: 'plan-1' })
    await accepted(installation.api, CREATE, input)
    expect(codes(await plan(CREATE, input))).toEqual(['UNCHANGED'])
    const other = await installation.api.get<Refusal>(CREATE, {
      input: { ...input, name: 'keyed-too', validateOnly: true },
    })
    expect(other.__typename).toBe('IdempotencyKeyReused')
  })
})

describe('the plan of a new load balancer', () => {
  it('names the address that it then gets, whichever connection makes it', async () => {
    for (let round = 0; round < 5; round += 1) {
      const input = inputOf(installation, { name: `named-${round}` })
      const { addresses } = await plan(CREATE, input)
      const { loadBalancer } = await accepted(installation.api, CREATE, input)
      expect(addresses).toEqual([{ address: loadBalancer.addresses[0]?.address, action: 'CREATE' }])
    }
  })

  it('tells of reservations that it binds, moves no flow, and warns of what would not serve', async () => {
    const taken = await create(east(3))
    const reservation = await reserve('for-a-new-one')
    const answer = await plan(CREATE, {
      ...inputOf(installation, { name: 'warned' }),
      protocol: { tcp: { port: taken.ports[0]?.from } },
      sessionAffinity: 'CLIENT_IP',
      backends: [...east(0, 3), { address: 'fd20:1::dead' }],
      ipv4Reservations: [reservation.id],
    })
    expect(answer.addresses).toContainEqual({ address: reservation.address, action: 'UPDATE' })
    expect(answer).toMatchObject({ flows: [], changes: [] })
    const warned = answer.warnings.map(({ code, path }) => `${code} ${path.join('.')}`)
    expect(warned).toEqual([
      'NODE_CONFLICT backends.1.address',
      'ADDRESS_UNKNOWN backends.2.address',
      'AFFINITY_NOT_SUPPORTED sessionAffinity',
      'IPV4_NOT_SERVED ipv4Reservations.0',
    ])
  })

  it('warns of one without backends', async () => {
    expect(codes(await plan(CREATE, inputOf(installation, { name: 'bare' })))).toEqual([
      'NO_BACKENDS',
    ])
  })
})

describe('the plan of another set of backends', () => {
  it('counts the slots that move, one answer for each distinct table', async () => {
    const made = await create([...east(0, 1, 2), ...at('us-east-1-b', 0, 1)])
    const [gone] = east(0)
    const answer = await plan(REMOVE_BACKENDS, {
      loadBalancer: made.id,
      addresses: [gone?.address, at('us-east-1-b', 1)[0]?.address],
    })
    expect(answer.flows).toHaveLength(2)
    for (const flow of answer.flows) {
      expect(flow).toMatchObject({ clusters: 1, tableSize: 1021, taken: 0 })
      expect(flow.moved).toBe(flow.lost + flow.needless)
      expect(flow.movedShare).toBeCloseTo(flow.moved / 1021)
    }
    // A third of one table, half of the other.
    expect(answer.flows.map(({ lost }) => lost).sort()).toEqual(
      expect.arrayContaining([expect.toSatisfy((lost) => lost === 340 || lost === 341)]),
    )
    expect(codes(answer)).toEqual(['FLOWS_MOVE'])
    expect(answer.changes).toEqual(
      expect.arrayContaining([
        { path: ['backends', gone?.address], before: gone?.address, after: null },
      ]),
    )
  })

  it('tells when a place begins or ends to serve', async () => {
    const made = await create(east(0))
    const more = await plan(ADD_BACKENDS, {
      loadBalancer: made.id,
      backends: at('us-east-1-b', 0),
    })
    expect(more.flows).toEqual([])
    expect(codes(more)).toEqual(['SERVED_IN_MORE_PLACES'])
    const moved = await plan(SET_BACKENDS, {
      loadBalancer: made.id,
      backends: at('us-east-1-b', 0),
    })
    expect(moved.flows).toMatchObject([{ clusters: 1, moved: 1021, lost: 1021 }])
    expect(codes(moved)).toContain('SERVED_IN_FEWER_PLACES')
    const off = await plan(UPDATE_BACKENDS, {
      loadBalancer: made.id,
      backends: [{ ...east(0)[0], adminState: 'DISABLED' }],
    })
    expect(off.flows).toMatchObject([{ clusters: 1, moved: 1021, lost: 1021 }])
    expect(codes(off)).toEqual(expect.arrayContaining(['SERVICE_ENDS', 'NO_BACKENDS']))
  })

  it('tells of another load balancer that gains a place by it', async () => {
    const older = await create(east(0, 1))
    const younger = await create(east(1, 2), {
      protocol: { tcp: { port: older.ports[0]?.from } },
    })
    const { warnings } = await plan(REMOVE_BACKENDS, {
      loadBalancer: older.id,
      addresses: east(1).map(({ address }) => address),
    })
    expect(warnings).toContainEqual(
      expect.objectContaining({
        code: 'OTHER_LOAD_BALANCER_CHANGES',
        message: expect.stringContaining(`"${younger.name}"`),
      }),
    )
  })
})

describe('the plan of an update', () => {
  it('warns that another port moves all flows', async () => {
    const made = await create([...east(0, 1, 2), ...at('us-east-1-b', 0)])
    const [from] = made.ports
    const answer = await plan(UPDATE, { id: made.id, protocol: { tcp: { port: 65_000 } } })
    expect(answer.flows).toHaveLength(2)
    for (const { clusters, moved, lost } of answer.flows) {
      expect([clusters, moved, lost]).toEqual([1, 1021, 1021])
    }
    expect(answer.warnings).toMatchObject([
      { code: 'PORT_CHANGE_MOVES_ALL_FLOWS', path: ['protocol'] },
    ])
    expect(answer.changes).toEqual([{ path: ['port'], before: String(from?.from), after: '65000' }])
  })

  it('warns that another protocol cuts all flows, though no slot moves', async () => {
    const made = await create(east(0, 1))
    const protocol = { udp: { port: made.ports[0]?.from } }
    const answer = await plan(UPDATE, { id: made.id, protocol })
    expect(answer.flows).toEqual([])
    expect(codes(answer)).toEqual(['PROTOCOL_CHANGE_CUTS_ALL_FLOWS'])
  })

  it('tells the fields of one that touches no flow, and warns of nothing', async () => {
    const made = await create(east(0))
    expect(await plan(UPDATE, { id: made.id, displayName: 'Web' })).toEqual({
      addresses: [],
      flows: [],
      warnings: [],
      changes: [{ path: ['displayName'], before: null, after: 'Web' }],
    })
  })
})

describe('the plan of a deletion', () => {
  it('gives the IPv6 address back, lets go of the reservation, and loses every flow', async () => {
    const reservation = await reserve('outlives')
    const made = await create(east(0, 1), { ipv4Reservations: [reservation.id] })
    const own = made.addresses.find(({ family }) => family === 'IPV6')
    const answer = await plan(DELETE, { id: made.id })
    expect(answer.addresses).toEqual([
      { address: reservation.address, action: 'UPDATE' },
      { address: own?.address, action: 'DELETE' },
    ])
    expect(answer.flows).toMatchObject([{ clusters: 1, moved: 1021, lost: 1021 }])
    expect(codes(answer)).toEqual(['SERVICE_ENDS'])
  })

  it('is that of one that nothing serves, too', async () => {
    const made = await create([])
    expect(await plan(DELETE, { id: made.id })).toMatchObject({
      addresses: [{ address: made.addresses[0]?.address, action: 'DELETE' }],
      flows: [],
      warnings: [],
    })
  })
})

describe('the plan of a reservation', () => {
  it('names the address that is next, that is given back, that changes hands', async () => {
    const input = { name: 'next', region: 'us-west-1' }
    const { addresses } = await plan(RESERVE, input)
    const { reservation } = await accepted<{ reservation: Reservation }>(
      installation.api,
      RESERVE,
      input,
    )
    const { id, address } = reservation
    expect(addresses).toEqual([{ address, action: 'CREATE' }])
    expect(await plan(UPDATE_RESERVATION, { id, displayName: 'Next' })).toMatchObject({
      addresses: [],
      changes: [{ path: ['displayName'], before: null, after: 'Next' }],
    })
    expect((await plan(RELEASE, { id })).addresses).toEqual([{ address, action: 'DELETE' }])
    const made = await create(at('us-west-1-a', 0), { region: 'us-west-1' })
    const binding = { reservation: id, loadBalancer: made.id }
    const bound = await plan(BIND, binding)
    expect(bound).toMatchObject({
      addresses: [{ address, action: 'UPDATE' }],
      flows: [],
      warnings: [],
      changes: [{ path: ['addresses', address], before: null, after: address }],
    })
    await accepted(installation.api, BIND, binding)
    await quiet(installation)
    expect(codes(await plan(BIND, binding))).toEqual(['UNCHANGED'])
    expect(await plan(UNBIND, binding)).toMatchObject({
      addresses: [{ address, action: 'UPDATE' }],
      changes: [{ path: ['addresses', address], before: address, after: null }],
    })
  })

  it('warns where IPv4 carries no traffic', async () => {
    expect(codes(await plan(RESERVE, { name: 'idle4', region: 'us-east-1' }))).toEqual([
      'IPV4_NOT_SERVED',
    ])
    expect(codes(await plan(RESERVE, { name: 'busy4', region: 'us-west-1' }))).toEqual([])
  })
})

describe('operators', () => {
  const RULES = `mutation ($input: RemoveBackendsInput!) { removeBackends(input: $input) {
    ... on RemoveBackendsPayload { loadBalancer { id } plan { changes { path } rules {
      cluster kind name address action diff { path before after } } } }
    ... on UserError { __typename code } } }`

  it('plan in the project of the object named, and see every object that changes', async () => {
    const made = await create(east(0, 1))
    const [gone] = east(1)
    const input = { loadBalancer: made.id, addresses: [gone?.address], validateOnly: true }
    const answer = await installation.operators.get<{
      loadBalancer: null
      plan: { rules: { action: string; kind: string }[] }
    }>(RULES, { input })
    expect(answer.loadBalancer).toBeNull()
    expect(answer.plan.rules).toMatchObject([
      { cluster: 'us-east-1-a', kind: 'NetworkRule', action: 'UPDATE' },
      { cluster: 'us-east-1-a', kind: 'ServiceVIPBinding', action: 'DELETE' },
    ])
    const nobody = { ...input, loadBalancer: 'nobody' }
    expect(await installation.operators.get(RULES, { input: nobody })).toMatchObject({
      __typename: 'NotFound',
    })
  })

  it('change nothing of a tenant, and plan no reservation, which names no project', async () => {
    const made = await create(east(0))
    const changes = await installation.operators.ask(RULES, {
      input: { loadBalancer: made.id, addresses: [] },
    })
    expect(changes.errors?.[0]?.extensions?.code).toBe('BAD_USER_INPUT')
    const reserves = await installation.operators.ask(RESERVE, {
      input: { name: 'theirs', region: 'us-east-1', validateOnly: true },
    })
    expect(reserves.errors?.[0]?.extensions?.code).toBe('BAD_USER_INPUT')
  })

  it('alone are told of rules', async () => {
    const { errors } = await installation.api.ask(RULES, { input: {} })
    expect(errors?.[0]?.extensions?.code).toBe('BAD_USER_INPUT')
  })
})
