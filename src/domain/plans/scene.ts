import { backendKey, type Table, tableOf } from '../../maglev/table.ts'
import { canonical } from '../../rules/addresses.ts'
import { type Desired, desired } from '../../rules/desired.ts'
import type { Capabilities, Dialect, Wanted } from '../../rules/wanted.ts'
import type { StoredLoadBalancer } from '../loadBalancers/stored.ts'
import { type TakenPlacement, toTaken, type WantedRow } from '../placements/wanted.ts'
import type { Querier } from '../querier.ts'

/** What a change is about. */
export type About = {
  loadBalancers: string[]
  reservations: string[]
  /** Where in the input a backend (by its address) or a reservation (by its id) was named. */
  named: ReadonlyMap<string, string[]>
}

/** All that a plan compares, at one instant. */
export type Scene = {
  /** By id. */
  loadBalancers: Map<string, StoredLoadBalancer>
  /** Who has which address. */
  addresses: Map<string, Holding>
  /** All of the regions that it is about. */
  clusters: SceneCluster[]
}

/** `holder`: a load balancer; null: a reservation that isn't bound. */
export type Holding = { holder: string | null; reservation: string | null }

export type SceneCluster = {
  name: string
  capabilities: Capabilities
  /** By load balancer. */
  placements: Map<string, ScenePlacement>
}

export type ScenePlacement = {
  wanted: Wanted
  desired: Desired
  /** What its rules make; null: no rule, or none that makes a table. */
  table: Table | null
}

/** What there is to compare. */
export type Compared = { before: Scene; after: Scene; about: About }

/** Reads the scene of some load balancers and reservations, as the transaction has it now. */
export async function readScene(client: Querier, about: Omit<About, 'named'>): Promise<Scene> {
  const loadBalancers = await readStored(client, about.loadBalancers)
  const bound = [...loadBalancers.values()].flatMap(({ addresses }) =>
    addresses.flatMap(({ reservation }) => reservation ?? []),
  )
  const addresses = await readReserved(client, [...new Set([...about.reservations, ...bound])])
  for (const [id, stored] of loadBalancers) {
    // One that is being deleted gives its own address back as soon as nothing carries it.
    if (stored.deletingSince !== null) continue
    for (const { address, reservation } of stored.addresses) {
      if (reservation === null) addresses.set(address, { holder: id, reservation })
    }
  }
  return { loadBalancers, addresses, clusters: await readClusters(client, about) }
}

async function readStored(client: Querier, ids: string[]): Promise<Scene['loadBalancers']> {
  const { rows } = await client.query<{ id: string; record: StoredLoadBalancer }>({
    name: 'read-scene-load-balancers',
    text: 'SELECT id, record FROM load_balancers_json($1, NULL, true) ORDER BY id',
    values: [ids],
  })
  return new Map(rows.map(({ id, record }) => [id, record]))
}

async function readReserved(client: Querier, ids: string[]): Promise<Scene['addresses']> {
  const { rows } = await client.query<{ id: string; address: string; holder: string | null }>({
    name: 'read-scene-reservations',
    text: `
SELECT id, host(address) AS address, load_balancer_id AS holder FROM ipv4_reservation
WHERE id = ANY ($1::uuid[]) ORDER BY address`,
    values: [ids],
  })
  return new Map(rows.map(({ id, address, holder }) => [address, { holder, reservation: id }]))
}

type ClusterRow = {
  name: string
  dialect: Dialect | null
  sessionAffinity: boolean
  servesIPv4: boolean
  placements: WantedRow[]
}

async function readClusters(client: Querier, about: Omit<About, 'named'>): Promise<SceneCluster[]> {
  const { rows } = await client.query<ClusterRow>({
    name: 'read-scene-clusters',
    text: `
SELECT cluster.name, cluster.dialect, cluster.session_affinity AS "sessionAffinity",
  cluster.serves_ipv4 AS "servesIPv4", coalesce(placed.list, '[]'::json) AS placements
FROM cluster
CROSS JOIN LATERAL (
  -- What a move leaves standing for a while is not what it comes to.
  SELECT json_agg(json_build_object(
    'wanted', wanted::jsonb || '{"awaitsSuccessor": false}',
    'cordoned', cordoned) ORDER BY id) AS list
  FROM wanted_json(cluster.id, $1::uuid[])) AS placed
WHERE cluster.forgotten_at IS NULL AND cluster.region_id IN (
  SELECT region_id FROM load_balancer WHERE id = ANY ($1::uuid[])
  UNION SELECT region_id FROM ipv4_reservation WHERE id = ANY ($2::uuid[]))
ORDER BY cluster.name`,
    values: [about.loadBalancers, about.reservations],
  })
  return rows.map(({ name, dialect, sessionAffinity, servesIPv4, placements }) => {
    const capabilities = { dialect: dialect ?? undefined, sessionAffinity, servesIPv4 }
    const taken = placements.map(toTaken).map((each) => toPlacement(each, capabilities))
    const byId = new Map(taken.map((each) => [each.wanted.loadBalancer, each]))
    return { name, capabilities, placements: byId }
  })
}

/** By the functions of the worker that will do it. */
function toPlacement({ wanted }: TakenPlacement, capabilities: Capabilities): ScenePlacement {
  const wish = desired(wanted, capabilities)
  return { wanted, desired: wish, table: tableIn(wish, wanted.port) }
}

function tableIn(wish: Desired, port: number): Table | null {
  if (wish.rules.length === 0) return null
  const listed = Object.values(wish.backends).filter((backend) => backend.listed)
  const table = tableOf(listed.map(({ address }) => backendKey(canonical(address), port)))
  return 'refused' in table ? null : table
}
