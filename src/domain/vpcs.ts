import type { Store } from '../db/client.ts'
import { Conditions, containing, countRows, type PageRequest, readPage } from './paging.ts'
import type { EndpointRecord, Page, VpcRecord } from './records.ts'
import { regionOf } from './regions.ts'

type VpcSelection = { project: string | null; filter?: { nameContains?: string | null } | null }

/** The VPCs of a project (null: of all), by id. */
export async function readVpcs(
  store: Store,
  { project, ids }: { project: string | null; ids: string[] },
): Promise<Map<string, VpcRecord>> {
  const { rows } = await store.pool.query<VpcRecord>({
    name: 'read-vpcs',
    text: `
SELECT id, name, project FROM vpc WHERE id = ANY ($1::uuid[]) AND ($2::text IS NULL OR project = $2)`,
    values: [ids, project],
  })
  return new Map(rows.map((row) => [row.id, row]))
}

/** The oldest of that name: names are unique in a tenant's namespace only. */
export async function findVpcByName(
  store: Store,
  where: { project: string; name: string },
): Promise<string | null> {
  const vpc = await store.prisma.vpc.findFirst({
    where,
    orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
    select: { id: true },
  })
  return vpc?.id ?? null
}

/** One page of ids, by name. */
export function listVpcs(
  store: Store,
  selection: VpcSelection & { page: PageRequest },
): Promise<Page<string>> {
  return readPage<string>(
    store.pool,
    {
      from: 'vpc',
      item: 'vpc.id',
      id: 'vpc.id',
      order: { sql: 'vpc.name', type: 'text', descending: false },
      conditions: vpcConditions(selection),
    },
    selection.page,
  )
}

/** How many VPCs the filter matches. */
export function countVpcs(store: Store, selection: VpcSelection): Promise<number> {
  return countRows(store.pool, { from: 'vpc', conditions: vpcConditions(selection) })
}

function vpcConditions({ project, filter }: VpcSelection): Conditions {
  const conditions = new Conditions()
  // A VPC that belongs to nobody is nobody's to see.
  conditions.add('vpc.project IS NOT NULL')
  if (project !== null) conditions.add('vpc.project = ?', project)
  if (filter?.nameContains) conditions.add('vpc.name LIKE ?', containing(filter.nameContains))
  return conditions
}

type EndpointSelection = {
  /** The VPC's id. */
  vpc: string
  filter?: {
    region?: string[] | null
    nameContains?: string | null
    address?: string | null
  } | null
}

/** An address of a VPC that several attachments or clusters report is one endpoint: the first seen. */
const ENDPOINTS = `(
  SELECT DISTINCT ON (endpoint.vpc_id, endpoint.address) endpoint.vpc_id, endpoint.address,
    endpoint.attachment_name AS name, cluster.region_id, endpoint.cluster_id AS id,
    cluster.name AS cluster, endpoint.node
  FROM endpoint JOIN cluster ON cluster.id = endpoint.cluster_id
  WHERE endpoint.vpc_id = (SELECT id FROM vpc WHERE id = $1::uuid) AND cluster.forgotten_at IS NULL
  ORDER BY endpoint.vpc_id, endpoint.address, endpoint.seen_at, endpoint.attachment_uid) endpoint`

/** One page of the addresses known to live in a VPC, in the order of addresses. */
export async function listEndpoints(
  store: Store,
  selection: EndpointSelection & { page: PageRequest },
): Promise<Page<EndpointRecord>> {
  const page = await readPage<Omit<EndpointRecord, 'region'> & { regionId: string }>(
    store.pool,
    {
      from: ENDPOINTS,
      item: `json_build_object('address', host(endpoint.address), 'name', endpoint.name, 'regionId', endpoint.region_id,
        'cluster', endpoint.cluster, 'node', endpoint.node)`,
      id: 'endpoint.id',
      order: { sql: 'endpoint.address', type: 'inet', descending: false },
      conditions: endpointConditions(selection),
    },
    selection.page,
  )
  const items = page.items.map(async ({ cursor, item: { regionId, ...item } }) => ({
    cursor,
    item: { ...item, region: await regionOf(store, regionId) },
  }))
  return { ...page, items: await Promise.all(items) }
}

/** How many endpoints the filter matches. */
export function countEndpoints(store: Store, selection: EndpointSelection): Promise<number> {
  return countRows(store.pool, { from: ENDPOINTS, conditions: endpointConditions(selection) })
}

function endpointConditions({ vpc, filter }: EndpointSelection): Conditions {
  const conditions = new Conditions()
  // The first value: `ENDPOINTS` names it $1.
  conditions.add('endpoint.vpc_id = ?::uuid', vpc)
  if (filter?.region) {
    conditions.add(
      'endpoint.region_id IN (SELECT id FROM region WHERE code = ANY (?::text[]))',
      filter.region,
    )
  }
  if (filter?.nameContains) conditions.add('endpoint.name LIKE ?', containing(filter.nameContains))
  if (filter?.address) conditions.add('endpoint.address = ?::inet', filter.address)
  return conditions
}
