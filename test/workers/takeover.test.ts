import { once } from 'node:events'
import { afterAll, describe, expect, test } from 'vitest'
import type { RunningCluster } from '../../dev/fleet/fleet.ts'
import type { RealApiServer } from '../../dev/kube-real/server.ts'
import { LEASE_SECONDS } from '../../src/domain/placements/leases.ts'
import { namePrefix } from '../../src/rules/names.ts'
import {
  NETWORK_RULES,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import { accepted, type LoadBalancer, REMOVE_BACKENDS } from '../api/operations.ts'
import { REAL, realClusters } from '../support/clusters.ts'
import { useRealInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import { WorkerProcesses } from './processes.ts'
import { create, createSettled, isOf, storedUntil, storeId, vipOf } from './scene.ts'

const names = ['us-east-1-a', 'us-east-1-b']
const USERS = ['worker-1', 'worker-2']
const processes = new WorkerProcesses(USERS)

describe.skipIf(!realClusters)(`two worker processes and ${REAL}`, () => {
  const installation = useRealInstallation({
    clusters: names.map((name) => ({ name, region: 'us-east-1', servesIPv4: false })),
    endpointsPerCluster: 3,
    kubeconfig: (fleet) => processes.prepare(fleet),
    workers: (where) => processes.start(where),
  })
  afterAll(() => processes.forget())
  const cluster = (name: string) => installation.fleet.get(name)
  const owners = async () => {
    const rows = await installation.store.prisma.cluster.findMany({ orderBy: { name: 'asc' } })
    return new Map(
      rows.map(({ name, owner, leaseEpoch }) => [name, { owner, epoch: Number(leaseEpoch) }]),
    )
  }
  const ownerOf = async (name: string) => (await owners()).get(name)
  /** Both processes have one cluster each. */
  const shared = () =>
    storedUntil(
      async () => new Set([...(await owners()).values()].map(({ owner }) => owner)),
      (all) => all.size === 2 && !all.has(null),
    )
  /** Which process wrote a load balancer's rules in a cluster last. */
  const writer = async (name: string): Promise<string> =>
    (await writesIn(cluster(name))).at(-1)?.user ?? ''
  const settledIn = (name: string): Promise<LoadBalancer> =>
    createSettled(installation, installation.addresses(name))
  const other = (user: string) => USERS.find((one) => one !== user) ?? ''
  const writesIn = (running: RunningCluster<RealApiServer>) => processes.writesIn(running)
  const signal = (user: string, what: NodeJS.Signals) => processes.signal(user, what)
  const taken = async (name: string, epoch: number) => {
    await expect.poll(async () => (await ownerOf(name))?.epoch, { timeout: 25_000 }).toBe(epoch + 1)
  }

  test('one that is killed is replaced within 15 s: a rule deleted meanwhile comes back', async () => {
    await shared()
    const [name = ''] = names
    const made = await settledIn(name)
    const user = await writer(name)
    const [rule] = (await rulesIn(cluster(name))).filter(isOf(made))
    const begun = performance.now()
    signal(user, 'SIGKILL')
    const { metadata } = rule ?? { metadata: { name: '' } }
    await cluster(name).cluster.remove(NETWORK_RULES, {
      name: metadata.name,
      namespace: 'galactic-system',
    })
    await expect
      .poll(async () =>
        (await rulesIn(cluster(name))).some(
          (one) => isOf(made)(one) && one.metadata.uid !== rule?.metadata.uid,
        ),
      )
      .toBe(true)
    console.info(`back ${Math.round(performance.now() - begun)} ms after the kill`)
    expect(await writer(name)).toBe(other(user))
    processes.run(user)
    await shared()
  })

  test('one that is paused beyond its lease writes nothing any more, and its last call is put right', async () => {
    await shared()
    const name = names[1] ?? ''
    const first = await settledIn(name)
    const user = await writer(name)
    const { epoch = 0 } = (await ownerOf(name)) ?? {}
    // Paused in the middle of much to do.
    const burst = Array.from({ length: 24 }, () =>
      create(installation, installation.addresses(name)),
    )
    await rulesUntil(cluster(name), (all) => all.length > 4)
    signal(user, 'SIGSTOP')
    const stopped = Date.now()
    let all: LoadBalancer[] = []
    const [left = ''] = installation.addresses(name)
    let settled = 0
    try {
      all = [first, ...(await Promise.all(burst))]
      await taken(name, epoch)
      for (const { id } of all) {
        await accepted(installation.api, REMOVE_BACKENDS, { loadBalancer: id, addresses: [left] })
      }
      await Promise.all(all.map(({ id }) => installation.api.settled(id)))
      expect(await writer(name)).toBe(other(user))
      settled = (await writesIn(cluster(name))).length
    } finally {
      signal(user, 'SIGCONT')
    }
    const continued = Date.now()
    // It takes its share again, in order, and from then on may write.
    await expect
      .poll(async () => (await ownerOf(names[0] ?? ''))?.owner !== (await ownerOf(name))?.owner)
      .toBe(true)
    await Promise.all(all.map(({ id }) => installation.api.settled(id)))
    const writes = await writesIn(cluster(name))
    const late = writes.filter((write) => write.user === user && write.begun > stopped + 100)
    console.info(
      `${late.length} calls of the paused process, ${writes.length - settled} writes after it went on ${Date.now() - continued} ms ago`,
    )
    // One may have been on its way for each load balancer that was worked on; none comes after its answer.
    for (const { id } of all) {
      const prefix = namePrefix(storeId(id))
      const ofIt = late.filter((write) => write.name.startsWith(prefix))
      expect(ofIt.length, JSON.stringify(ofIt)).toBeLessThanOrEqual(1)
    }
    const rules = await rulesIn(cluster(name))
    expect(rules.filter((rule) => JSON.stringify(rule.spec).includes(`"${left}"`))).toEqual([])
  })

  test('one that is paused between two writes does not begin the second when it goes on too late', async () => {
    await shared()
    const name = names[1] ?? ''
    await settledIn(name)
    const user = await writer(name)
    const { epoch = 0 } = (await ownerOf(name)) ?? {}
    const paused = await processes.pauseAfter(user, NETWORK_RULES)
    const [left = '', ...rest] = installation.addresses(name)
    const made = await create(installation, [left, ...rest])
    await paused()
    const prefix = namePrefix(storeId(made.id))
    const writes = async (by: string) =>
      (await writesIn(cluster(name))).filter(
        (write) => write.user === by && write.name.startsWith(prefix),
      )
    // It wrote the rule, and was to bind all three.
    expect(await writes(user)).toMatchObject([{ name: expect.any(String), code: 201 }])
    try {
      await taken(name, epoch)
      await accepted(installation.api, REMOVE_BACKENDS, {
        loadBalancer: made.id,
        addresses: [left],
      })
      await installation.api.settled(made.id)
    } finally {
      signal(user, 'SIGCONT')
    }
    // What it would have gone on with comes before it asks for its share again.
    await shared()
    await installation.api.settled(made.id)
    expect(await writes(user)).toHaveLength(1)
    expect((await writes(other(user))).length).toBeGreaterThan(rest.length)
    const bindings = await cluster(name).cluster.list<ServiceVIPBinding>(SERVICE_VIP_BINDINGS)
    const bound = bindings.filter(({ spec }) => spec.vipAddress === vipOf(made))
    expect(bound.map(({ spec }) => spec.backendAddress).toSorted()).toEqual(rest.toSorted())
  })

  test('one that is ended hands its cluster over at once', async () => {
    await shared()
    const [name = ''] = names
    const user = await settledIn(name).then(() => writer(name))
    const { epoch = 0 } = (await ownerOf(name)) ?? {}
    const child = processes.of(user)
    const begun = performance.now()
    signal(user, 'SIGTERM')
    if (child?.exitCode === null) await once(child, 'exit')
    await taken(name, epoch)
    // The other one looks every 3 s, and needn't wait for any lease to run out.
    expect(performance.now() - begun).toBeLessThan(LEASE_SECONDS * 1_000)
  })
})
