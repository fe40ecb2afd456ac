import { builder } from './builder.ts'
import { LabelInput } from './label.ts'
import { validateOnly } from './validateOnly.ts'

const expectedGeneration =
  'Refuse the change unless the reservation is still at this generation. Any will do where none is given.'

const IPv4ReservationField = builder.enumType('IPv4ReservationField', {
  description: 'What of an IPv4 reservation can be set back to its default.',
  values: {
    DISPLAY_NAME: { description: 'To no display name.' },
    DESCRIPTION: { description: 'To no description.' },
    LABELS: { description: 'To no labels.' },
    DELETION_PROTECTION: { description: 'To no protection.' },
  } as const,
})

export const CreateIPv4ReservationInput = builder.inputType('CreateIPv4ReservationInput', {
  description: 'The IPv4 reservation to create. The platform chooses the address.',
  fields: (t) => ({
    name: t.field({
      type: 'ResourceName',
      required: true,
      description: 'Its name, unique in the project and region.',
    }),
    displayName: t.string({ description: 'A name for people; none by default.' }),
    description: t.string({ description: 'What it is for; nothing by default.' }),
    labels: t.field({ type: [LabelInput], description: 'Its labels; none by default.' }),
    region: t.string({
      required: true,
      description: 'The code of the region that the address belongs to; it never changes.',
    }),
    deletionProtection: t.boolean({
      required: true,
      defaultValue: false,
      description: 'Whether deleting it is to be refused.',
    }),
    idempotencyKey: t.string({
      description:
        'Any text of your own. The same key with the same input gives the same reservation again within 24 hours, instead of a second one.',
    }),
    validateOnly: validateOnly(t),
  }),
})

export const UpdateIPv4ReservationInput = builder.inputType('UpdateIPv4ReservationInput', {
  description: 'What to change of an IPv4 reservation. What is absent or null is kept.',
  fields: (t) => ({
    id: t.id({ required: true, description: 'The reservation to change.' }),
    name: t.field({ type: 'ResourceName', description: 'A new name.' }),
    displayName: t.string({ description: 'A new name for people.' }),
    description: t.string({ description: 'A new description.' }),
    labels: t.field({ type: [LabelInput], description: 'New labels, in place of all it has.' }),
    deletionProtection: t.boolean({ description: 'Whether deleting it is to be refused.' }),
    reset: t.field({
      type: [IPv4ReservationField],
      description: 'What goes back to its default. Not together with a new value for it.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})

export const DeleteIPv4ReservationInput = builder.inputType('DeleteIPv4ReservationInput', {
  description: 'The IPv4 reservation to delete. It must not be bound.',
  fields: (t) => ({
    id: t.id({ required: true, description: 'The reservation to delete.' }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})

export const BindIPv4ReservationInput = builder.inputType('BindIPv4ReservationInput', {
  description: 'Makes the address of a reservation an address of a load balancer.',
  fields: (t) => ({
    reservation: t.id({ required: true, description: 'The reservation to bind.' }),
    loadBalancer: t.id({
      required: true,
      description: 'The load balancer to bind it to, in the same region.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})

export const MoveIPv4ReservationInput = builder.inputType('MoveIPv4ReservationInput', {
  description:
    'Moves the address of a reservation from the load balancer that has it to another one, as one change.',
  fields: (t) => ({
    reservation: t.id({ required: true, description: 'The reservation to move.' }),
    from: t.id({
      required: true,
      description:
        'The load balancer that has it. If it has it no longer, nothing is changed and the answer is StaleHolder.',
    }),
    to: t.id({
      required: true,
      description: 'The load balancer to give it to, in the region of the reservation.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    idempotencyKey: t.string({
      description:
        'Any text of 1 to 128 printable characters. Repeating the same move with the same key within 24 hours changes nothing more.',
    }),
    validateOnly: validateOnly(t),
  }),
})

export const UnbindIPv4ReservationInput = builder.inputType('UnbindIPv4ReservationInput', {
  description:
    'Takes the address of a reservation from a load balancer. The reservation keeps the address.',
  fields: (t) => ({
    reservation: t.id({ required: true, description: 'The reservation to unbind.' }),
    loadBalancer: t.id({
      required: true,
      description:
        'The load balancer that has it. If another one has it by now, nothing is changed and the answer is StaleHolder.',
    }),
    expectedGeneration: t.int({ description: expectedGeneration }),
    validateOnly: validateOnly(t),
  }),
})
