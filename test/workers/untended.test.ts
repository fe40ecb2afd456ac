import { afterEach, expect, test } from 'vitest'
import { openStore } from '../../src/db/client.ts'
import { recordTrouble } from '../../src/domain/clusters.ts'
import {
  lookForUntended,
  tellUntended,
  type Unheld,
} from '../../src/domain/reachability/untended.ts'
import type { Clock } from '../../src/schema/context.ts'
import { watchUntended } from '../../src/server/untended.ts'
import { type LoadBalancer, SHOW } from '../api/operations.ts'
import { clusterCalled, tell } from '../api/operators.ts'
import { databaseAway } from '../support/database.ts'
import { useInstallation } from '../support/installation.ts'
import { condition, create, createSettled, shown } from './scene.ts'

const A = 'us-east-1-a'
const B = 'us-east-1-b'
const installation = useInstallation()
const going = new AbortController().signal
afterEach(() => installation.restartWorkers())

const show = ({ id }: LoadBalancer) => installation.api.get<LoadBalancer>(SHOW, { id })
const provisioned = async (made: LoadBalancer) =>
  (await show(made)).status.conditions.find(({ type }) => type === 'Provisioned')
const versions = async () => {
  const { rows } = await installation.store.pool.query(
    'SELECT id, version FROM load_balancer ORDER BY id',
  )
  return rows
}

/** As time would make it: the workers ended, and the last leases of the clusters were over so long ago. */
async function abandoned(seconds: number): Promise<string> {
  await installation.workers.close()
  const { rows } = await installation.store.pool.query<{ since: string }>(
    `UPDATE cluster SET lease_until = now() - make_interval(secs => $1)
     RETURNING rfc3339(lease_until) AS since`,
    [seconds],
  )
  return rows[0]?.since ?? ''
}

async function looks(count: number): Promise<number> {
  const { store } = installation
  let unheld: Unheld = new Map()
  let told = 0
  for (let look = 0; look < count; look += 1) {
    unheld = await lookForUntended(store, unheld)
    told += await tellUntended(store, going)
  }
  return told
}

test('where no worker is left, status says since when nobody knows, once, until one says how it is', async () => {
  const both = [A, B].map((name) => installation.addresses(name)[0] ?? '')
  const made = await createSettled(installation, both)
  await shown(installation, made, ({ status }) => status.phase === 'ACTIVE')
  const since = await abandoned(21)
  expect(await looks(2)).toBe(0)
  expect((await show(made)).status.phase).toBe('ACTIVE')
  expect(await looks(3)).toBeGreaterThan(0)
  const now = await show(made)
  expect(now.status.phase).toBe('DEGRADED')
  expect(now.status.ready).toMatchObject({ status: 'UNKNOWN', reason: 'NoWorker' })
  expect(condition(now, 'Provisioned')).toMatchObject({
    status: 'UNKNOWN',
    reason: 'NoWorker',
    message: `Nobody has looked after 2 of the region's 2 clusters since ${since}; what is served there is not known.`,
  })
  const before = await versions()
  expect(await looks(10)).toBe(0)
  expect(await versions()).toEqual(before)
  // What is made meanwhile says so, too.
  const more = await create(installation, installation.addresses(A).slice(1, 2))
  expect(await provisioned(more)).toMatchObject({ status: 'UNKNOWN', reason: 'NoWorker' })
  const { reachable } = await clusterCalled(installation.operators, A)
  expect(reachable).toMatchObject({ status: 'UNKNOWN', reason: 'NoWorker' })
  await installation.restartWorkers()
  for (const one of [made, more])
    await shown(installation, one, ({ status }) => status.phase === 'ACTIVE')
})

test('leases that just ended, or are had again between the looks, are no news', async () => {
  const made = await createSettled(installation, installation.addresses(A).slice(0, 1))
  await abandoned(15)
  expect(await looks(5)).toBe(0)
  await abandoned(30)
  let unheld: Unheld = new Map()
  for (let look = 0; look < 6; look += 1) {
    // Somebody had it, and was away for long again.
    await abandoned(30 + look)
    unheld = await lookForUntended(installation.store, unheld)
  }
  expect(await tellUntended(installation.store, going)).toBe(0)
  expect(await provisioned(made)).toMatchObject({ status: 'TRUE' })
})

test('what one process could not tell to the end another one does, and two at once tell it once', async () => {
  await createSettled(installation, installation.addresses(A).slice(0, 1))
  await abandoned(30)
  const { store } = installation
  let unheld: Unheld = new Map()
  for (let look = 0; look < 3; look += 1) unheld = await lookForUntended(store, unheld)
  expect(await tellUntended(store, AbortSignal.abort())).toBe(0)
  const { rows } = await store.pool.query('SELECT FROM placement')
  const url = new URL(store.pool.options.connectionString ?? '')
  const other = openStore({ connectionString: url.href })
  const told = await Promise.all([tellUntended(store, going), tellUntended(other, going)])
  expect(told.reduce((sum, each) => sum + each)).toBe(rows.length)
  await other.close()
})

test('a cluster that was registered again, and served by nobody since, has an age of its own', async () => {
  await abandoned(30)
  const { store } = installation
  const begun = Date.now()
  await store.pool.query('UPDATE cluster SET lease_until = to_timestamp(0), untended_since = NULL')
  await looks(3)
  const { untendedSince } = await store.prisma.cluster.findUniqueOrThrow({ where: { name: A } })
  expect(untendedSince?.getTime()).toBeGreaterThanOrEqual(begun - 1_000)
  const seen = await installation.operators.get<{ nodes: { reachable: object }[] }>(
    '{ clusters(first: 1) { nodes { reachable { lastTransitionTime } } } }',
  )
  expect(seen.nodes[0]?.reachable).not.toEqual({ lastTransitionTime: '1970-01-01T00:00:00.000Z' })
})

test('a cluster that a worker holds is not forgotten because nobody served it before', async () => {
  await abandoned(30)
  await looks(3)
  const { store, operators } = installation
  await store.pool.query(
    `UPDATE cluster SET owner = 'another', lease_epoch = lease_epoch + 1,
       lease_until = clock_timestamp() + interval '60 seconds' WHERE name = $1`,
    [A],
  )
  const { id, reachable } = await clusterCalled(operators, A)
  expect(reachable).toMatchObject({ status: 'TRUE' })
  expect(await tell(operators, 'forgetCluster', { id })).toMatchObject({
    code: 'CLUSTER_REACHABLE',
  })
  await store.pool.query('UPDATE cluster SET owner = NULL, lease_until = clock_timestamp()')
})

test('the worker that comes next and finds that the cluster does not answer keeps the age', async () => {
  const made = await createSettled(installation, installation.addresses(A).slice(0, 1))
  const since = await abandoned(30)
  await looks(3)
  const { store } = installation
  const { rows } = await store.pool.query<{ id: string; epoch: number }>(
    'SELECT id, lease_epoch AS epoch FROM cluster WHERE name = $1',
    [A],
  )
  const [{ id, epoch } = { id: '', epoch: 0 }] = rows
  const trouble = { reason: 'ClusterUnreachable', message: 'gone', blind: true } as const
  await recordTrouble(store, { cluster: id, epoch }, trouble)
  const now = await provisioned(made)
  expect(now).toMatchObject({ status: 'UNKNOWN', reason: 'ClusterUnreachable' })
  expect(now?.message).toContain(since)
})

test('the process looks by itself again and again, and begins anew when the database was away', async () => {
  const made = await createSettled(installation, installation.addresses(A).slice(0, 1))
  await abandoned(30)
  const { store } = installation
  const waiting: (() => void)[] = []
  const arrivals: (() => void)[] = []
  const clock: Clock = {
    now: () => new Date(),
    after(_, callback) {
      waiting.push(callback)
      arrivals.shift()?.()
      return () => undefined
    },
  }
  const look = async () => {
    const next = new Promise<void>((resolve) => arrivals.push(resolve))
    waiting.shift()?.()
    await next
  }
  const failed: unknown[] = []
  const watch = watchUntended({ store, clock, onError: (error) => failed.push(error) })
  await look()
  await look()
  const { back } = await databaseAway(store)
  await look()
  expect(failed).toHaveLength(1)
  await back()
  // A connection that broke meanwhile may be had once more.
  for (let count = -1; count !== failed.length; ) {
    count = failed.length
    await look()
  }
  await look()
  expect(await provisioned(made)).toMatchObject({ status: 'TRUE' })
  await look()
  expect(await provisioned(made)).toMatchObject({ reason: 'NoWorker' })
  await watch.close()
})
