import { builder } from '../schema/builder.ts'

builder.queryType({
  description:
    'Everything that can be read. What another project owns is not found, exactly like what does not exist.',
})

builder.mutationType({
  description:
    'Everything that can be changed. Each takes one `input` and answers with its payload or with why it was refused. What is asked for is stored at once; the status says when it is in effect.',
})

builder.subscriptionType({
  description:
    'Everything that can be watched: first what is there (ADDED for each, then SYNCED), then every change. With `after`: what changed since that position, without a gap. A client that is slow gets the latest state of each object, not every step.',
})
