import { afterAll, describe, expect, test } from 'vitest'
import { SERVICE_VIP_BINDINGS } from '../../src/rules/objects.ts'
import { REAL, realClusters } from '../support/clusters.ts'
import { useRealInstallation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { WorkerProcesses } from './processes.ts'
import { createSettled, DATA_PLANE_NAMESPACE, shown } from './scene.ts'

const NAME = 'us-east-1-a'

describe.skipIf(!realClusters)(`${REAL} and its etcd, killed and started on the same data`, () => {
  const users = new WorkerProcesses(['worker'])
  const installation = useRealInstallation({
    clusters: [{ name: NAME, region: 'us-east-1', servesIPv4: false }],
    // By its user the audit log tells what the worker did.
    kubeconfig: async (fleet) => {
      await users.prepare(fleet)
      return users.kubeconfig('worker')
    },
  })
  afterAll(() => users.forget())
  const cluster = () => installation.fleet.get(NAME)
  const create = () => createSettled(installation, installation.addresses(NAME))
  const kept = async () => {
    const bindings = await cluster().cluster.list(SERVICE_VIP_BINDINGS, {
      namespace: DATA_PLANE_NAMESPACE,
    })
    const objects = [...(await rulesIn(cluster())), ...bindings]
    const { rows } = await installation.store.pool.query(
      'SELECT attachment_uid, address FROM endpoint ORDER BY attachment_uid, address',
    )
    return { rows, objects: objects.map(({ metadata: { uid, generation } }) => [uid, generation]) }
  }

  // For a second after its start it answers that it has no such kind, or that versions are too old.
  test.for([
    { whose: 'a worker that goes on', begin: async () => undefined },
    {
      whose: 'a worker that begins meanwhile',
      begin: () => installation.restartWorkers(),
    },
  ])('makes $whose empty no rule and delete nothing', { timeout: 120_000 }, async ({ begin }) => {
    const made = await Promise.all([create(), create(), create()])
    const before = await kept()
    const count = (await users.writesIn(cluster())).length
    await Promise.all([cluster().server.restart(undefined, { cold: true, etcd: true }), begin()])
    // It is served again when something new is.
    const more = await shown(
      installation,
      await create(),
      ({ status }) => status.phase === 'ACTIVE',
    )
    for (const one of [...made, more])
      await shown(installation, one, ({ status }) => status.phase === 'ACTIVE')
    const after = await kept()
    expect(after.rows).toEqual(before.rows)
    expect(after.objects).toEqual(expect.arrayContaining(before.objects))
    const writes = (await users.writesIn(cluster())).slice(count)
    // A rule and a binding for each backend of the new one, each written once.
    expect(new Set(writes.map(({ name }) => name)).size).toBe(3)
    expect(writes.filter(({ verb }) => verb === 'delete')).toEqual([])
  })
})
