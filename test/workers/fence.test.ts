import pino from 'pino'
import { expect, onTestFinished, test } from 'vitest'
import { startApiServer } from '../../dev/kube/server.ts'
import { KubernetesCluster } from '../../src/clusters/kubernetes.ts'
import { openStore } from '../../src/db/client.ts'
import { registerCluster } from '../../src/domain/operators/clusters.ts'
import { createRegion } from '../../src/domain/operators/regions.ts'
import type { Lease } from '../../src/domain/placements/leases.ts'
import { NAMESPACES } from '../../src/rules/objects.ts'
import { fenced } from '../../src/workers/fence.ts'
import { LeaseHolder } from '../../src/workers/leaseHolder.ts'
import { contextOf, fail } from '../clusters/kubeconfigs.ts'
import { useDatabase } from '../support/database.ts'

const database = useDatabase()

test('a process that was paused beyond its lease starts no write, though no timer told it yet', async () => {
  const server = await startApiServer({ crds: [] })
  onTestFinished(() => server.close())
  const context = await contextOf({
    server: server.url,
    cluster: { 'insecure-skip-tls-verify': true },
    user: { token: server.token },
  })
  const cluster = new KubernetesCluster('it', context, { onHandlerError: fail })
  onTestFinished(() => cluster.close())
  const store = openStore({ connectionString: database.url, maxConnections: 2 })
  onTestFinished(() => store.close())
  await createRegion(store, { code: 'us-east-1', displayName: 'East', cityCode: 'IAD' })
  await registerCluster(store, { name: 'it', region: 'us-east-1', context: 'it' })

  let begun: { signal: AbortSignal; mayWrite: () => boolean } | undefined
  const holder = new LeaseHolder({
    store,
    owner: 'paused',
    log: pino({ level: 'silent' }),
    begin: (lease: Lease, _instance, signal, mayWrite) => {
      begun = { signal, mayWrite }
      return { lease, renewed: () => undefined, close: () => Promise.resolve() }
    },
    ended: () => Promise.resolve(),
  })
  onTestFinished(() => holder.close())
  await holder.renew()
  if (begun === undefined) throw new Error('nothing was taken')
  const { signal, mayWrite } = begun
  const guarded = fenced(cluster, mayWrite)
  const named = (name: string) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  await guarded.apply(NAMESPACES, named('before'))

  // As when the process is stopped: nothing runs, and time goes on.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 9_100)
  expect(signal.aborted).toBe(false)
  const refused = { name: 'Unreachable', message: 'the lease of the cluster is over' }
  await Promise.all([
    expect(guarded.apply(NAMESPACES, named('after'))).rejects.toMatchObject(refused),
    expect(guarded.remove(NAMESPACES, { name: 'before' })).rejects.toMatchObject(refused),
    expect(guarded.merge(NAMESPACES, { name: 'before' }, {})).rejects.toMatchObject(refused),
  ])
  const names = (await guarded.list(NAMESPACES)).map(({ metadata }) => metadata.name)
  expect(names).toContain('before')
  expect(names).not.toContain('after')
})
