/** What operators' mutations take. */
import { FOR_OPERATORS } from '../audience.ts'
import { builder } from '../builder.ts'
import { AddressPoolState } from './addressPool.ts'
import { ClusterMode } from './cluster.ts'

const extensions = FOR_OPERATORS

export const CreateRegionInput = builder.inputType('CreateRegionInput', {
  description: 'A region to make.',
  extensions,
  fields: (t) => ({
    code: t.string({
      required: true,
      description:
        'Its code, e.g. `us-east-1`: 2 to 63 lower-case letters, digits and hyphens. It never changes.',
    }),
    displayName: t.string({ required: true, description: 'Its name for people.' }),
    cityCode: t.string({
      required: true,
      description: 'The city that it is in, as airports abbreviate it: three capital letters.',
    }),
  }),
})

export const RegisterClusterInput = builder.inputType('RegisterClusterInput', {
  description: 'A cluster to make known.',
  extensions,
  fields: (t) => ({
    name: t.field({
      type: 'ResourceName',
      required: true,
      description: 'Its name. That of a forgotten cluster takes that one up again.',
    }),
    region: t.string({ required: true, description: 'The code of its region.' }),
    context: t.string({
      required: true,
      description: 'The context in the kubeconfig of the workers that reaches it.',
    }),
    servesIPv4: t.boolean({
      required: true,
      defaultValue: false,
      description:
        'Whether its data plane serves IPv4 addresses. On one that does not, an IPv4 rule harms the whole node.',
    }),
    resolvesRemoteBackends: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether its data plane finds backends that live in other clusters.',
    }),
    hasProber: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether its worker stands where backends can be probed.',
    }),
  }),
})

export const UpdateClusterInput = builder.inputType('UpdateClusterInput', {
  description: 'What to change of a cluster. Absent or null: kept.',
  extensions,
  fields: (t) => ({
    id: t.id({ required: true, description: 'The id of the cluster.' }),
    mode: t.field({ type: ClusterMode, description: 'What is wanted of it.' }),
    context: t.string({
      description: 'The context in the kubeconfig of the workers that reaches it.',
    }),
    servesIPv4: t.boolean({ description: 'Whether its data plane serves IPv4 addresses.' }),
    resolvesRemoteBackends: t.boolean({
      description: 'Whether its data plane finds backends that live in other clusters.',
    }),
    hasProber: t.boolean({
      description: 'Whether its worker stands where backends can be probed.',
    }),
    acceptInventory: t.boolean({
      required: true,
      defaultValue: false,
      description:
        'Believes that what vanished from its inventory is gone, where so much did at once that it was not believed. Only after a look at the inventory condition: backends that live there leave the rules.',
    }),
    allowSweep: t.boolean({
      required: true,
      defaultValue: false,
      description:
        'Lets the next sweep remove rules of ours whose owner was never heard of, once. Only after a look at the sweep condition: they may belong to load balancers that a restored backup does not know.',
    }),
  }),
})

export const RemoveClusterInput = builder.inputType('RemoveClusterInput', {
  description: 'A drained cluster to take out.',
  extensions,
  fields: (t) => ({ id: t.id({ required: true, description: 'The id of the cluster.' }) }),
})

export const ForgetClusterInput = builder.inputType('ForgetClusterInput', {
  description: 'A cluster that can not be reached, to give up on.',
  extensions,
  fields: (t) => ({
    id: t.id({ required: true, description: 'The id of the cluster.' }),
    destroyed: t.boolean({
      required: true,
      defaultValue: false,
      description:
        'It is known to carry nothing any more and never to come back: its addresses are free at once. Said of a cluster that still runs, this gives one address to two.',
    }),
  }),
})

export const CreateAddressPoolInput = builder.inputType('CreateAddressPoolInput', {
  description: 'A pool to make.',
  extensions,
  fields: (t) => ({
    name: t.field({ type: 'ResourceName', required: true, description: 'Its name.' }),
    region: t.string({ required: true, description: 'The code of its region.' }),
    prefix: t.field({
      type: 'IPPrefix',
      required: true,
      description: 'Its addresses; for IPv4 a /16 at most.',
    }),
    allocationPrefixLength: t.int({
      description:
        'The length of the block that each load balancer gets; single addresses where none is given.',
    }),
    skipFirstAndLast: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether its first and last block are never handed out.',
    }),
    coolDownSeconds: t.int({
      description:
        'How long a block that was given back rests, in seconds; 600 where none is given.',
    }),
    excluded: t.field({
      type: ['IPPrefix'],
      description: 'What is never handed out; nothing where none is given.',
    }),
  }),
})

export const UpdateAddressPoolInput = builder.inputType('UpdateAddressPoolInput', {
  description: 'What to change of a pool. Absent or null: kept. Nobody is ever moved.',
  extensions,
  fields: (t) => ({
    id: t.id({ required: true, description: 'The id of the pool.' }),
    state: t.field({ type: AddressPoolState, description: 'Whether it hands out addresses.' }),
    prefix: t.field({
      type: 'IPPrefix',
      description: 'A larger or smaller prefix that holds every address in use.',
    }),
    coolDownSeconds: t.int({
      description: 'How long blocks rest that are given back from now on, in seconds.',
    }),
    excluded: t.field({
      type: ['IPPrefix'],
      description: 'All that is never handed out from now on.',
    }),
  }),
})

export const DeleteAddressPoolInput = builder.inputType('DeleteAddressPoolInput', {
  description: 'A pool to take away.',
  extensions,
  fields: (t) => ({ id: t.id({ required: true, description: 'The id of the pool.' }) }),
})

export const SetQuotaInput = builder.inputType('SetQuotaInput', {
  description: 'How much a project may have of something.',
  extensions,
  fields: (t) => ({
    project: t.string({ required: true, description: 'The name of the project.' }),
    resource: t.string({
      required: true,
      description: 'What is limited, e.g. `networking.datumapis.com/loadbalancers`.',
    }),
    region: t.string({ description: 'The code of the region; every quota of today needs one.' }),
    limit: t.int({ description: 'How much it may have; null: as much as it wants.' }),
  }),
})

export const SetProjectReleaseInput = builder.inputType('SetProjectReleaseInput', {
  description: 'Whether load balancers are open to a project.',
  extensions,
  fields: (t) => ({
    project: t.string({
      required: true,
      description: 'The name of the project, which is known from then on.',
    }),
    released: t.boolean({ required: true, description: 'Whether they are.' }),
  }),
})

const ReachabilityResultInput = builder.inputType('ReachabilityResultInput', {
  description: 'What one probe from outside found.',
  extensions,
  fields: (t) => ({
    address: t.field({ type: 'IPAddress', required: true, description: 'The address probed.' }),
    port: t.field({ type: 'Port', required: true, description: 'The port probed.' }),
    reachable: t.boolean({ required: true, description: 'Whether it answered.' }),
    message: t.string({ description: 'How it failed, in words for people.' }),
    at: t.field({ type: 'DateTime', required: true, description: 'When it was probed.' }),
  }),
})

export const ReportReachabilityInput = builder.inputType('ReportReachabilityInput', {
  description: 'What a vantage point outside found.',
  extensions,
  fields: (t) => ({
    vantage: t.string({ required: true, description: 'The name of the vantage point.' }),
    results: t.field({
      type: [ReachabilityResultInput],
      required: true,
      description:
        'What it found, at most 1,000 at once. Of each address and port the newest counts.',
    }),
  }),
})
