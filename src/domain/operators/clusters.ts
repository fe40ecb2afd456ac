import type { Store } from '../../db/client.ts'
import { violatedConstraint } from '../../db/failure.ts'
import { hint } from '../hints.ts'
import { newId } from '../ids.ts'
import { type Checked, invalidValues, isValid, type ValidationIssue } from '../input.ts'
import { Conditions, countRows, type PageRequest, readPage } from '../paging.ts'
import { askLiving, deriveAtFirst } from '../placements/later.ts'
import type { Querier } from '../querier.ts'
import type { Page } from '../records.ts'
import { NameTaken, type Refusal, ValidationFailed } from '../refusals.ts'
import { CLUSTER_JSON, type ClusterRecord, type StoredCluster, toCluster } from './clusterRecord.ts'
import { findRegion, noRegion } from './regions.ts'

export type RegisterClusterInput = {
  name: Checked<string>
  region: string
  /** The kubeconfig context that reaches it. */
  context: string
  servesIPv4?: boolean
  resolvesRemoteBackends?: boolean
  hasProber?: boolean
}

/**
 * Makes a cluster of a region known; workers take it up within a second. The name of a cluster that was
 * forgotten takes that one up again: its leftovers are swept before anything is placed there.
 */
export async function registerCluster(
  store: Store,
  given: RegisterClusterInput,
): Promise<{ cluster: { id: string } } | Refusal> {
  const { region: code, ...fields } = given
  const regionId = await findRegion(store, code)
  if (regionId === null) return noRegion(code)
  const issues = [...invalidValues({ name: fields.name }), ...contextIssues(fields.context)]
  if (issues.length > 0 || !isValid(fields)) return new ValidationFailed(issues)
  try {
    const id = newId()
    await store.prisma.cluster.create({ data: { id, regionId, ...fields } })
    hint(store)
    return { cluster: { id } }
  } catch (error) {
    if (violatedConstraint(error) !== 'cluster_name_key') throw error
    const id = await takeUpAgain(store, { ...fields, regionId })
    if (id !== undefined) return { cluster: { id } }
    return new NameTaken({
      message: `There is a cluster "${fields.name}" already.`,
      path: ['name'],
      takenName: fields.name,
    })
  }
}

/** The id of the forgotten cluster of that name and region, which is one to be served from now on. */
async function takeUpAgain(
  store: Store,
  { name, regionId, ...fields }: { name: string; regionId: string; context: string },
): Promise<string | undefined> {
  const [again] = await store.prisma.cluster.updateManyAndReturn({
    where: { name, regionId, forgottenAt: { not: null } },
    // A lease that ends begins another epoch: its worker starts from nothing, with the sweep.
    data: {
      ...fields,
      mode: 'ACTIVE',
      forgottenAt: null,
      cordonedSince: null,
      leaseUntil: new Date(0),
      untendedSince: null,
    },
    select: { id: true },
  })
  if (again === undefined) return undefined
  await deriveAtFirst(store, await askLiving(store.pool, again.id))
  hint(store)
  return again.id
}

// Neither control characters nor halves of surrogate pairs.
const CONTEXT = /^[^\p{Cc}\p{Cs}]{1,253}$/u

/** What is wrong with the name of a kubeconfig context. */
export function contextIssues(context: string): ValidationIssue[] {
  if (CONTEXT.test(context)) return []
  const message =
    'A context has 1 to 253 printable characters: the name of one in the kubeconfig of the workers.'
  return [{ code: 'INVALID_CONTEXT', message, path: ['context'], suggestion: null }]
}

/** Clusters by id. */
export async function readClusters(
  store: Store,
  ids: readonly string[],
  client: Querier = store.pool,
): Promise<Map<string, ClusterRecord>> {
  const { rows } = await client.query<{ cluster: StoredCluster }>(
    `SELECT ${CLUSTER_JSON} AS cluster FROM cluster WHERE id = ANY ($1::uuid[])`,
    [ids],
  )
  return new Map(rows.map(({ cluster }) => [cluster.id, toCluster(cluster)]))
}

/** The id of the cluster of that name; null when there is none. */
export async function findClusterByName(store: Store, name: string): Promise<string | null> {
  const cluster = await store.prisma.cluster.findUnique({ where: { name }, select: { id: true } })
  return cluster?.id ?? null
}

/** One page of clusters, by name; `region` is a code. */
export async function listClusters(
  store: Store,
  { region, page }: { region: string | null; page: PageRequest },
): Promise<Page<ClusterRecord>> {
  const { items, ...rest } = await readPage<StoredCluster>(
    store.pool,
    {
      from: 'cluster',
      item: CLUSTER_JSON,
      id: 'cluster.id',
      order: { sql: 'cluster.name', type: 'text', descending: false },
      conditions: ofRegion(region),
    },
    page,
  )
  return { ...rest, items: items.map(({ cursor, item }) => ({ cursor, item: toCluster(item) })) }
}

/** How many there are. */
export function countClusters(store: Store, region: string | null): Promise<number> {
  return countRows(store.pool, { from: 'cluster', conditions: ofRegion(region) })
}

function ofRegion(code: string | null): Conditions {
  const conditions = new Conditions()
  if (code !== null) {
    conditions.add('cluster.region_id IN (SELECT id FROM region WHERE code = ?)', code)
  }
  return conditions
}

/**
 * The load balancers that keep a cluster from being drained: they are there, and have backends in no
 * other cluster that would take them.
 */
export function listBlocking(
  store: Store,
  { cluster, page }: { cluster: string; page: PageRequest },
): Promise<Page<string>> {
  return readPage<string>(
    store.pool,
    {
      from: BLOCKING,
      item: 'lb.id',
      id: 'lb.id',
      order: { sql: 'lb.created_at', type: 'timestamptz', descending: false },
      conditions: blocking(cluster),
    },
    page,
  )
}

/** How many of them there are. */
export function countBlocking(store: Store, cluster: string): Promise<number> {
  return countRows(store.pool, { from: BLOCKING, conditions: blocking(cluster) })
}

const BLOCKING = `placement JOIN load_balancer lb ON lb.id = placement.load_balancer_id
  JOIN cluster ON cluster.id = placement.cluster_id AND cluster.mode = 'DRAINED' AND cluster.forgotten_at IS NULL`

function blocking(cluster: string): Conditions {
  const conditions = new Conditions()
  conditions.add('placement.cluster_id = ?::uuid', cluster)
  conditions.add('placement.placed')
  // Where it may be it is placed: to derive that anew for a hundred thousand takes longer than a statement may.
  conditions.add(`NOT EXISTS (SELECT FROM placement other
    JOIN cluster taker ON taker.id = other.cluster_id AND taker.mode <> 'DRAINED' AND taker.forgotten_at IS NULL
    WHERE other.load_balancer_id = lb.id AND other.placed)`)
  return conditions
}
