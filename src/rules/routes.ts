import { hostPrefix, isIPv4 } from './addresses.ts'
import { found, holds } from './findings.ts'
import { advertisementName } from './names.ts'
import type { NetworkGateway, NetworkRule } from './objects.ts'
import {
  announcesOnly,
  conditionOf,
  currentCondition,
  labelledFor,
  nodeOf,
  type Observed,
  said,
} from './observed.ts'
import type { Finding } from './report.ts'

/**
 * Whether one gateway announces exactly the VIP of a rule, and can be believed. `programmed` is what
 * it says of the rule itself, in the dialect where it does.
 */
export const routeFinding = (
  gateway: NetworkGateway,
  wish: NetworkRule,
  observed: Observed,
  programmed: Finding | undefined,
): Finding => {
  const node = nodeOf(gateway)
  const vip = wish.spec.vipAddresses[0] ?? ''
  const name = advertisementName(wish.metadata.name, node, isIPv4(vip))
  const trouble = troubleOf(gateway, programmed !== undefined && holds(programmed))
  if (trouble) return trouble
  const advertisement = observed.advertisements.find(({ metadata }) => metadata.name === name)
  if (!advertisement || advertisement.metadata.deletionTimestamp !== undefined)
    return found('FALSE', 'NotAdvertised', `Gateway ${node} has no advertisement of ${vip}.`)
  if (!labelledFor(advertisement, wish.metadata.name) || !announcesOnly(advertisement, vip))
    return found(
      'FALSE',
      'NotAdvertised',
      `Gateway ${node} announces something else than ${hostPrefix(vip)}.`,
    )
  const condition = currentCondition(advertisement, 'Advertised')
  if (condition?.status === 'True')
    return found('TRUE', 'Advertised', `Gateway ${node} announces ${hostPrefix(vip)}.`)
  return found(
    'FALSE',
    'NotAdvertised',
    condition
      ? `The advertisement of gateway ${node} says ${said(condition)}.`
      : `The advertisement of gateway ${node} is not announced yet.`,
  )
}

/** What a gateway says of its engine as a whole, as opposed to its announcements. */
const ENGINE_TROUBLE = new Set(['EngineDegraded', 'EngineReconcileFailed'])

/**
 * What a gateway says against itself. Any tenant's bad rule degrades a whole node, so that proves
 * nothing about this rule: Unknown, never False. That it has programmed this very rule
 * (`programmed`) is better evidence than the state of its engine.
 */
const troubleOf = (gateway: NetworkGateway, programmed: boolean): Finding | undefined => {
  const ready = conditionOf(gateway, 'Ready')
  if (ready?.status !== 'False') return undefined
  if (programmed && ENGINE_TROUBLE.has(ready.reason)) return undefined
  const says = `Gateway ${nodeOf(gateway)} says ${said(ready)}.`
  if (ready.reason === 'EngineDegraded') return found('UNKNOWN', 'EngineDegraded', says)
  if (ready.reason === 'AdvertisementFailed') return found('FALSE', 'NotAdvertised', says)
  return found('UNKNOWN', 'GatewayNotReady', says)
}

/** All gateways' routes of one VIP together. */
export const advertisedFinding = (routes: Finding[]): Finding => {
  const [first] = routes
  if (!first) return found('FALSE', 'NoGateway', 'The cluster has no NetworkGateway.')
  const held = routes.filter(holds).length
  if (held === routes.length)
    return found('TRUE', 'Advertised', 'Every gateway announces exactly the address.')
  if (held === 0) return routes.find(({ status }) => status === 'UNKNOWN') ?? first
  const status = routes.some((route) => route.status === 'FALSE') ? 'FALSE' : 'UNKNOWN'
  return found(status, 'PartlyAdvertised', `${held} of ${routes.length} gateways announce it.`)
}
