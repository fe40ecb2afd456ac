import { afterAll, describe, expect, test } from 'vitest'
import type { LoadBalancer } from '../api/operations.ts'
import { REAL, realClusters } from '../support/clusters.ts'
import { useRealInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { WorkerProcesses, type Write } from './processes.ts'
import { createSettled, isOf } from './scene.ts'

const NAME = 'us-east-1-a'
const USERS = ['worker-1', 'worker-2']
const LOAD_BALANCERS = 25
const CHANGES = 1_000
const AT_ONCE = 5
const CHANGE = `mutation ($id: ID!, $protocol: LoadBalancerProtocolInput) {
  updateLoadBalancer(input: { id: $id, protocol: $protocol }) { __typename }
}`

describe.skipIf(!realClusters)(`${CHANGES} changes and ${REAL}`, () => {
  const processes = new WorkerProcesses(USERS)
  const installation = useRealInstallation({
    // One write for each change.
    clusters: [{ name: NAME, region: 'us-east-1', servesIPv4: false, dialect: 'selector' }],
    kubeconfig: (fleet) => processes.prepare(fleet),
    workers: (where) => processes.start(where),
  })
  afterAll(() => processes.forget())
  const cluster = () => installation.fleet.get(NAME)
  const writes = () => processes.writesIn(cluster())
  const owner = async () => (await writes()).at(-1)?.user ?? ''
  const other = (user: string) => USERS.find((one) => one !== user) ?? ''

  let all: LoadBalancer[] = []
  let changes = 0
  const port = (index: number, round: number) => 20_000 + index * 100 + round
  /** Again where it was too late for a busy machine: a change says what shall be, not by how much. */
  const accepted = async (variables: Record<string, unknown>) => {
    for (let attempt = 1; ; attempt += 1) {
      const { errors } = await installation.api.ask(CHANGE, variables)
      if (errors === undefined) return
      if (attempt === 10) throw new Error(JSON.stringify(errors))
    }
  }
  /** So many rounds of one change of each load balancer, some at a time. */
  const changeAll = async (rounds: number) => {
    for (let round = 0; round < rounds; round += 1) {
      const number = changes / LOAD_BALANCERS
      const change = async (index: number): Promise<void> => {
        const made = all[index]
        if (made === undefined) return
        const protocol = { tcp: { port: port(index, number) } }
        await accepted({ id: made.id, protocol })
        await change(index + AT_ONCE)
      }
      await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => change(index)))
      changes += LOAD_BALANCERS
    }
  }
  /** Stops the owner in the middle of much to do, and waits until the other one writes. */
  const stopped = async (what: 'SIGSTOP' | 'SIGKILL') => {
    const user = await owner()
    const count = (await writes()).length
    const work = changeAll(2)
    await expect
      .poll(async () => (await writes()).length, { timeout: 20_000 })
      .toBeGreaterThan(count)
    processes.signal(user, what)
    const at = Date.now()
    await work
    await expect.poll(owner, { timeout: 75_000 }).toBe(other(user))
    return { user, at }
  }

  test('are written by one owner at a time, also where it is killed or paused, and by the next within 15 s', async () => {
    all = await Promise.all(
      Array.from({ length: LOAD_BALANCERS }, () =>
        createSettled(installation, installation.addresses(NAME)),
      ),
    )
    await changeAll(8)
    const paused = await stopped('SIGSTOP')
    // It goes on while the other one works.
    await Promise.all([changeAll(10), processes.signal(paused.user, 'SIGCONT')])
    const killed = await stopped('SIGKILL')
    await changeAll(CHANGES / LOAD_BALANCERS - changes / LOAD_BALANCERS)
    expect(changes).toBe(CHANGES)
    await Promise.all(all.map(({ id }) => installation.api.settled(id)))

    const log = await writes()
    // A term is over when the next owner writes first; what a dead process had sent may be read late, but before.
    const by = (user: string, from: number, to: number) =>
      log.filter((write) => write.user === user && write.begun >= from && write.begun < to)
    const firstAfter = (user: string, at: number) =>
      by(user, at, Number.POSITIVE_INFINITY)[0]?.begun ?? Number.NaN
    const second = firstAfter(killed.user, paused.at)
    const third = firstAfter(paused.user, killed.at)
    for (const term of [by(paused.user, 0, second), by(killed.user, second, third)]) {
      expect(term.length).toBeGreaterThan(0)
    }
    const lastOf = (writes: Write[]) => Math.max(...writes.map(({ ended }) => ended))
    expect(lastOf(by(paused.user, 0, second))).toBeLessThanOrEqual(second)
    expect(lastOf(by(killed.user, second, third))).toBeLessThanOrEqual(third)
    expect(by(killed.user, third, Number.POSITIVE_INFINITY)).toEqual([])
    const waited = [second - paused.at, third - killed.at]
    const late = by(paused.user, second, killed.at)
    console.info(
      `${log.length} writes; taken over after ${waited.join(' and ')} ms; ${late.length} late calls of the paused process`,
    )
    for (const time of waited) expect(time).toBeLessThan(5 * 15_000)
    // But for the one call of each piece of work that was on its way when its process was paused …
    expect(namesOf(late)).toHaveLength(late.length)
    // … which is put right.
    const rules = await rulesIn(cluster())
    const ports = all.map((made) => rules.find(isOf(made))?.spec.port)
    expect(ports).toEqual(all.map((_, index) => port(index, CHANGES / LOAD_BALANCERS - 1)))
  }, 300_000)
})

const namesOf = (writes: Write[]): string[] => [...new Set(writes.map(({ name }) => name))]
