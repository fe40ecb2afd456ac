import { HASHED, type Hashed, type ProtocolNumber, slotOf } from '../../maglev/flow.ts'
import { backendKey, TABLE_SIZE, type Table, tableOf } from '../../maglev/table.ts'
import { canonical } from '../../rules/addresses.ts'
import type { Protocol, SessionAffinity } from '../../rules/wanted.ts'
import type { BackendRecord, LoadBalancerRecord } from '../records.ts'
import type { Serving } from './serving.ts'

/** Which backend serves a client, in the clusters that have one and the same table. */
export type FlowPreview = {
  /** null where nothing serves. */
  backend: BackendRecord | null
  slot: number | null
  tableSize: number
  hashedOver: readonly Hashed[]
  clusters: number
  /** Of the serving clusters. */
  share: number
}

export type Client = { address: string; port: number | undefined }

/** As IANA numbers them. */
const NUMBER: Record<Protocol, ProtocolNumber> = { TCP: 6, UDP: 17 }

/**
 * One answer for each distinct table (and affinity) among the clusters that serve the load balancer,
 * those that most of them have first. `PORT_NEEDED`: the client's port is hashed and not known.
 */
export function previewFlow(
  loadBalancer: LoadBalancerRecord,
  serving: readonly Serving[],
  client: Client,
): FlowPreview[] | 'PORT_NEEDED' {
  const kinds = kindsOf(loadBalancer, serving)
  if (kinds.length === 0) return nothingServes(loadBalancer.sessionAffinity, client)
  const total = kinds.reduce((sum, { clusters }) => sum + clusters, 0)
  const previews: FlowPreview[] = []
  for (const { table, byKey, affinity, clusters } of kinds) {
    const slot = slotOf({ ...client, protocol: NUMBER[loadBalancer.protocol] }, affinity)
    if (slot === undefined) return 'PORT_NEEDED'
    previews.push({
      backend: byKey.get(table.keys[table.slots[slot] ?? 0] ?? '') ?? null,
      slot,
      tableSize: TABLE_SIZE,
      hashedOver: HASHED[affinity],
      clusters,
      share: clusters / total,
    })
  }
  return previews
}

type Kind = {
  table: Table
  byKey: Map<string, BackendRecord>
  affinity: SessionAffinity
  clusters: number
}

/** The serving clusters by what they answer; each table is built once. */
function kindsOf(
  { backends, port }: LoadBalancerRecord,
  serving: readonly Serving[],
): readonly Kind[] {
  const kinds = new Map<string, Kind>()
  for (const { affinity, backends: listed } of serving) {
    const ids = new Set(listed)
    const byKey = new Map(
      backends
        .filter(({ id }) => ids.has(id))
        .map((backend) => [backendKey(canonical(backend.address), port), backend]),
    )
    const name = [affinity, ...[...byKey.keys()].sort()].join()
    const known = kinds.get(name)
    if (known !== undefined) {
      known.clusters += 1
      continue
    }
    const table = tableOf(byKey.keys())
    // Those that it lists may all have been removed since it was heard of.
    if (!('refused' in table)) kinds.set(name, { table, byKey, affinity, clusters: 1 })
  }
  return [...kinds.values()].sort((a, b) => b.clusters - a.clusters)
}

function nothingServes(affinity: SessionAffinity, client: Client): FlowPreview[] | 'PORT_NEEDED' {
  const hashedOver = HASHED[affinity]
  if (hashedOver.includes('CLIENT_PORT') && client.port === undefined) return 'PORT_NEEDED'
  return [{ backend: null, slot: null, tableSize: TABLE_SIZE, hashedOver, clusters: 0, share: 0 }]
}
