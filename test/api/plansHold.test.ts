import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { type Impact, impactOf } from '../../src/maglev/impact.ts'
import { backendKey, type Table, tableOf } from '../../src/maglev/table.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import {
  ADD_BACKENDS,
  accepted,
  BIND,
  CREATE,
  createLoadBalancer,
  DELETE,
  inputOf,
  type LoadBalancer,
  MOVE,
  REMOVE_BACKENDS,
  RESERVE,
  type Reservation,
  SET_BACKENDS,
  SHOW,
  UNBIND,
  UPDATE,
  UPDATE_BACKENDS,
} from './operations.ts'
import { planned, quiet } from './plan.ts'

/** Where a region's clusters serve IPv4, so that bound reservations get rules too. */
const REGION = 'us-west-1'
const CLUSTERS = ['us-west-1-a', 'us-west-1-b']
const installation = useInstallation({ endpointsPerCluster: 4 })

const running = (cluster: string) => installation.fleet.get(cluster)
const show = (id: string) => installation.api.get<LoadBalancer | null>(SHOW, { id })

/** What the rules in each cluster list for a load balancer, as a table; not by the code that plans. */
async function tables(loadBalancer: LoadBalancer | null): Promise<(Table | null)[]> {
  const vips = new Set(loadBalancer?.addresses.map(({ address }) => address))
  return Promise.all(
    CLUSTERS.map(async (cluster) => {
      const mine = (await rulesIn(running(cluster))).filter(({ spec }) =>
        spec.vipAddresses.some((vip) => vips.has(vip)),
      )
      const listed = mine.map(({ spec }) => ('backends' in spec ? spec.backends : []))
      const [first] = listed
      // The rules of all its addresses list the same.
      for (const other of listed) expect(other).toEqual(first)
      const table = tableOf((first ?? []).map(({ address, port }) => backendKey(address, port)))
      return 'refused' in table ? null : table
    }),
  )
}

/** Some load balancers as they are (null: not there), who has which address, and their tables. */
async function snapshot(ids: string[]) {
  const loadBalancers = await Promise.all(ids.map(show))
  const holders = new Map<string, { id: string; family: string }>()
  for (const one of loadBalancers) {
    if (one === null) continue
    for (const { address, family } of one.addresses) holders.set(address, { id: one.id, family })
  }
  return { loadBalancers, holders, tables: await Promise.all(loadBalancers.map(tables)) }
}
type Snapshot = Awaited<ReturnType<typeof snapshot>>

/** What happened to tables, as plans tell it. */
function flowsBetween(before: Snapshot, after: Snapshot) {
  const told = new Map<string, Impact & { clusters: number }>()
  for (const [place, all] of before.tables.entries()) {
    for (const [index, was] of all.entries()) {
      const is = after.tables[place]?.[index] ?? null
      const impact = impactOf(was, is)
      if (impact.moved === 0) continue
      const name = JSON.stringify([place, was?.keys, is?.keys])
      told.set(name, { ...impact, clusters: (told.get(name)?.clusters ?? 0) + 1 })
    }
  }
  return sorted([...told.values()])
}

const sorted = (impacts: (Impact & { clusters: number })[]) =>
  impacts
    .map(({ clusters, moved, lost, taken, needless }) =>
      [clusters, moved, lost, taken, needless].join(' '),
    )
    .sort()

/** What happened to addresses, as plans tell it. */
function addressesBetween(before: Snapshot, after: Snapshot) {
  const addresses = [...new Set([...before.holders.keys(), ...after.holders.keys()])]
  return addresses.sort().flatMap((address) => {
    const [was, is] = [before.holders.get(address), after.holders.get(address)]
    if (was?.id === is?.id) return []
    // A reserved one goes on being the project's.
    if ((was ?? is)?.family === 'IPV4') return [{ address, action: 'UPDATE' }]
    return [{ address, action: was === undefined ? 'CREATE' : 'DELETE' }]
  })
}

describe('what was planned', () => {
  /** The first two stay; the others come and go. */
  const living: string[] = []
  let reservation: Reservation
  let made = 0
  const endpoints = () => CLUSTERS.flatMap((cluster) => installation.addresses(cluster))

  beforeAll(async () => {
    const create = (name: string, port: number, hosts: number[]) =>
      createLoadBalancer(installation, {
        name,
        region: REGION,
        protocol: { tcp: { port } },
        backends: hosts.map((index) => ({ address: endpoints()[index] })),
      })
    // An older one that has some of the places of the data plane at the same port.
    await create('older', 80, [0, 5])
    living.push((await create('first', 81, [1, 2, 6])).id)
    living.push((await create('second', 82, [2, 4, 7])).id)
    const reserved = { name: 'static', region: REGION }
    const answer = await accepted<{ reservation: Reservation }>(installation.api, RESERVE, reserved)
    reservation = answer.reservation
  })

  const places = fc.uniqueArray(fc.nat(8), { minLength: 1, maxLength: 8 })
  const state = fc.constantFrom('ENABLED', 'ENABLED', 'STANDBY', 'DISABLED')
  const protocol = fc.constantFrom({ tcp: { port: 80 } }, { tcp: { port: 81 } })
  // The ninth is an address that nobody knows.
  const backendsAt = (list: number[]) =>
    list.map((index) => ({ address: endpoints()[index] ?? 'fd20:1::dead' }))
  /** A change of one of those that are there, given how it and the reservation's holder are now. */
  type Change = (
    id: string,
    now: LoadBalancer,
    holder: string | undefined,
  ) => { operation: string; input: Record<string, unknown>; about?: string[] } | undefined
  const bind: Change = (loadBalancer, _now, holder) => {
    if (holder !== undefined && holder !== loadBalancer) return undefined
    return { operation: BIND, input: { loadBalancer, reservation: reservation.id } }
  }
  const unbind: Change = (_id, _now, holder) => {
    if (holder === undefined) return undefined
    const input = { loadBalancer: holder, reservation: reservation.id }
    return { operation: UNBIND, input, about: [holder] }
  }
  const move: Change = (to, _now, from) => {
    if (from === undefined) return undefined
    const input = { reservation: reservation.id, from, to }
    return { operation: MOVE, input, about: [...new Set([to, from])] }
  }
  const create =
    (list: number[], where: object, binds = false): Change =>
    (_id, _now, holder) => {
      made += 1
      const ipv4Reservations = binds && holder === undefined ? [reservation.id] : []
      const more = { name: `made-${made}`, region: REGION, protocol: where, ipv4Reservations }
      const input = inputOf(installation, { ...more, backends: backendsAt(list) })
      return { operation: CREATE, input, about: [] }
    }
  const end: Change = (id) =>
    living.indexOf(id) < 2 ? undefined : { operation: DELETE, input: { id } }
  const others = {
    set: places.map(
      (list): Change =>
        (loadBalancer) => {
          return { operation: SET_BACKENDS, input: { loadBalancer, backends: backendsAt(list) } }
        },
    ),
    add: places.map(
      (list): Change =>
        (loadBalancer) => {
          return { operation: ADD_BACKENDS, input: { loadBalancer, backends: backendsAt(list) } }
        },
    ),
    remove: places.map(
      (list): Change =>
        (loadBalancer) => {
          const addresses = backendsAt(list).map(({ address }) => address)
          return { operation: REMOVE_BACKENDS, input: { loadBalancer, addresses } }
        },
    ),
    states: state.map(
      (adminState): Change =>
        (loadBalancer, now) => {
          const backends = now.backends.nodes
            .slice(0, 2)
            .map(({ address }) => ({ address, adminState }))
          return { operation: UPDATE_BACKENDS, input: { loadBalancer, backends } }
        },
    ),
    update: fc
      .record({
        protocol,
        sessionAffinity: fc.constantFrom('NONE', 'CLIENT_IP'),
        displayName: fc.constantFrom('one', 'two'),
        healthCheck: fc.constantFrom({ enabled: false }, { enabled: true, fall: 4, rise: 1 }),
      })
      .map(
        (fields): Change =>
          (id) => ({ operation: UPDATE, input: { id, ...fields } }),
      ),
  }
  const done = new Set<string>()

  async function run(change: Change, whose: number): Promise<void> {
    const id = living[whose % living.length] ?? ''
    const all = await snapshot(living)
    const now = all.loadBalancers.find((one) => one?.id === id)
    const holder = all.holders.get(reservation.address)?.id
    const asked = now ? change(id, now, holder) : undefined
    if (asked === undefined) return
    const { operation, input, about = [id] } = asked
    const plan = await planned(installation.api, operation, input)
    expect(await snapshot(living)).toEqual(all)

    const answer = await accepted<{ loadBalancer?: LoadBalancer }>(
      installation.api,
      operation,
      input,
    )
    const created = operation === CREATE ? [answer.loadBalancer?.id ?? ''] : []
    await quiet(installation)
    const subjects = [...about, ...created]
    // What is to be there, and what was there before: of the one just made, nothing.
    const before = of(all, subjects)
    const after = await snapshot(subjects)
    expect(plan.addresses).toEqual(addressesBetween(before, after))
    expect(sorted(plan.flows)).toEqual(flowsBetween(before, after))
    const [subject = ''] = subjects
    const generation = (of: Snapshot) => of.loadBalancers[0]?.generation
    const unchanged = generation(before) === generation(after)
    expect(plan.changes).toEqual(unchanged ? [] : (await lastEvent(subject)).changes)
    if (!unchanged) done.add(operation)
    living.push(...created)
    if (operation === DELETE) living.splice(living.indexOf(id), 1)
  }

  /** Of the load balancers of a snapshot these, in this order. */
  function of(all: Snapshot, ids: string[]): Snapshot {
    const at = ids.map((id) => all.loadBalancers.findIndex((one) => one?.id === id))
    return {
      loadBalancers: at.map((place) => all.loadBalancers[place] ?? null),
      holders: new Map([...all.holders].filter(([, { id }]) => ids.includes(id))),
      tables: at.map((place) => all.tables[place] ?? CLUSTERS.map(() => null)),
    }
  }

  it('is what then happens: addresses, slots of each table, fields', async () => {
    await quiet(installation)
    // Each of these for sure, and then whatever comes.
    await run(bind, 0)
    await run(move, 1)
    await run(create([3, 6], { tcp: { port: 81 } }), 0)
    await run(end, 2)
    expect([...done]).toEqual([BIND, MOVE, CREATE, DELETE])
    const creates = fc.tuple(places, protocol, fc.boolean()).map((given) => create(...given))
    const among = fc.tuple(fc.oneof(...Object.values(others)), fc.nat(9))
    const moving = fc.tuple(fc.oneof(fc.constantFrom(bind, unbind, move), creates), fc.nat(9))
    const ending = fc.tuple(fc.constantFrom(end, move), fc.nat(9))
    await fc.assert(
      fc.asyncProperty(among, moving, among, ending, async (...list) => {
        for (const [change, whose] of list) await run(change, whose)
      }),
      { numRuns: 8, endOnFailure: true },
    )
  })
})

type Event = { changes: { path: string[]; before: string | null; after: string | null }[] }

/** The last change that somebody asked for. */
async function lastEvent(objectId: string): Promise<Event> {
  const { nodes } = await installation.api.get<{ nodes: Event[] }>(
    `query ($objectId: ID!) { events(first: 1, filter: { objectId: $objectId, reason: [
       "BackendsChanged", "LoadBalancerUpdated", "IPv4ReservationBound", "IPv4ReservationUnbound",
       "IPv4ReservationMoved", "LoadBalancerCreated", "LoadBalancerDeletionRequested"] }) {
       nodes { changes { path before after } } } }`,
    { objectId },
  )
  const [event] = nodes
  if (event === undefined) throw new Error('nothing happened')
  return event
}
