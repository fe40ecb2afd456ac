import { readFile } from 'node:fs/promises'
import { expect } from 'vitest'
import { DATA_PLANE_NAMESPACE, NETWORK_RULES } from '../../src/rules/objects.ts'
import type { Installation } from '../support/installation.ts'
import { rulesIn } from '../support/objects.ts'
import { create, createSettled, isOf, storeId, vipOf } from '../workers/scene.ts'
import { broken, CLUSTERS, explainScene, type Fault } from './explainScene.ts'
import { explainedAs } from './explanations.ts'
import { accepted, DELETE } from './operations.ts'
import { clusterCalled } from './operators.ts'

/** Faults of clusters and of their data planes. */
export function clusterFaults(installation: Installation): Fault[] {
  const { cluster, gate, at, within, settledAt, forbid, heldAt, gatewaysSay, reserved } =
    explainScene(installation)
  return [
    {
      fault: 'the only cluster down',
      broken: broken('RuleApplied', 'ClusterUnreachable', 'UNKNOWN'),
      async inject() {
        const made = await settledAt('b')
        gate('b').rule(() => 'reset')
        gate('b').breakWatches()
        return { id: made.id, undo: () => gate('b').rule(undefined) }
      },
    },
    {
      fault: 'one of two clusters down',
      reachable: true,
      broken: broken('RuleApplied', 'ClusterUnreachable', 'UNKNOWN'),
      async inject() {
        const made = await createSettled(installation, at('a', 'b'))
        gate('b').rule(() => 'reset')
        gate('b').breakWatches()
        return { id: made.id, undo: () => gate('b').rule(undefined) }
      },
    },
    {
      fault: 'a cluster without the kind of object that rules are',
      broken: broken('RuleApplied', 'SchemaMissing'),
      async inject() {
        const file = new URL('../../dev/crds/networkrules.yaml', import.meta.url)
        const crd = await readFile(file, 'utf8')
        const { storage } = cluster('lonely').server
        storage.setCrd(
          crd.replace('backends:', 'others:').replace('required: [backends,', 'required: ['),
        )
        await expect
          .poll(() => clusterCalled(installation.operators, CLUSTERS.lonely.name))
          .toMatchObject({
            capabilities: expect.not.arrayContaining([{ name: 'dialect', value: 'backends' }]),
          })
        const made = await create(installation, at('lonely'), within('lonely'))
        return { id: made.id, undo: () => storage.setCrd(crd) }
      },
    },
    {
      fault: 'a missing right to write rules',
      broken: broken('RuleApplied', 'RightsMissing'),
      evidence: /networkrules is forbidden/,
      async inject() {
        const undo = forbid('a', 'networkrules')
        const made = await create(installation, at('a'))
        return { id: made.id, undo }
      },
    },
    {
      fault: 'a missing right to write bindings',
      broken: broken('Programmed', 'RightsMissing'),
      evidence: /servicevipbindings is forbidden/,
      async inject() {
        const undo = forbid('a', 'servicevipbindings')
        const made = await create(installation, at('a'))
        return { id: made.id, undo }
      },
    },
    {
      fault: 'a rule that somebody else edited and guards',
      broken: broken('RuleApplied', 'RuleEdited'),
      evidence: /fleet changed the rule/,
      async inject() {
        const made = await settledAt('a')
        const rule = (await rulesIn(cluster('a'))).find(isOf(made))
        const undo = forbid('a', 'networkrules')
        const where = { name: rule?.metadata.name ?? '', namespace: DATA_PLANE_NAMESPACE }
        await cluster('a').writer.patch(NETWORK_RULES, where, {
          spec: { vipAddresses: [vipOf(made), '2001:db8:1::ffff'] },
        })
        return { id: made.id, undo }
      },
    },
    {
      fault: 'an affinity that no cluster keeps',
      reachable: true,
      broken: broken('RuleApplied', 'AffinityNotSupported'),
      inject: () => settledAt('a', { sessionAffinity: 'CLIENT_IP' }),
    },
    {
      fault: 'an IPv4 address where IPv4 is not served',
      reachable: true,
      broken: broken('RuleApplied', 'AddressFamilyNotServed'),
      async inject() {
        const { id: reservation } = await reserved('a')
        return settledAt('a', { ipv4Reservations: [reservation] })
      },
    },
    {
      fault: 'a deletion that the data plane does not finish',
      broken: broken('RuleApplied', 'TeardownStuck'),
      async inject() {
        const made = await settledAt('a')
        const undo = cluster('a').dataPlane.hold('teardown', vipOf(made))
        await accepted(installation.api, DELETE, { id: made.id })
        return { id: made.id, undo }
      },
    },
    {
      fault: 'no worker that serves the cluster',
      broken: broken('RuleApplied', 'NoWorker', 'UNKNOWN'),
      async inject() {
        await installation.workers.close()
        const made = await create(installation, at('a'))
        return { id: made.id, undo: () => installation.restartWorkers() }
      },
    },
    {
      fault: 'a data plane that has not accepted the rule',
      broken: broken('DataPlaneAccepted', 'Progressing'),
      inject: () => heldAt('accept'),
    },
    {
      fault: 'a data plane that refuses the rule',
      broken: broken('DataPlaneAccepted', 'NotAccepted'),
      evidence: /NoCapacity/,
      async inject() {
        const held = await heldAt('accept')
        await explainedAs(installation.api, held.id, broken('DataPlaneAccepted', 'Progressing'))
        const uuid = storeId(held.id).replaceAll('-', '')
        const rule = (await rulesIn(cluster('a'))).find(({ metadata }) =>
          metadata.name.includes(uuid),
        )
        const where = { name: rule?.metadata.name ?? '', namespace: DATA_PLANE_NAMESPACE }
        const says = { type: 'Accepted', status: 'False', reason: 'NoCapacity', message: 'full' }
        const lastTransitionTime = '2026-01-01T00:00:00Z'
        await cluster('a').writer.patchStatus(NETWORK_RULES, where, {
          status: { conditions: [{ ...says, lastTransitionTime, observedGeneration: 1 }] },
        })
        return held
      },
    },
    {
      fault: 'a cluster whose gateways are gone',
      broken: broken('DataPlaneAccepted', 'NoGateway'),
      async inject() {
        const { dataPlane } = cluster('lonely')
        const nodes = ['eu-north-1-a-gateway-1', 'eu-north-1-a-gateway-2']
        for (const node of nodes) await dataPlane.dropGateway(node)
        const made = await create(installation, at('lonely'), within('lonely'))
        return {
          id: made.id,
          undo: async () => {
            for (const node of nodes) await dataPlane.addGateway(node)
          },
        }
      },
    },
    {
      fault: 'backends that are not bound on their machines',
      broken: broken('Programmed', 'Progressing'),
      inject: () => heldAt('bind'),
    },
    {
      fault: 'gateways that report trouble of their own',
      broken: broken('Programmed', 'EngineDegraded', 'UNKNOWN'),
      async inject() {
        const made = await settledAt('a')
        await gatewaysSay('EngineDegraded')
        return { id: made.id, undo: () => gatewaysSay(undefined) }
      },
    },
    {
      fault: 'an address that is not announced',
      broken: broken('Advertised', 'NotAdvertised'),
      inject: () => heldAt('advertise'),
    },
    {
      fault: 'one of two gateways that does not announce it',
      reachable: true,
      broken: broken('Advertised', 'PartlyAdvertised'),
      async inject() {
        const made = await settledAt('a')
        await gatewaysSay('AdvertisementFailed', 1)
        return { id: made.id, undo: () => gatewaysSay(undefined, 1) }
      },
    },
  ]
}
