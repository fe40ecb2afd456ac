import {
  forgetCluster,
  removeCluster,
  updateCluster,
} from '../../domain/operators/clusterChanges.ts'
import type { ClusterRecord } from '../../domain/operators/clusterRecord.ts'
import {
  countClusters,
  findClusterByName,
  listClusters,
  readClusters,
  registerCluster,
} from '../../domain/operators/clusters.ts'
import { Refusal } from '../../domain/refusals.ts'
import { FOR_OPERATORS } from '../../schema/audience.ts'
import { builder } from '../../schema/builder.ts'
import { type Context, requirePermission } from '../../schema/context.ts'
import { Cluster, ClusterConnection } from '../../schema/operators/cluster.ts'
import '../../schema/operators/evidence.ts'
import '../../schema/operators/placement.ts'
import * as inputs from '../../schema/operators/inputs.ts'
import * as results from '../../schema/operators/results.ts'
import { connection, pageArgs, pageRequest } from '../../schema/pages.ts'
import { valid } from '../../schema/valid.ts'
import { GivenIds } from '../givenIds.ts'

const extensions = FOR_OPERATORS

builder.queryFields((t) => ({
  clusters: t.field({
    type: ClusterConnection,
    description: 'The clusters, by name.',
    extensions,
    args: {
      ...pageArgs(t.arg),
      region: t.arg.string({ description: 'Only those of the region with this code.' }),
    },
    resolve: async (_root, args, context) => {
      requirePermission(context, 'clusters.list')
      const { store } = context
      const region = valid(args).region ?? null
      return connection(await listClusters(store, { region, page: pageRequest(args) }), () =>
        countClusters(store, region),
      )
    },
  }),
  cluster: t.field({
    type: Cluster,
    nullable: true,
    description: 'The cluster with this name; null where there is none.',
    extensions,
    args: { name: t.arg({ type: 'ResourceName', required: true, description: 'Its name.' }) },
    resolve: async (_root, args, context) => {
      requirePermission(context, 'clusters.get')
      const id = await findClusterByName(context.store, valid(args).name)
      return id === null ? null : readCluster(context, id)
    },
  }),
}))

builder.mutationFields((t) => ({
  registerCluster: t.field({
    type: results.RegisterClusterResult,
    nullable: true,
    description: 'Makes a cluster known. Workers take it up within seconds.',
    extensions,
    args: {
      input: t.arg({
        type: inputs.RegisterClusterInput,
        required: true,
        description: 'The cluster.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'clusters.create')
      return shown(context, await registerCluster(context.store, input))
    },
  }),
  updateCluster: t.field({
    type: results.UpdateClusterResult,
    nullable: true,
    description:
      'Changes a cluster: cordons, drains or uses it again, or says what its data plane can do. What is not named is kept.',
    extensions,
    args: {
      input: t.arg({
        type: inputs.UpdateClusterInput,
        required: true,
        description: 'What to change.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'clusters.update')
      const ids = new GivenIds()
      const id = ids.uuid('Cluster', input.id)
      return ids.told(await shown(context, await updateCluster(context.store, { ...input, id })))
    },
  }),
  removeCluster: t.field({
    type: results.RemoveClusterResult,
    nullable: true,
    description: 'Takes a cluster out, once it is drained.',
    extensions,
    args: {
      input: t.arg({
        type: inputs.RemoveClusterInput,
        required: true,
        description: 'Which one.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'clusters.delete')
      const ids = new GivenIds()
      return ids.told(await removeCluster(context.store, ids.uuid('Cluster', input.id)))
    },
  }),
  forgetCluster: t.field({
    type: results.ForgetClusterResult,
    nullable: true,
    description:
      'Gives up on a cluster that can not be reached: it leaves the status of load balancers, and what may be left there is listed. Its addresses stay held until it answers again and was swept, or is said to be destroyed.',
    extensions,
    args: {
      input: t.arg({
        type: inputs.ForgetClusterInput,
        required: true,
        description: 'Which one.',
      }),
    },
    resolve: async (_root, { input }, context) => {
      requirePermission(context, 'clusters.delete')
      const ids = new GivenIds()
      const id = ids.uuid('Cluster', input.id)
      const answer = await forgetCluster(context.store, { id, destroyed: input.destroyed })
      if (answer instanceof Refusal) return ids.told(answer)
      const cluster = await readCluster(context, id)
      const leftovers = answer.leftovers.map((one) => ({ ...one, cluster: cluster.name }))
      return { cluster, leftovers }
    },
  }),
}))

async function shown(
  context: Context,
  answer: { cluster: { id: string } } | Refusal,
): Promise<{ cluster: ClusterRecord } | Refusal> {
  if (answer instanceof Refusal) return answer
  return { cluster: await readCluster(context, answer.cluster.id) }
}

async function readCluster({ store }: Context, id: string): Promise<ClusterRecord> {
  const cluster = (await readClusters(store, [id])).get(id)
  if (cluster === undefined) throw new Error(`cluster ${id} was removed meanwhile`)
  return cluster
}
