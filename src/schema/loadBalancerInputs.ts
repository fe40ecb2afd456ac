import { BackendAdminState } from './backend.ts'
import { builder } from './builder.ts'
import { HealthCheckInput } from './healthCheck.ts'
import { LabelInput } from './label.ts'
import { LoadBalancerProtocolInput } from './protocol.ts'
import { SessionAffinity } from './sessionAffinity.ts'
import { validateOnly } from './validateOnly.ts'

const expectedGeneration =
  'Refuse the change unless the object is still at this generation. Any will do where none is given.'

const BackendInput = builder.inputType('BackendInput', {
  description: 'A backend to have.',
  fields: (t) => ({
    address: t.field({
      type: 'IPAddress',
      required: true,
      description: "Its address in the load balancer's VPC.",
    }),
    name: t.field({
      type: 'ResourceName',
      description: 'A name of your own for it, unique in the load balancer; none by default.',
    }),
    adminState: t.field({
      type: BackendAdminState,
      description: 'Whether it is to serve. ENABLED where none is given.',
    }),
  }),
})

const LoadBalancerField = builder.enumType('LoadBalancerField', {
  description: 'What of a load balancer can be set back to its default.',
  values: {
    DISPLAY_NAME: { description: 'To no display name.' },
    DESCRIPTION: { description: 'To no description.' },
    LABELS: { description: 'To no labels.' },
    SESSION_AFFINITY: { description: 'To NONE.' },
    HEALTH_CHECK: { description: 'To the health check that a new load balancer gets.' },
    DELETION_PROTECTION: { description: 'To no protection.' },
  } as const,
})

export const CreateLoadBalancerInput = builder.inputType('CreateLoadBalancerInput', {
  description: 'The load balancer to create.',
  fields: (t) => ({
    name: t.field({
      type: 'ResourceName',
      required: true,
      description: 'Its name, unique in the project and region.',
    }),
    displayName: t.string({ description: 'A name for people; none by default.' }),
    description: t.string({ description: 'What it is for; nothing by default.' }),
    labels: t.field({ type: [LabelInput], description: 'Its labels; none by default.' }),
    vpc: t.id({ required: true, description: 'The id of the VPC that its backends live in.' }),
    region: t.string({
      required: true,
      description: 'The code of the region that it runs in; it never changes.',
    }),
    protocol: t.field({
      type: LoadBalancerProtocolInput,
      required: true,
      description: 'What to balance.',
    }),
    sessionAffinity: t.field({
      type: SessionAffinity,
      description: 'Which connections are to reach the same backend. NONE where none is given.',
    }),
    backends: t.field({
      type: [BackendInput],
      description: 'The backends to begin with, at most 64; none by default.',
    }),
    healthCheck: t.field({
      type: HealthCheckInput,
      description: 'How to probe backends. By TCP connections every 10 s by default.',
    }),
    ipv4Reservations: t.idList({
      description:
        'The ids of IPv4 reservations of the same region to bind to it, at most 7; none by default. An IPv6 address comes by itself.',
    }),
    deletionProtection: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether deleting it is to be refused.',
    }),
    idempotencyKey: t.string({
      description:
        'Any text of your own. The same key with the same input gives the same load balancer again within 24 hours, instead of a second one.',
    }),
    validateOnly: validateOnly(t),
  }),
})

export const UpdateLoadBalancerInput = builder.inputType('UpdateLoadBalancerInput', {
  description: 'What to change of a load balancer. What is absent or null is kept.',
  fields: (t) => ({
    id: t.id({ required: true, description: 'The load balancer to change.' }),
    name: t.field({ type: 'ResourceName', description: 'A new name.' }),
    displayName: t.string({ description: 'A new name for people.' }),
    description: t.string({ description: 'A new description.' }),
    labels: t.field({ type: [LabelInput], description: 'New labels, in place of all it has.' }),
    protocol: t.field({
      type: LoadBalancerProtocolInput,
      description:
        'What to balance from now on. Another port moves all connections to other backends.',
    }),
    sessionAffinity: t.field({ type: SessionAffinity, description: 'A new session affinity.' }),
    healthCheck: t.field({
      type: HealthCheckInput,
      description:
        'Changes of the health check, merged field by field; the probe is replaced whole.',
    }),
    deletionProtection: t.boolean({ description: 'Whether deleting it is to be refused.' }),
    reset: t.field({
      type: [LoadBalancerField],
      description: 'What goes back to its default. Not together with a new value for it.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})

export const DeleteLoadBalancerInput = builder.inputType('DeleteLoadBalancerInput', {
  description: 'The load balancer to delete.',
  fields: (t) => ({
    id: t.id({ required: true, description: 'The load balancer to delete.' }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})

export const AddBackendsInput = builder.inputType('AddBackendsInput', {
  description: 'Backends to add to a load balancer.',
  fields: (t) => ({
    loadBalancer: t.id({ required: true, description: 'The load balancer to change.' }),
    backends: t.field({
      type: [BackendInput],
      required: true,
      description: 'The backends to add. An address that is already there is left as it is.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})

export const RemoveBackendsInput = builder.inputType('RemoveBackendsInput', {
  description: 'Backends to take from a load balancer.',
  fields: (t) => ({
    loadBalancer: t.id({ required: true, description: 'The load balancer to change.' }),
    addresses: t.field({
      type: ['IPAddress'],
      required: true,
      description: 'The addresses to remove. One that is not there is no error.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})

export const SetBackendsInput = builder.inputType('SetBackendsInput', {
  description: 'The backends that a load balancer is to have.',
  fields: (t) => ({
    loadBalancer: t.id({ required: true, description: 'The load balancer to change.' }),
    backends: t.field({
      type: [BackendInput],
      required: true,
      description: 'All of its backends from now on. Those that stay keep their id and health.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})

const BackendChange = builder.inputType('BackendChange', {
  description: 'What to change of a backend. What is absent or null is kept.',
  fields: (t) => ({
    address: t.field({
      type: 'IPAddress',
      required: true,
      description: 'The address of the backend to change.',
    }),
    name: t.field({ type: 'ResourceName', description: 'A new name.' }),
    resetName: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether to take its name away. Not together with a new one.',
    }),
    adminState: t.field({
      type: BackendAdminState,
      description: 'Whether it is to serve from now on.',
    }),
  }),
})

export const UpdateBackendsInput = builder.inputType('UpdateBackendsInput', {
  description: 'Changes of some backends of a load balancer, made as one.',
  fields: (t) => ({
    loadBalancer: t.id({ required: true, description: 'The load balancer to change.' }),
    backends: t.field({
      type: [BackendChange],
      required: true,
      description: 'The changes, each of another backend.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})
