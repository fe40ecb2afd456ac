import { afterEach, describe, expect, it } from 'vitest'
import { NETWORK_RULES, type NetworkRule } from '../../src/rules/objects.ts'
import { accepted, DELETE } from '../api/operations.ts'
import { clusterCalled } from '../api/operators.ts'
import type { Passing } from '../support/gatekeeper.ts'
import { useInstallation } from '../support/installation.ts'
import { rulesIn, rulesUntil } from '../support/objects.ts'
import {
  add,
  condition,
  create,
  createSettled,
  isOf,
  listed,
  reported,
  shown,
  storeId,
} from './scene.ts'

const names = ['a', 'b', 'c', 'd'].map((letter) => `us-east-1-${letter}`)
const installation = useInstallation({
  clusters: names.map((name) => ({ name, region: 'us-east-1', servesIPv4: false })),
  limits: { rereadSchema: 500 },
  guarded: true,
})
const [well = '', , other = '', ill = ''] = names
const addresses = (cluster: string) => installation.addresses(cluster)
const gatekeeper = () => installation.gatekeeper(ill)
const reachable = async (cluster: string) =>
  (await clusterCalled(installation.operators, cluster)).reachable
const reachableUntil = (reason: string) =>
  expect.poll(async () => (await reachable(ill)).reason).toBe(reason)

let release = (): void => undefined
/** Holds back what comes in (all, or what `isHeld`) until the test ends, or `release` is called. */
function silence(isHeld: (passing: Passing) => boolean = () => true): void {
  const { promise, resolve } = Promise.withResolvers<void>()
  gatekeeper().rule((passing) => (isHeld(passing) ? promise : undefined))
  release = () => {
    gatekeeper().rule(undefined)
    resolve()
  }
}

afterEach(async () => {
  release()
  gatekeeper().rule(undefined)
  installation.fleet.get(ill).dataPlane.resume()
  await reachableUntil('ClusterAnswers')
})

/** How long (ms) each of some changes takes to settle in clusters that are well. */
async function measured(): Promise<number[]> {
  const all: number[] = []
  for (let change = 0; change < 5; change += 1) {
    const begun = performance.now()
    const made = await createSettled(installation, [
      ...addresses(well).slice(0, 1),
      ...addresses(other).slice(0, 1),
    ])
    all.push(performance.now() - begun)
    await accepted(installation.api, DELETE, { id: made.id })
  }
  return all.toSorted((a, b) => a - b)
}

const least = (sorted: number[]): number => sorted[0] ?? Number.POSITIVE_INFINITY

/**
 * Changes elsewhere take no longer than before. The least of them is what a busy machine spares; one that waits for
 * the ill cluster takes seconds longer, each of them.
 */
async function expectOthersUndelayed(before: number[]): Promise<void> {
  const now = await measured()
  console.info(
    `settled elsewhere in ${least(now).toFixed(0)} ms, before ${least(before).toFixed(0)} ms`,
  )
  expect(least(now)).toBeLessThan(2 * least(before) + 1000)
}

describe('a cluster that accepts connections and never answers', () => {
  it('delays nobody, is told as unknown since when, and catches up by itself', async () => {
    const [first = '', second = ''] = addresses(ill)
    const [elsewhere = ''] = addresses(well)
    const made = await createSettled(installation, [elsewhere, first])
    const before = await measured()
    silence()
    // Its watches are silent, as when nothing happens: only a call shows it.
    await add(installation, made, second)
    await expectOthersUndelayed(before)
    const now = await shown(
      installation,
      made,
      ({ status }) => status.provisioned.reason === 'ClusterUnreachable',
    )
    expect(now.status.provisioned.status).toBe('UNKNOWN')
    expect(await clusterCalled(installation.operators, ill)).toMatchObject({
      reachable: { status: 'FALSE' },
      inventory: { status: 'UNKNOWN', reason: 'ClusterUnreachable' },
      behind: 1,
      lagSeconds: expect.toSatisfy((seconds: number) => seconds > 0),
    })
    const { unreachableSince } = await installation.store.prisma.cluster.findUniqueOrThrow({
      where: { name: ill },
    })
    expect(condition(now, 'Provisioned')?.message).toContain(
      `not answered since ${unreachableSince?.toISOString().slice(0, 19)}`,
    )
    // What serves elsewhere goes on to.
    expect(now.status.ready.status).toBe('TRUE')
    expect(await rulesIn(installation.fleet.get(ill))).toHaveLength(1)
    release()
    await listed(installation.fleet.get(ill), made, [first, second])
    await installation.api.settled(made.id)
    await shown(installation, made, (it) => it.status.provisioned.status === 'TRUE')
    const back = await clusterCalled(installation.operators, ill)
    expect([back.behind, back.lagSeconds]).toEqual([0, 0])
    await accepted(installation.api, DELETE, { id: made.id })
  })
})

describe('a cluster that answers from memory, and can neither read nor write what it keeps', () => {
  it('is told as unknown though nothing is asked of it, and is served again by itself', async () => {
    const made = await createSettled(installation, addresses(ill))
    silence(({ path, watch }) => !watch && !path.startsWith('/openapi'))
    const { status } = await shown(
      installation,
      made,
      (now) => now.status.provisioned.reason === 'ClusterUnreachable',
    )
    expect([status.provisioned.status, status.ready.status]).toEqual(['UNKNOWN', 'UNKNOWN'])
    release()
    await shown(installation, made, (now) => now.status.provisioned.status === 'TRUE')
    await accepted(installation.api, DELETE, { id: made.id })
  })
})

describe('a cluster that takes 2 s for each call', () => {
  it('delays nobody, and does what it is told in the end', async () => {
    const before = await measured()
    gatekeeper().rule(() => new Promise((resolve) => setTimeout(resolve, 2_000)))
    const made = await create(installation, [...addresses(ill), ...addresses(well).slice(1)])
    await expectOthersUndelayed(before)
    await installation.api.settled(made.id)
    expect((await reachable(ill)).status).toBe('TRUE')
    await accepted(installation.api, DELETE, { id: made.id })
  })
})

describe('a cluster that lies', () => {
  it('with another object as the answer to a write is not believed, and delays nobody', async () => {
    const before = await measured()
    const decoy = await createSettled(installation, addresses(ill).slice(1))
    const [lie] = (await rulesIn(installation.fleet.get(ill))).filter(isOf(decoy))
    const body: object = lie ?? {}
    const isWrite = ({ method, path }: Passing) =>
      method === 'PATCH' && path.includes(NETWORK_RULES.plural)
    gatekeeper().rule((passing) => (isWrite(passing) ? { status: 200, body } : undefined))
    const made = await create(installation, [
      ...addresses(well).slice(1),
      ...addresses(ill).slice(0, 1),
    ])
    await expectOthersUndelayed(before)
    await reported(installation, well, made, ({ inEffect }) => inEffect)
    const rules = await rulesIn(installation.fleet.get(ill))
    expect(rules.filter(isOf(made))).toEqual([])
    await shown(installation, made, ({ status }) => status.provisioned.status !== 'TRUE')
    gatekeeper().rule(undefined)
    await installation.api.settled(made.id)
    for (const { id } of [made, decoy]) await accepted(installation.api, DELETE, { id })
  })

  it('by accepting everything and never reporting is on its way, until it reports', async () => {
    const before = await measured()
    const { dataPlane } = installation.fleet.get(ill)
    dataPlane.pause()
    const made = await create(installation, [...addresses(well).slice(1), ...addresses(ill)])
    await rulesUntil(installation.fleet.get(ill), (all) => all.some(isOf(made)))
    await expectOthersUndelayed(before)
    const now = await shown(
      installation,
      made,
      ({ status }) => status.provisioned.status !== 'TRUE',
    )
    expect(now.status.phase).not.toBe('ACTIVE')
    dataPlane.resume()
    await installation.api.settled(made.id)
    await accepted(installation.api, DELETE, { id: made.id })
  })
})

const NOT_SERVED = { status: 404, body: {} }
const isSchema = ({ path }: Passing) => path.startsWith(`/openapi/v3/apis/${NETWORK_RULES.group}`)
const isOfDataPlane = ({ path }: Passing) => path.includes(`apis/${NETWORK_RULES.group}/`)

describe('a cluster without the data plane', () => {
  it('says SchemaMissing, all else goes on, and it serves when the data plane comes', async () => {
    gatekeeper().rule((passing) => (isOfDataPlane(passing) ? NOT_SERVED : undefined))
    await installation.restartWorkers()
    await reachableUntil('SchemaMissing')
    expect((await reachable(ill)).status).toBe('FALSE')
    const made = await create(installation, [...addresses(well), ...addresses(ill)])
    await reported(installation, well, made, ({ inEffect }) => inEffect)
    await reported(installation, ill, made, ({ cluster }) => cluster.reason === 'SchemaMissing')
    await shown(installation, made, ({ status }) => status.provisioned.reason === 'SchemaMissing')
    gatekeeper().rule(undefined)
    await installation.api.settled(made.id)
    await reachableUntil('ClusterAnswers')
    await accepted(installation.api, DELETE, { id: made.id })
  })

  it('is believed only when a later look agrees: a server that starts has no kinds for a second', async () => {
    const made = await createSettled(installation, addresses(ill))
    const asked = async () =>
      (
        await installation.store.pool.query(
          'SELECT asked FROM placement WHERE load_balancer_id = $1',
          [storeId(made.id)],
        )
      ).rows
    const before = await asked()
    gatekeeper().log()
    gatekeeper().rule((passing) => (isSchema(passing) ? NOT_SERVED : undefined))
    await expect.poll(() => gatekeeper().log().filter(isSchema).length).toBeGreaterThan(0)
    await expect.poll(() => gatekeeper().log().filter(isSchema).length).toBeGreaterThan(0)
    gatekeeper().rule(undefined)
    gatekeeper().log()
    await expect.poll(() => gatekeeper().log().filter(isSchema).length).toBeGreaterThan(0)
    const { dialect } = await installation.store.prisma.cluster.findUniqueOrThrow({
      where: { name: ill },
    })
    expect(dialect).toBe('backends')
    expect(await asked()).toEqual(before)
    await accepted(installation.api, DELETE, { id: made.id })
  })

  it('that had it keeps its rules, says SchemaMissing, and goes on when it is back', async () => {
    const made = await createSettled(installation, [...addresses(well), ...addresses(ill)])
    const rule = async (): Promise<NetworkRule | undefined> =>
      (await rulesIn(installation.fleet.get(ill))).find(isOf(made))
    const { metadata } = (await rule()) ?? {}
    gatekeeper().rule((passing) => (isOfDataPlane(passing) ? NOT_SERVED : undefined))
    gatekeeper().breakWatches()
    await reachableUntil('SchemaMissing')
    await reported(installation, ill, made, ({ cluster }) => cluster.reason === 'SchemaMissing')
    const now = await shown(installation, made, (it) => it.status.provisioned.status === 'FALSE')
    expect(now.status.ready.status).toBe('TRUE')
    gatekeeper().rule(undefined)
    await reachableUntil('ClusterAnswers')
    await installation.api.settled(made.id)
    expect((await rule())?.metadata.uid).toBe(metadata?.uid)
    await accepted(installation.api, DELETE, { id: made.id })
  })
})
