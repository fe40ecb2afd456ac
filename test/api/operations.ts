import type { Installation } from '../support/installation.ts'

const REFUSAL = '... on UserError { code message path hint retryable }'
const ISSUES = '... on ValidationFailed { issues { code message path suggestion } }'
/** These have nothing to be invalid. */
const WITHOUT_ISSUES = /^(?:delete|unbind)/

const CONDITION = 'type status reason message lastTransitionTime observedGeneration'

export const LOAD_BALANCER = `
  id name displayName description labels { key value } projectName generation deletionProtection
  region { code } vpc { id name } protocolName ports { from to } sessionAffinity
  addresses { address prefix family ipv4Reservation { id name }
    status { provisioned { status reason } advertised { status reason } reachable { status reason } } }
  backends(first: 100) { totalCount nodes { id address name adminState serving resolved { status reason message } health { state reason } } }
  status { phase observedGeneration conditions { ${CONDITION} } ready { status reason } provisioned { status reason }
    advertised { status reason } backendCounts { total serving } }
  deletingSince createdAt updatedAt`

export type Condition = { type: string; status: string; reason: string; message: string }
export type LoadBalancer = {
  id: string
  name: string
  displayName: string | null
  generation: number
  protocolName: string
  ports: { from: number; to: number }[]
  sessionAffinity: string
  addresses: {
    address: string
    prefix: string
    family: string
    ipv4Reservation: { id: string } | null
    status: Record<'provisioned' | 'advertised' | 'reachable', { status: string; reason: string }>
  }[]
  backends: {
    totalCount: number
    nodes: {
      id: string
      address: string
      serving: boolean
      resolved: { status: string; reason: string }
      health: { state: string; reason: string }
    }[]
  }
  status: {
    phase: string
    observedGeneration: number
    conditions: Condition[]
    ready: { status: string; reason: string }
    provisioned: { status: string; reason: string }
    advertised: { status: string; reason: string }
  }
  deletingSince: string | null
}
export type Refusal = {
  __typename: string
  code: string
  message: string
  path: string[]
  hint: string | null
  issues?: { code: string; message: string; path: string[]; suggestion: string | null }[]
}

const mutation = (name: string, fields: string): string => {
  const issues = WITHOUT_ISSUES.test(name) ? '' : ISSUES
  const type = `${name[0]?.toUpperCase()}${name.slice(1)}`
  return `mutation ($input: ${type}Input!) { ${name}(input: $input) { __typename ${REFUSAL} ${issues} ... on ${type}Payload { ${fields} } } }`
}

const LB = `loadBalancer { ${LOAD_BALANCER} }`
export const RESERVATION = `id name address state generation region { code }
  bindings { state loadBalancer { id name } effective { status reason } }`
const RESERVED = `reservation { ${RESERVATION} }`

export const CREATE = mutation('createLoadBalancer', LB)
export const UPDATE = mutation('updateLoadBalancer', LB)
export const DELETE = mutation('deleteLoadBalancer', LB)
export const ADD_BACKENDS = mutation('addBackends', `${LB} backends { id address }`)
export const REMOVE_BACKENDS = mutation('removeBackends', LB)
export const SET_BACKENDS = mutation('setBackends', LB)
export const UPDATE_BACKENDS = mutation('updateBackends', `${LB} backends { id address }`)
export const RESERVE = mutation('createIPv4Reservation', RESERVED)
export const UPDATE_RESERVATION = mutation('updateIPv4Reservation', RESERVED)
export const RELEASE = mutation('deleteIPv4Reservation', RESERVED)
export const BIND = mutation('bindIPv4Reservation', `${RESERVED} ${LB}`)
export const UNBIND = mutation('unbindIPv4Reservation', `${RESERVED} ${LB}`)
export const MOVE = mutation(
  'moveIPv4Reservation',
  `${RESERVED} from { ${LOAD_BALANCER} } to { ${LOAD_BALANCER} }`,
)
export const SHOW = `query ($id: ID!) { loadBalancer(id: $id) { ${LOAD_BALANCER} } }`
export const SHOW_RESERVATION = `query ($id: ID!) { ipv4Reservation(id: $id) { ${RESERVATION} } }`

export type Reservation = {
  id: string
  name: string
  address: string
  state: string
  generation: number
  bindings: {
    state: string
    loadBalancer: { id: string }
    effective: { status: string; reason: string }
  }[]
}

/** An input with everything that has to be there, and what the test is about. */
export const inputOf = (
  installation: Pick<Installation, 'vpc'>,
  input: Record<string, unknown>,
): Record<string, unknown> => ({
  vpc: installation.vpc(),
  region: 'us-east-1',
  protocol: { tcp: { port: 80 } },
  ...input,
})

/** The payload of a change that can't be refused. */
export async function accepted<T = { loadBalancer: LoadBalancer }>(
  api: Installation['api'],
  operation: string,
  input: Record<string, unknown>,
): Promise<T> {
  const result = await api.get<T & { __typename: string }>(operation, { input })
  if (!result.__typename.endsWith('Payload')) throw new Error(JSON.stringify(result))
  return result
}

/** Creates a load balancer that can't be refused. */
export async function createLoadBalancer(
  installation: Pick<Installation, 'vpc' | 'api'>,
  input: Record<string, unknown>,
): Promise<LoadBalancer> {
  const { loadBalancer } = await accepted(installation.api, CREATE, inputOf(installation, input))
  return loadBalancer
}
