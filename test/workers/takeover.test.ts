import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import type { RunningCluster, RunningFleet } from '../../dev/fleet/fleet.ts'
import type { RealApiServer } from '../../dev/kube-real/server.ts'
import { namePrefix } from '../../src/rules/names.ts'
import { NETWORK_RULES } from '../../src/rules/objects.ts'
import { accepted, type LoadBalancer, REMOVE_BACKENDS } from '../api/operations.ts'
import { base64, kubeconfigText } from '../clusters/kubeconfigs.ts'
import { REAL, realClusters } from '../support/clusters.ts'
import { useRealInstallation, type Whereabouts } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import { create, createSettled, isOf, storedUntil, storeId } from './scene.ts'

const program = fileURLToPath(new URL('../../dev/worker.ts', import.meta.url))
const names = ['us-east-1-a', 'us-east-1-b']
/** Each process calls under a name of its own, by which the audit log tells them apart. */
const USERS = ['worker-1', 'worker-2']

let folder: string
let where: Whereabouts
const processes = new Map<string, ChildProcess>()
function run(user: string): void {
  const child = fork(program, [where.addressMap], {
    execArgv: [],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: {
      PATH: process.env['PATH'],
      DATABASE_URL: where.databaseUrl,
      KUBECONFIG: join(folder, user),
      METRICS_PORT: '0',
      LOG_LEVEL: 'silent',
    },
  })
  processes.set(user, child)
}
const signal = (user: string, what: NodeJS.Signals) => processes.get(user)?.kill(what)

async function end(): Promise<void> {
  const running = [...processes.values()].filter((child) => child.exitCode === null)
  const ended = running
    .filter((child) => child.signalCode === null)
    .map((child) => once(child, 'exit'))
  for (const child of running) child.kill('SIGKILL')
  await Promise.all(ended)
}

async function kubeconfigs(fleet: RunningFleet<RealApiServer>): Promise<string> {
  folder = await mkdtemp(join(tmpdir(), 'takeover-'))
  for (const user of USERS) {
    const entries = [...fleet.clusters].map(async ([name, { server }]) => {
      const { certificate, key } = await server.issue(user, ['system:masters'])
      const entry = {
        server: server.url,
        cluster: { 'certificate-authority-data': base64(server.ca) },
        user: { 'client-certificate-data': base64(certificate), 'client-key-data': base64(key) },
      }
      return [name, entry] as const
    })
    await writeFile(
      join(folder, user),
      kubeconfigText(Object.fromEntries(await Promise.all(entries))),
    )
  }
  return fleet.kubeconfig
}

type Write = { user: string; name: string; begun: number; ended: number; code: number }

/** What worker processes wrote to rules and bindings of a cluster, in the order it began. */
async function writesIn({ server }: RunningCluster<RealApiServer>): Promise<Write[]> {
  return (await readFile(server.auditLog, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line): AuditLine => JSON.parse(line))
    .filter(({ user, verb }) => USERS.includes(user.username) && /patch|delete/.test(verb))
    .map(({ user, objectRef, requestReceivedTimestamp, stageTimestamp, responseStatus }) => ({
      user: user.username,
      name: objectRef.name,
      begun: Date.parse(requestReceivedTimestamp),
      ended: Date.parse(stageTimestamp),
      code: responseStatus.code,
    }))
    .toSorted((a, b) => a.begun - b.begun)
}

describe.skipIf(!realClusters)(`two worker processes and ${REAL}`, () => {
  const installation = useRealInstallation({
    clusters: names.map((name) => ({ name, region: 'us-east-1', servesIPv4: false })),
    endpointsPerCluster: 3,
    kubeconfig: kubeconfigs,
    workers: (whereabouts) => {
      where = whereabouts
      for (const user of USERS) run(user)
      return { renew: async () => undefined, close: end }
    },
  })
  afterAll(() => rm(folder, { recursive: true }))
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
      installation,
      async () => new Set([...(await owners()).values()].map(({ owner }) => owner)),
      (all) => all.size === 2 && !all.has(null),
    )
  /** Which process wrote a load balancer's rules in a cluster last. */
  const writer = async (name: string): Promise<string> =>
    (await writesIn(cluster(name))).at(-1)?.user ?? ''
  const settledIn = (name: string): Promise<LoadBalancer> =>
    createSettled(installation, installation.addresses(name))
  const other = (user: string) => USERS.find((one) => one !== user) ?? ''
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
    expect(performance.now() - begun).toBeLessThan(15_000)
    expect(await writer(name)).toBe(other(user))
    run(user)
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

  test('one that is ended hands its cluster over at once', async () => {
    await shared()
    const [name = ''] = names
    const user = await settledIn(name).then(() => writer(name))
    const { epoch = 0 } = (await ownerOf(name)) ?? {}
    const child = processes.get(user)
    const begun = performance.now()
    signal(user, 'SIGTERM')
    if (child?.exitCode === null) await once(child, 'exit')
    await taken(name, epoch)
    // The other one looks every 3 s, and needn't wait for any lease to run out.
    expect(performance.now() - begun).toBeLessThan(6_000)
  })
})

type AuditLine = {
  user: { username: string }
  verb: string
  objectRef: { name: string }
  responseStatus: { code: number }
  requestReceivedTimestamp: string
  stageTimestamp: string
}
