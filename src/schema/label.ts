import type { Label as LabelRecord } from '../domain/records.ts'
import { builder } from './builder.ts'

export const Label = builder.objectRef<LabelRecord>('Label')

Label.implement({
  description:
    'A word of your own to find and group objects by. The platform attaches no meaning to it.',
  fields: (t) => ({
    key: t.exposeString('key', { description: 'What it is about, e.g. `team`.' }),
    value: t.exposeString('value', { description: 'What it says, e.g. `search`. May be empty.' }),
  }),
})

export const LabelInput = builder.inputType('LabelInput', {
  description: 'A label to set. A key may be given only once.',
  fields: (t) => ({
    key: t.string({ required: true, description: 'What it is about, e.g. `team`.' }),
    value: t.string({ required: true, description: 'What it says, e.g. `search`. May be empty.' }),
  }),
})

export const LabelFilter = builder.inputType('LabelFilter', {
  description: 'Chooses objects by one of their labels.',
  fields: (t) => ({
    key: t.string({ required: true, description: 'The label that the object must have.' }),
    values: t.stringList({
      description: 'The label must have one of these values; any value does where none is given.',
    }),
  }),
})
