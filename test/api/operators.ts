/** What operators ask and are answered, as their tests use it. */
import type { Api } from '../support/api.ts'

const ERROR = '... on UserError { code message path hint retryable }'

export const CLUSTER = `id name context mode state servesIPv4 resolvesRemoteBackends hasProber rules behind lagSeconds owner
  region { code } reachable { status reason message } sweep { status reason message } inventory { status reason }
  capabilities { name value } blockedBy { totalCount nodes { id name } }`
export const POOL = `id name region { code } family prefix allocationPrefixLength state skipFirstAndLast coolDownSeconds
  excluded size used held coolingDown`

type Condition = { status: string; reason: string; message: string }
export type Cluster = {
  id: string
  name: string
  context: string
  mode: string
  state: string
  servesIPv4: boolean
  hasProber: boolean
  rules: number
  behind: number
  lagSeconds: number
  owner: string | null
  reachable: Condition
  sweep: Condition
  inventory: Condition
  capabilities: { name: string; value: string }[]
  blockedBy: { totalCount: number; nodes: { id: string; name: string }[] }
}
export type Pool = {
  id: string
  name: string
  prefix: string
  state: string
  coolDownSeconds: number
  excluded: string[]
  size: string
  used: string
  held: string
  coolingDown: string
}
export type Told = {
  __typename: string
  code?: string
  path?: string[]
  message?: string
  hint?: string | null
  missingId?: string | null
  takenName?: string
  poolName?: string
  prefix?: string
  holders?: string[]
  rules?: number
  issues?: { code: string; path: string[]; suggestion: string | null }[]
  cluster?: Cluster
  pool?: Pool
  leftovers?: { cluster: string; kind: string; name: string; address: string }[]
}

const DATA: Record<string, string> = {
  ValidationFailed: 'issues { code path suggestion }',
  NotFound: 'missingId',
  NameTaken: 'takenName',
  PoolOverlap: 'poolName prefix',
  PoolInUse: 'holders',
  ClusterInUse: 'rules',
}

const MUTATIONS: Record<string, [payload: string, refusals: string[]]> = {
  createRegion: ['region { id code displayName cityCode }', ['ValidationFailed', 'NameTaken']],
  registerCluster: [`cluster { ${CLUSTER} }`, ['ValidationFailed', 'NotFound', 'NameTaken']],
  updateCluster: [`cluster { ${CLUSTER} }`, ['ValidationFailed', 'NotFound']],
  removeCluster: [`cluster { ${CLUSTER} }`, ['NotFound', 'ClusterInUse']],
  forgetCluster: [
    `cluster { ${CLUSTER} } leftovers { cluster kind name address }`,
    ['ValidationFailed', 'NotFound'],
  ],
  createAddressPool: [
    `pool { ${POOL} }`,
    ['ValidationFailed', 'NotFound', 'NameTaken', 'PoolOverlap'],
  ],
  updateAddressPool: [
    `pool { ${POOL} }`,
    ['ValidationFailed', 'NotFound', 'PoolOverlap', 'PoolInUse'],
  ],
  deleteAddressPool: [`pool { ${POOL} }`, ['NotFound', 'PoolInUse']],
  setQuota: ['quota { resource region used limit }', ['ValidationFailed', 'NotFound']],
  setProjectRelease: [
    'project { name released quotas { resource region used limit } }',
    ['ValidationFailed'],
  ],
  reportReachability: ['accepted', ['ValidationFailed']],
}

/** One mutation of operators with everything that it may answer; errors of the request fail. */
export function tell(api: Api, name: string, input: Record<string, unknown>): Promise<Told> {
  const known = MUTATIONS[name]
  if (known === undefined) throw new Error(`no mutation ${name}`)
  const [payload, refusals] = known
  const type = `${name[0]?.toUpperCase()}${name.slice(1)}`
  const data = refusals.map((one) => `... on ${one} { ${DATA[one] ?? ''} }`).join(' ')
  return api.get(
    `mutation ($input: ${type}Input!) { ${name}(input: $input) { __typename ... on ${type}Payload { ${payload} } ${ERROR} ${data} } }`,
    { input },
  )
}

/** One cluster by its name. */
export async function clusterCalled(api: Api, name: string): Promise<Cluster> {
  const query = `query ($name: ResourceName!) { cluster(name: $name) { ${CLUSTER} } }`
  const cluster = await api.get<Cluster | null>(query, { name })
  if (cluster === null) throw new Error(`there is no cluster ${name}`)
  return cluster
}

/** One pool by its name. */
export async function poolCalled(api: Api, name: string): Promise<Pool> {
  const { nodes } = await api.get<{ nodes: Pool[] }>(
    `{ addressPools(first: 100) { nodes { ${POOL} } } }`,
  )
  const pool = nodes.find((one) => one.name === name)
  if (pool === undefined) throw new Error(`there is no pool ${name}`)
  return pool
}
