/** What operators' mutations answer. */
import type { ObjectRef } from '@pothos/core'
import type { Leftover as LeftoverRecord } from '../../domain/operators/clusterChanges.ts'
import type { ClusterRecord } from '../../domain/operators/clusterRecord.ts'
import type { PoolRecord } from '../../domain/operators/poolRecord.ts'
import type { ProjectRecord } from '../../domain/operators/projects.ts'
import type { QuotaRecord } from '../../domain/quotas.ts'
import type { RegionRecord } from '../../domain/records.ts'
import type { RefusalCode } from '../../domain/refusalCodes.ts'
import type { Refusal } from '../../domain/refusals.ts'
import { FOR_OPERATORS } from '../audience.ts'
import { type BuilderTypes, builder } from '../builder.ts'
import * as errors from '../errors.ts'
import { Quota } from '../quota.ts'
import { Region } from '../region.ts'
import { resultUnion } from '../result.ts'
import { AddressPool } from './addressPool.ts'
import { Cluster } from './cluster.ts'
import { Project } from './project.ts'

const extensions = FOR_OPERATORS
const result = <Payload extends object, Refs extends readonly ObjectRef<BuilderTypes, Refusal>[]>(
  name: `${string}Result`,
  payload: ObjectRef<BuilderTypes, Payload>,
  refusals: Refs,
  refusedCodes: RefusalCode[] = [],
) => resultUnion(name, payload, refusals, { extensions, refusedCodes })

const { ValidationFailed, NotFound, NameTaken, Refused } = errors
const { PoolOverlap, PoolInUse, ClusterInUse } = errors

export const CreateRegionResult = result(
  'CreateRegionResult',
  builder.objectRef<{ region: RegionRecord }>('CreateRegionPayload').implement({
    description: 'The region is there.',
    extensions,
    fields: (t) => ({
      region: t.expose('region', { type: Region, nullable: true, description: 'The region.' }),
    }),
  }),
  [ValidationFailed, NameTaken, Refused],
)

type ClusterPayload = { cluster: ClusterRecord }

const clusterPayload = (
  name: `${'Register' | 'Update' | 'Remove'}ClusterPayload`,
  description: string,
  which: string,
) =>
  builder.objectRef<ClusterPayload>(name).implement({
    description,
    extensions,
    fields: (t) => ({
      cluster: t.expose('cluster', { type: Cluster, nullable: true, description: which }),
    }),
  })

export const RegisterClusterResult = result(
  'RegisterClusterResult',
  clusterPayload('RegisterClusterPayload', 'The cluster is known.', 'The cluster.'),
  [ValidationFailed, NotFound, NameTaken, Refused],
)

export const UpdateClusterResult = result(
  'UpdateClusterResult',
  clusterPayload('UpdateClusterPayload', 'The change was accepted.', 'The cluster after it.'),
  [ValidationFailed, NotFound, Refused],
  ['CLUSTER_FORGOTTEN'],
)

export const RemoveClusterResult = result(
  'RemoveClusterResult',
  clusterPayload('RemoveClusterPayload', 'The cluster is out.', 'The cluster as it was last.'),
  [NotFound, ClusterInUse, Refused],
  ['CLUSTER_NOT_DRAINED'],
)

const Leftover = builder.objectRef<LeftoverRecord & { cluster: string }>('Leftover').implement({
  description: 'An object that a cluster may still have.',
  extensions,
  fields: (t) => ({
    cluster: t.exposeString('cluster', { description: 'The name of the cluster.' }),
    kind: t.exposeString('kind', { description: 'The kind of the object.' }),
    name: t.exposeString('name', { description: 'Its name.' }),
    address: t.expose('address', {
      type: 'IPAddress',
      nullable: true,
      description: 'The address that it carries, which is held until it is gone.',
    }),
  }),
})

export const ForgetClusterResult = result(
  'ForgetClusterResult',
  builder
    .objectRef<ClusterPayload & { leftovers: (LeftoverRecord & { cluster: string })[] }>(
      'ForgetClusterPayload',
    )
    .implement({
      description: 'The cluster is given up on.',
      extensions,
      fields: (t) => ({
        cluster: t.expose('cluster', {
          type: Cluster,
          nullable: true,
          description: 'The cluster, which is swept if it ever answers again.',
        }),
        leftovers: t.expose('leftovers', {
          type: [Leftover],
          description: 'What may still be there; its addresses are held.',
        }),
      }),
    }),
  [ValidationFailed, NotFound, Refused],
  ['CLUSTER_REACHABLE'],
)

const poolPayload = (
  name: `${'Create' | 'Update' | 'Delete'}AddressPoolPayload`,
  description: string,
  which: string,
) =>
  builder.objectRef<{ pool: PoolRecord }>(name).implement({
    description,
    extensions,
    fields: (t) => ({
      pool: t.expose('pool', { type: AddressPool, nullable: true, description: which }),
    }),
  })

export const CreateAddressPoolResult = result(
  'CreateAddressPoolResult',
  poolPayload('CreateAddressPoolPayload', 'The pool is there.', 'The pool.'),
  [ValidationFailed, NotFound, NameTaken, PoolOverlap, Refused],
)

export const UpdateAddressPoolResult = result(
  'UpdateAddressPoolResult',
  poolPayload('UpdateAddressPoolPayload', 'The change was accepted.', 'The pool after it.'),
  [ValidationFailed, NotFound, PoolOverlap, PoolInUse, Refused],
)

export const DeleteAddressPoolResult = result(
  'DeleteAddressPoolResult',
  poolPayload('DeleteAddressPoolPayload', 'The pool is gone.', 'The pool as it was last.'),
  [NotFound, PoolInUse, Refused],
)

export const SetQuotaResult = result(
  'SetQuotaResult',
  builder.objectRef<{ quota: QuotaRecord }>('SetQuotaPayload').implement({
    description: 'The quota is set.',
    extensions,
    fields: (t) => ({
      quota: t.expose('quota', {
        type: Quota,
        nullable: true,
        description: 'The quota, with what is used of it. That may be more than the new limit.',
      }),
    }),
  }),
  [ValidationFailed, NotFound, Refused],
  ['QUOTA_FIXED'],
)

export const SetProjectReleaseResult = result(
  'SetProjectReleaseResult',
  builder.objectRef<{ project: ProjectRecord }>('SetProjectReleasePayload').implement({
    description: 'The release is set.',
    extensions,
    fields: (t) => ({
      project: t.expose('project', { type: Project, nullable: true, description: 'The project.' }),
    }),
  }),
  [ValidationFailed, Refused],
)

export const ReportReachabilityResult = result(
  'ReportReachabilityResult',
  builder.objectRef<{ accepted: number }>('ReportReachabilityPayload').implement({
    description: 'The results were taken in.',
    extensions,
    fields: (t) => ({
      accepted: t.exposeInt('accepted', {
        description: 'How many of them were newer than what was known.',
      }),
    }),
  }),
  [ValidationFailed, Refused],
)
