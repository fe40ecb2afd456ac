import {
  ADVERTISEMENT_RULE_LABEL,
  BGP_ADVERTISEMENTS,
  type BGPAdvertisement,
  DATA_PLANE_NAMESPACE,
  NETWORK_GATEWAYS,
  type NetworkGateway,
} from '../../src/rules/objects.ts'
import { withdraw } from './advertising.ts'
import { type Said, withCondition } from './conditions.ts'
import type { Action } from './jobs.ts'
import { nodeOf, routerOf, type World } from './world.ts'

/** A gateway's own condition: how its engine does. */
export function planGateway(world: World, name: string): Action | undefined {
  const gateway = world.followed.gateways.objects.get(`${DATA_PLANE_NAMESPACE}/${name}`)
  const node = nodeOf(gateway)
  if (gateway === undefined || node === undefined) return undefined
  const { generation, resourceVersion } = gateway.metadata
  const conditions = withCondition(gateway.status?.conditions, readyOf(world, node), generation)
  if (conditions === undefined) return undefined
  return {
    step: 'report',
    subjects: [node],
    async run() {
      const patch = {
        metadata: { resourceVersion },
        status: { observedGeneration: generation, conditions },
      }
      const written = await world.writer.patchStatus<NetworkGateway>(
        NETWORK_GATEWAYS,
        { name, namespace: DATA_PLANE_NAMESPACE },
        patch,
      )
      world.followed.gateways.learn(written)
      return 'seen'
    },
  }
}

/** A node that runs no gateway any more withdraws what it advertised. */
export function planDeparted(world: World, node: string): Action | undefined {
  if (world.engines.has(node)) return undefined
  const left = [...world.followed.advertisements.objects.values()].filter(
    ({ metadata, spec }) =>
      spec.routerRef.name === routerOf(node) &&
      metadata.labels?.[ADVERTISEMENT_RULE_LABEL] !== undefined,
  )
  if (left.length === 0) return undefined
  return {
    step: 'teardown',
    subjects: [node],
    async run() {
      await Promise.all(left.map(({ metadata }) => withdraw(world, metadata.name)))
      return 'unseen'
    },
  }
}

/** What the router says of a rule's route, at the route's own generation; it never says False. */
export function planAdvertisement(world: World, name: string): Action | undefined {
  const advertisement = world.advertisement(name)
  const rule = advertisement?.metadata.labels?.[ADVERTISEMENT_RULE_LABEL]
  if (advertisement === undefined || rule === undefined) return undefined
  const { generation, resourceVersion, deletionTimestamp } = advertisement.metadata
  if (deletionTimestamp !== undefined) return undefined
  const before = advertisement.status?.conditions
  const ready = withCondition(before, { ...ACCEPTED }, generation)
  const after = withCondition(ready ?? before, { ...ADVERTISED }, generation)
  if (ready === undefined && after === undefined) return undefined
  return {
    step: 'advertise',
    subjects: [rule],
    async run() {
      const status = {
        observedGeneration: generation,
        advertisedPrefixes: advertisement.spec.prefixes?.length ?? 0,
        conditions: after ?? ready,
      }
      const written = await world.writer.patchStatus<BGPAdvertisement>(
        BGP_ADVERTISEMENTS,
        { name, namespace: DATA_PLANE_NAMESPACE },
        { metadata: { resourceVersion }, status },
      )
      world.followed.advertisements.learn(written)
      return 'seen'
    },
  }
}

const ACCEPTED: Said = {
  type: 'Ready',
  status: 'True',
  reason: 'Accepted',
  message: 'advertisement accepted',
}
const ADVERTISED: Said = {
  type: 'Advertised',
  status: 'True',
  reason: 'Advertised',
  message: 'all prefixes are advertised',
}

function readyOf(world: World, node: string): Said {
  const said = world.saidReady.get(node)
  if (said !== undefined) return { type: 'Ready', message: 'set by hand', ...said }
  const errors = world.engines.get(node)?.errors
  if (errors !== undefined && errors.size > 0) {
    // Today's says no more than that; the later one names the rules.
    const all = [...errors].map(([rule, error]) => `${rule}: ${error}`).join('; ')
    const message =
      world.dialect === 'backends'
        ? 'one or more NetworkRules failed to apply'
        : `NetworkRules failed to apply: ${all}`
    return { type: 'Ready', status: 'False', reason: 'EngineDegraded', message }
  }
  const [failure] = world.advertising.get(node) ?? []
  if (failure !== undefined) {
    const message = `networkRule ${failure[0]}: ${failure[1]}`.slice(0, 1000)
    return { type: 'Ready', status: 'False', reason: 'AdvertisementFailed', message }
  }
  const message = 'gateway engine converged'
  return { type: 'Ready', status: 'True', reason: 'EngineHealthy', message }
}
