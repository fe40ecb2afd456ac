import type { IncomingMessage } from 'node:http'
import type { OperationTypeNode } from 'graphql'
import { badUserInput } from '../schema/failures.ts'

/** Ranges of media types that what we answer is in: streams, and whatever else. */
const STREAMS = ['text/event-stream', 'text/*', '*/*']
const ANSWERS = [
  ...STREAMS,
  'application/json',
  'application/graphql-response+json',
  'application/*',
  'multipart/mixed',
  'multipart/*',
]

/**
 * That the client takes an answer in a form that there is. Refused before anything is executed: whoever
 * sent a mutation would not learn what came of it.
 */
export function requireAcceptable(
  { headers: { accept } }: IncomingMessage,
  operation: `${OperationTypeNode}` | undefined,
): void {
  if (accept === undefined || accept.trim() === '') return
  const taken = accept.split(',').map((range) => range.split(';')[0]?.trim().toLowerCase() ?? '')
  const takes = (ranges: string[]) => taken.some((range) => ranges.includes(range))
  if (operation === 'subscription') {
    if (takes(STREAMS)) return
    throw badUserInput(
      'A subscription is answered by server-sent events: send it with accept: text/event-stream, or over a websocket.',
      406,
    )
  }
  if (takes(ANSWERS)) return
  throw badUserInput(
    'The answer is application/json or application/graphql-response+json, and the accept header takes neither.',
    406,
  )
}
