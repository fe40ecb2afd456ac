import type { InputFieldBuilder } from '@pothos/core'
import type { BuilderTypes } from './builder.ts'

/** Of every change: whether to answer with its plan instead. */
export const validateOnly = (t: InputFieldBuilder<BuilderTypes, 'InputObject'>) =>
  t.boolean({
    required: true,
    defaultValue: false,
    description:
      'Whether to change nothing and answer with what the change would do (`plan`), after the same checks.',
  })
