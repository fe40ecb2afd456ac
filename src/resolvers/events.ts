import { builder } from '../schema/builder.ts'
import { ChangeEventConnection, EventFilter, eventsOf } from '../schema/changeEvent.ts'
import { pageArgs } from '../schema/pages.ts'

builder.queryFields((t) => ({
  events: t.field({
    type: ChangeEventConnection,
    description: 'The log of all changes in the project, newest first.',
    args: {
      ...pageArgs(t.arg),
      filter: t.arg({ type: EventFilter, description: 'Which ones; all where none is given.' }),
    },
    resolve: (_root, args, context) => eventsOf(context, args),
  }),
}))
