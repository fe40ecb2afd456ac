import { expect } from 'vitest'
import { rederive } from '../../src/domain/placements/derive.ts'
import type { Installation } from '../support/installation.ts'
import { add, attach, create, createSettled, known, storeId, vipOf } from '../workers/scene.ts'
import { broken, CLUSTERS, explainScene, type Fault, no } from './explainScene.ts'
import { accepted, BIND, UNBIND, UPDATE_BACKENDS } from './operations.ts'
import { clusterCalled, tell } from './operators.ts'

/** Faults of what was asked for, of backends, and of the way from outside. */
export function ownFaults(installation: Installation): Fault[] {
  const { cluster, gate, at, settledAt, reserved, stopped } = explainScene(installation)
  return [
    {
      fault: 'a VPC that is not the project’s any more',
      reachable: true,
      broken: broken('Accepted', 'VpcNotOwned'),
      async inject() {
        const made = await settledAt('a')
        const own = (owned: boolean) =>
          installation.store.prisma.vpc.updateMany({ where: { project: 'demo' }, data: { owned } })
        await own(false)
        return { id: made.id, undo: () => own(true) }
      },
    },
    {
      fault: 'an address that another load balancer has not let go of',
      broken: broken('AddressesHeld', 'AddressHeldElsewhere'),
      evidence: /still with the load balancer that had it/,
      async inject() {
        const { id: reservation, address } = await reserved('served4')
        const before = await settledAt('served4')
        const next = await settledAt('served4')
        await accepted(installation.api, BIND, { reservation, loadBalancer: before.id })
        await installation.api.settled(before.id)
        const undo = cluster('served4').dataPlane.hold('teardown', address)
        await accepted(installation.api, UNBIND, { reservation, loadBalancer: before.id })
        await accepted(installation.api, BIND, { reservation, loadBalancer: next.id })
        return { id: next.id, undo }
      },
    },
    {
      fault: 'no backend at all',
      broken: broken('BackendsResolved', 'NoBackends'),
      inject: () => create(installation, []),
    },
    {
      fault: 'backends that are all on standby',
      broken: broken('BackendsResolved', 'NoBackends'),
      evidence: /^STANDBY$/,
      async inject() {
        const made = await settledAt('a')
        const backends = at('a').map((address) => ({ address, adminState: 'STANDBY' }))
        await accepted(installation.api, UPDATE_BACKENDS, { loadBalancer: made.id, backends })
        return made
      },
    },
    {
      fault: 'an address that nobody knows in the VPC',
      broken: broken('BackendsResolved', 'AddressUnknown'),
      evidence: /fd20:1::dead is not known/,
      inject: () => create(installation, ['fd20:1::dead']),
    },
    {
      fault: 'an address that appeared where the inventory can not be read',
      broken: broken('BackendsResolved', 'AddressUnknown'),
      evidence: /^InventoryStale/,
      async inject() {
        gate('b').rule(({ path }) =>
          path.includes('/vpcattachments') ? no('vpcattachments is forbidden') : undefined,
        )
        gate('b').breakWatches()
        await attach(cluster('b'), { addresses: ['fd20:1::e:1'] })
        const made = await create(installation, ['fd20:1::e:1'])
        await expect
          .poll(() => clusterCalled(installation.operators, CLUSTERS.b.name))
          .toMatchObject({ inventory: { reason: 'InventoryStale' } })
        return { id: made.id, undo: () => gate('b').rule(undefined) }
      },
    },
    {
      fault: 'a machine that already serves the port for an older backend',
      reachable: true,
      broken: broken('BackendsResolved', 'NodeConflict'),
      async inject() {
        const [older, younger] = ['fd20:1::c:1', 'fd20:1::c:2']
        for (const address of [older, younger]) {
          await attach(cluster('a'), { addresses: [address], node: 'shared' })
          await known(installation, address, [CLUSTERS.a.name])
        }
        const made = await createSettled(installation, [older])
        await add(installation, made, younger)
        return made
      },
    },
    {
      fault: 'a backend that lives where none are taken at the moment',
      reachable: true,
      broken: broken('BackendsResolved', 'ClusterCordoned'),
      async inject() {
        const made = await settledAt('a')
        const { id } = await clusterCalled(installation.operators, CLUSTERS.b.name)
        const mode = (to: string) => tell(installation.operators, 'updateCluster', { id, mode: to })
        await mode('CORDONED')
        await add(installation, made, ...at('b'))
        return {
          id: made.id,
          undo: async () => {
            await mode('ACTIVE')
            await rederive(installation.store, storeId(made.id))
          },
        }
      },
    },
    {
      fault: 'backends that nobody has probed yet',
      broken: broken('BackendsHealthy', 'NotProbedYet', 'UNKNOWN'),
      async inject() {
        const { id } = await clusterCalled(installation.operators, CLUSTERS.probed.name)
        await tell(installation.operators, 'updateCluster', { id, hasProber: true })
        return settledAt('probed', { healthCheck: { intervalSeconds: 300, timeoutSeconds: 60 } })
      },
    },
    {
      fault: 'one of two backends that refuses connections',
      reachable: true,
      broken: broken('BackendsHealthy', 'SomeUnhealthy'),
      evidence: /onnection refused by \[fd20:1:/,
      inject: () => stopped(1),
    },
    {
      fault: 'fewer healthy backends than asked for',
      reachable: true,
      broken: broken('BackendsHealthy', 'FailOpen'),
      inject: () => stopped(1, { minimumHealthyPercent: 80 }),
    },
    {
      fault: 'backends that all refuse connections',
      broken: broken('BackendsHealthy', 'FailOpen'),
      evidence: /onnection refused by \[fd20:1:/,
      inject: () => stopped(2),
    },
    {
      fault: 'a way from outside that is cut',
      broken: broken('Reachable', 'ProbeFailed'),
      evidence: /seen by oslo: timed out/,
      async inject() {
        const made = await settledAt('a')
        const at = new Date().toISOString()
        const result = { address: vipOf(made), port: made.port, reachable: false, at }
        await tell(installation.operators, 'reportReachability', {
          vantage: 'oslo',
          results: [{ ...result, message: 'timed out' }],
        })
        return made
      },
    },
  ]
}
