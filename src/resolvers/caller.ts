import { builder } from '../schema/builder.ts'
import { Caller } from '../schema/caller.ts'

builder.queryFields((t) => ({
  caller: t.field({
    type: Caller,
    description: 'Who you are to the API, and what you may do in this project.',
    resolve: (_root, _args, { caller, project, permissions }) => ({
      subject: caller.subject,
      email: caller.email,
      project,
      permissions,
    }),
  }),
  cursor: t.field({
    type: 'LogCursor',
    description:
      'The head of the log of changes now. Take it before you read something, and pass it as `after` to a subscription to miss nothing that happens since.',
    resolve: (_root, _args, { log }) => log.head(),
  }),
}))
