import DataLoader from 'dataloader'
import type { ClusterRecord } from '../../domain/operators/clusterRecord.ts'
import { readClusters } from '../../domain/operators/clusters.ts'
import { type PlacementRecord, readPlacements } from '../../domain/operators/placementRecord.ts'
import { FOR_OPERATORS } from '../audience.ts'
import { builder } from '../builder.ts'
import { type Context, requirePermission } from '../context.ts'
import { LoadBalancer } from '../loadBalancer.ts'
import { StatusCondition } from '../statusCondition.ts'
import { Cluster } from './cluster.ts'

type Readers = {
  placements: DataLoader<string, PlacementRecord[]>
  clusters: DataLoader<string, ClusterRecord | null>
}

/** They only gather what is asked for at one moment; nothing is kept, since streams live long. */
const readers = new WeakMap<Context, Readers>()

function readersOf(context: Context): Readers {
  const known = readers.get(context)
  if (known !== undefined) return known
  const { store } = context
  const made: Readers = {
    placements: new DataLoader(
      async (ids) => {
        const found = await readPlacements(store, ids)
        return ids.map((id) => found.get(id) ?? [])
      },
      { cache: false },
    ),
    clusters: new DataLoader(
      async (ids) => {
        const found = await readClusters(store, [...new Set(ids)])
        return ids.map((id) => found.get(id) ?? null)
      },
      { cache: false },
    ),
  }
  readers.set(context, made)
  return made
}

const Placement = builder.objectRef<PlacementRecord>('Placement')

Placement.implement({
  description: 'A load balancer in one cluster: what is asked there, and what was seen.',
  extensions: FOR_OPERATORS,
  fields: (t) => ({
    cluster: t.field({
      type: Cluster,
      description: 'The cluster.',
      resolve: async ({ cluster }, _args, context) => {
        const found = await readersOf(context).clusters.load(cluster)
        if (found === null) throw new Error(`there is no cluster ${cluster}`)
        return found
      },
    }),
    asked: t.exposeInt('asked', {
      description: 'Counts everything that made it due: changes, health, inventory, drift.',
    }),
    applied: t.exposeInt('applied', { description: 'Up to which of these it was applied.' }),
    dueSince: t.expose('dueSince', {
      type: 'DateTime',
      nullable: true,
      description: 'Since when it is behind; null where it is not.',
    }),
    attempts: t.exposeInt('attempts', {
      description: 'How often in a row it failed to be applied.',
    }),
    lastError: t.exposeString('lastError', {
      nullable: true,
      description: 'How it failed last; null where it did not since it was applied.',
    }),
    reportedAt: t.expose('reportedAt', {
      type: 'DateTime',
      nullable: true,
      description: 'When the cluster last showed something new of it; null: not yet looked at.',
    }),
    conditions: t.expose('conditions', {
      type: [StatusCondition],
      description:
        'What was seen: ClusterReady, AffinityHonoured, and Provisioned and Advertised for each address. Empty before the first look.',
    }),
  }),
})

builder.objectField(LoadBalancer, 'placements', (t) =>
  t.field({
    type: [Placement],
    description: 'It in each of the clusters where it is, or still is; ordered by their names.',
    extensions: FOR_OPERATORS,
    resolve: ({ id }, _args, context) => {
      requirePermission(context, 'clusters.list')
      return readersOf(context).placements.load(id)
    },
  }),
)
