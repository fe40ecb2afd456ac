import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readEnvironment } from '../../src/config/environment.ts'
import { runWorker } from '../../src/workers/main.ts'
import { kubeconfigText } from '../clusters/kubeconfigs.ts'
import { uuidOf } from '../server/reporting.ts'
import { create, field, useService } from '../server/service.ts'

const service = useService()
const ends: (() => Promise<unknown>)[] = []
afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

/** What `npm run worker` runs; it reaches no cluster. */
async function startWorker(retention: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'retention-'))
  ends.push(() => rm(folder, { recursive: true }))
  const kubeconfig = join(folder, 'kubeconfig')
  await writeFile(kubeconfig, kubeconfigText({ elsewhere: { server: 'http://127.0.0.1:1' } }))
  const worker = await runWorker(
    readEnvironment({
      DATABASE_URL: service.store.pool.options.connectionString,
      KUBECONFIG: kubeconfig,
      METRICS_PORT: '0',
      LOG_LEVEL: 'silent',
      EVENT_RETENTION_DAYS: retention,
    }),
  )
  ends.push(() => worker.close())
}

async function mutate(name: string, fields: string): Promise<void> {
  const { body } = await service.query(`mutation { ${name}(input: { ${fields} }) { __typename } }`)
  expect(field(body)).toEqual({ __typename: expect.stringMatching(/Payload$/) })
}
const ask = (objectId: string, since?: string) =>
  service.query(
    'query ($filter: EventFilter) { events(filter: $filter) { nodes { reason cursor } } }',
    { filter: { objectId, ...(since === undefined ? {} : { since }) } },
  )
/** The oldest first. */
async function history(objectId: string, since?: string) {
  const { nodes } = field<{ nodes: { reason: string; cursor: string }[] }>(
    (await ask(objectId, since)).body,
  )
  return nodes.toReversed()
}
const reasonsOf = async (...of: Parameters<typeof history>) =>
  (await history(...of)).map(({ reason }) => reason)

test('a worker that starts removes what was kept for the days configured, also of what is gone, and nothing younger', async () => {
  const { id } = await create(service, 'gone')
  await mutate('updateLoadBalancer', `id: "${id}", displayName: "Gone"`)
  await mutate('deleteLoadBalancer', `id: "${id}"`)
  // Until nobody's transaction is open any more that was begun before: then cursors are exact.
  await expect.poll(async () => history(id, (await history(id)).at(-1)?.cursor)).toEqual([])
  const whole = await history(id)
  const left = ['LoadBalancerUpdated', 'LoadBalancerDeletionRequested', 'LoadBalancerDeleted']
  expect(whole.map(({ reason }) => reason)).toEqual(['LoadBalancerCreated', ...left])
  const [created, updated] = whole
  await service.store.pool.query(
    `UPDATE event SET at = at - CASE reason WHEN 'LoadBalancerCreated' THEN interval '30 days 1 minute'
       ELSE interval '29 days 23 hours' END WHERE object_id = $1`,
    [uuidOf(id)],
  )
  await startWorker('30')
  await expect.poll(() => reasonsOf(id)).toEqual(left)
  // Pollers who stand within what is kept go on; the others are told that they missed something.
  expect(await reasonsOf(id, updated?.cursor)).toEqual(left.slice(1))
  const { body } = await ask(id, created?.cursor)
  expect(body.errors).toMatchObject([{ extensions: { code: 'BAD_USER_INPUT' } }])
})
