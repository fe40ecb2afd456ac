import { describe, expect, test } from 'vitest'
import type { Observed } from '../../src/rules/observed.ts'
import type { PlacementReport } from '../../src/rules/report.ts'
import { condition, first, replaced, report, troubled } from './galactic.ts'
import { BACKENDS, SELECTOR, VIP, wanted } from './wishes.ts'

const provisioned = ({ vips }: PlacementReport, address = VIP) => vips[address]?.provisioned

type Fault = [string, (seen: Observed) => Observed | undefined, string, string]

const faults: Fault[] = [
  ['the rule is not there', (seen) => ({ ...seen, rules: [] }), 'FALSE', 'Progressing'],
  [
    'the rule is another',
    (seen) => {
      first(seen.rules).spec.port = 81
      return undefined
    },
    'FALSE',
    'Progressing',
  ],
  [
    'it was never accepted',
    (seen) => {
      first(seen.rules).status = {}
      return undefined
    },
    'FALSE',
    'Progressing',
  ],
  [
    'it was refused',
    (seen) => {
      replaced(first(seen.rules), condition('Accepted', 'False', 'NoGatewayNodes', 1))
      return undefined
    },
    'FALSE',
    'NotAccepted',
  ],
  ['there is no gateway', (seen) => ({ ...seen, gateways: [] }), 'FALSE', 'NoGateway'],
  [
    'one gateway announces nothing',
    (seen) => ({ ...seen, advertisements: seen.advertisements.slice(1) }),
    'FALSE',
    'NotAdvertised',
  ],
  [
    'an announcement is of another prefix too',
    (seen) => {
      first(seen.advertisements).spec.prefixes = [`${VIP}/128`, '2001:db8::/32']
      return undefined
    },
    'FALSE',
    'NotAdvertised',
  ],
  [
    'an announcement carries no label of the rule',
    (seen) => {
      first(seen.advertisements).metadata.labels = {}
      return undefined
    },
    'FALSE',
    'NotAdvertised',
  ],
  [
    'an announcement was for an older generation',
    (seen) => {
      first(seen.advertisements).metadata.generation = 2
      return undefined
    },
    'FALSE',
    'NotAdvertised',
  ],
  [
    'a gateway is degraded by whomever',
    (seen) => ({
      ...seen,
      gateways: [troubled('gw-1', 'EngineDegraded'), ...seen.gateways.slice(1)],
    }),
    'UNKNOWN',
    'EngineDegraded',
  ],
  [
    'a degraded gateway announces nothing',
    (seen) => ({
      ...seen,
      gateways: [troubled('gw-1', 'EngineDegraded'), ...seen.gateways.slice(1)],
      advertisements: seen.advertisements.slice(1),
    }),
    'UNKNOWN',
    'EngineDegraded',
  ],
  [
    'a gateway cannot announce',
    (seen) => ({
      ...seen,
      gateways: seen.gateways.map(() => troubled('gw-1', 'AdvertisementFailed')),
    }),
    'FALSE',
    'NotAdvertised',
  ],
]

const bindingFaults: Fault[] = [
  [
    'a binding is missing',
    (seen) => ({ ...seen, bindings: seen.bindings.slice(1) }),
    'FALSE',
    'Progressing',
  ],
  [
    'a binding failed',
    (seen) => {
      replaced(first(seen.bindings), condition('Bound', 'False', 'BindFailed', 1))
      return undefined
    },
    'FALSE',
    'BindFailed',
  ],
  [
    'a binding was bound in an older generation',
    (seen) => {
      first(seen.bindings).metadata.generation = 2
      return undefined
    },
    'FALSE',
    'Progressing',
  ],
]

const selectorFaults: Fault[] = [
  [
    'a gateway has programmed an older generation',
    (seen) => {
      replaced(first(seen.rules), condition('gw-1/Programmed', 'True', 'Programmed', 2))
      return undefined
    },
    'FALSE',
    'Progressing',
  ],
  [
    'a gateway could not load it',
    (seen) => {
      replaced(first(seen.rules), condition('gw-1/Programmed', 'False', 'LoadFailed', 3))
      return undefined
    },
    'FALSE',
    'LoadFailed',
  ],
  [
    'a node has not bound its backends',
    (seen) => {
      replaced(
        first(seen.rules),
        condition('worker-1/BackendsBound', 'False', 'BindingsNotBound', 3),
      )
      return undefined
    },
    'FALSE',
    'BindFailed',
  ],
]

const degraded = 'a gateway is degraded by whomever'
const alike = faults.filter(([name]) => name !== degraded)

describe.each([
  ['backends', BACKENDS, [...faults, ...bindingFaults]],
  [
    'selector',
    SELECTOR,
    [...alike.filter(([, , status]) => status === 'FALSE'), ...selectorFaults],
  ],
] as const)('in the %s dialect it is not in effect where', (_, can, table) => {
  test.each(table)('%s', (_name, change, status, reason) => {
    const said = report(wanted(), can, change)
    expect(said.inEffect).toBe(false)
    expect(provisioned(said)).toMatchObject({ status, reason })
  })
})
