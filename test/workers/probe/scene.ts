import { createServer, type Server } from 'node:net'
import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { openStore, type Store } from '../../../src/db/client.ts'
import { recordEndpoints, recordVpcs } from '../../../src/domain/inventory.ts'
import { createLoadBalancer } from '../../../src/domain/loadBalancers/create.ts'
import type { CreateLoadBalancerInput } from '../../../src/domain/loadBalancers/inputs.ts'
import { readLoadBalancers } from '../../../src/domain/loadBalancers/read.ts'
import { registerCluster } from '../../../src/domain/operators/clusters.ts'
import { createAddressPool } from '../../../src/domain/operators/pools.ts'
import { setProjectRelease } from '../../../src/domain/operators/projects.ts'
import { createRegion } from '../../../src/domain/operators/regions.ts'
import { renewLeases } from '../../../src/domain/placements/leases.ts'
import { readWanted } from '../../../src/domain/placements/wanted.ts'
import type { EventRecord, LoadBalancerRecord } from '../../../src/domain/records.ts'
import { Refusal } from '../../../src/domain/refusals.ts'
import { DirectProber } from '../../../src/workers/probe/directProber.ts'
import type { Prober } from '../../../src/workers/probe/prober.ts'
import { Probing, type ProbingOptions } from '../../../src/workers/probe/probing.ts'
import { Slots } from '../../../src/workers/probe/slots.ts'
import { useDatabase } from '../../support/database.ts'
import { PATIENCE } from '../../support/patience.ts'

/** How long a second of settings takes here, in milliseconds. */
export const SECOND = 20

const quiet = () => undefined
export const log = { debug: quiet, info: quiet, warn: quiet, error: quiet }
export const scope = {
  project: 'alpha',
  actor: { kind: 'USER' as const, name: 'alice' },
}

/** Answers behind an address of the VPC, on whatever port, until it is told to refuse. */
class Machine {
  readonly connections: number[] = []
  #server: Server | undefined
  #port = 0

  get port(): number {
    return this.#port
  }

  async answer(): Promise<void> {
    const server = createServer((socket) => {
      this.connections.push(performance.now())
      socket.on('error', () => socket.destroy())
      // What isn't read keeps it open.
      socket.resume().end()
    })
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve))
    const address = server.address()
    if (address === null || typeof address === 'string') throw new Error('not a TCP server')
    this.#port = address.port
    this.#server = server
  }

  async refuse(): Promise<void> {
    const server = this.#server
    this.#server = undefined
    if (server) await new Promise<void>((resolve) => server.close(() => resolve()))
  }
}

/** A region of one cluster with twelve machines of one VPC; probing begins by `probe`. */
export function useScene() {
  const database = useDatabase()
  let store: Store
  let cluster = ''
  let epoch = 0
  const machines = new Map<string, Machine>()
  const running = new Set<Probing>()

  beforeAll(async () => {
    store = openStore({ connectionString: database.url })
    cluster = await furnish(store)
    const {
      leases: [lease],
    } = await renewLeases(store, 'test')
    epoch = lease?.epoch ?? 0
    for (const address of ADDRESSES) {
      const machine = new Machine()
      await machine.answer()
      machines.set(address, machine)
    }
  })
  afterEach(async () => {
    for (const probing of running) await probing.close()
    running.clear()
    await store.pool.query('DELETE FROM ipv6_block')
    await store.pool.query('DELETE FROM load_balancer')
    await store.pool.query('DELETE FROM event')
    for (const machine of machines.values()) {
      if (machine.port > 0) await machine.refuse()
      await machine.answer()
      machine.connections.length = 0
    }
  })
  afterAll(async () => {
    for (const machine of machines.values()) await machine.refuse()
    await store.close()
  })

  const machine = (address: string): Machine => {
    const found = machines.get(address)
    if (found === undefined) throw new Error(`no machine has ${address}`)
    return found
  }
  /** Finds machines behind the VPC's addresses, as a prober that stands there does. */
  const prober = new DirectProber({
    locate: async (address) => ({ host: '127.0.0.1', port: machine(address).port }),
  })
  const read = async (id: string): Promise<LoadBalancerRecord> => {
    const found = (await readLoadBalancers(store, { project: scope.project, ids: [id] })).get(id)
    if (found === undefined) throw new Error(`no load balancer ${id}`)
    return found
  }
  return {
    /** Reaches the machines, by way of `connect` where it is given. */
    prober: (connect: Prober['connect'] = (...probe) => prober.connect(...probe)): Prober => ({
      connect,
      http: (...probe) => prober.http(...probe),
    }),
    machine,
    read,
    get store() {
      return store
    },
    get owner() {
      return { cluster, epoch }
    },
    probe(options: Partial<ProbingOptions> = {}): Probing {
      const probing = new Probing({
        store,
        owner: { cluster, epoch },
        hasProber: true,
        prober,
        slots: new Slots(64),
        leaseLost: quiet,
        log,
        second: SECOND,
        ...options,
      })
      running.add(probing)
      return probing
    },
    async create(name: string, addresses: string[], input: Partial<CreateLoadBalancerInput> = {}) {
      const made = await createLoadBalancer(store, scope, {
        name,
        vpc: (await store.prisma.vpc.findFirstOrThrow()).id,
        region: 'us-east-1',
        protocol: { tcp: { port: 80 } },
        backends: addresses.map((address) => ({ address })),
        healthCheck: { intervalSeconds: 5, timeoutSeconds: 5 },
        ...input,
      })
      if (made instanceof Refusal) throw new Error(made.message)
      if ('plan' in made) throw new Error('a plan is not what was asked for')
      return made.loadBalancer.id
    },
    async events(
      id: string,
    ): Promise<Pick<EventRecord, 'reason' | 'message' | 'version' | 'changes'>[]> {
      const { rows } = await store.pool.query(
        'SELECT reason, message, version, changes FROM event WHERE object_id = $1 ORDER BY seq',
        [id],
      )
      return rows
    },
    /** Addresses that the cluster's rule should list. */
    async listed(id: string): Promise<string[]> {
      const taken = (await readWanted(store, cluster, [id])).get(id)
      const backends = taken?.wanted.backends ?? []
      return backends
        .filter(({ adminState, unhealthy }) => adminState === 'ENABLED' && !unhealthy)
        .map(({ address }) => address)
    },
    /** Waits until the backends' states, in the order they were added, are these. */
    async until(id: string, states: string[]): Promise<void> {
      await expect
        .poll(async () => (await read(id)).backends.map(({ health }) => health.state), {
          timeout: PATIENCE,
          interval: 10,
        })
        .toEqual(states)
    },
  }
}

export const ADDRESSES = Array.from({ length: 12 }, (_, index) => `fd00:1::${index + 1}`)

async function furnish(store: Store): Promise<string> {
  await createRegion(store, { code: 'us-east-1', displayName: 'US East', cityCode: 'IAD' })
  await registerCluster(store, {
    name: 'east-1',
    region: 'us-east-1',
    context: 'east-1',
    hasProber: true,
  })
  await createAddressPool(store, {
    name: 'east6',
    region: 'us-east-1',
    prefix: '2001:db8:100::/64',
    allocationPrefixLength: 128,
  })
  const { id } = await store.prisma.cluster.findFirstOrThrow()
  await recordVpcs(store, [{ ref: 'vpc1', name: 'main', project: scope.project }])
  const endpoints = ADDRESSES.map((address, index) => ({
    attachmentUid: `uid-${index}`,
    attachmentNamespace: 'alpha',
    attachmentName: `machine-${index}`,
    attachmentRef: `att${index}`,
    vpcRef: 'vpc1',
    address,
    node: `node-${index}`,
    egressKind: 'veth' as const,
  }))
  const uids = endpoints.map(({ attachmentUid }) => attachmentUid)
  await recordEndpoints(store, { cluster: id, epoch: 0 }, uids, endpoints)
  await setProjectRelease(store, { project: scope.project, released: true })
  return id
}
