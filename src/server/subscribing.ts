/** Subscriptions, executed for many at once. */
import { createSourceEventStream, type ExecutionArgs, type ExecutionResult, execute } from 'graphql'
import { isAsyncIterable } from 'graphql-yoga'
import { isResumable } from '../resolvers/streams/resumable.ts'
import type { Context } from '../schema/context.ts'
import { Loaders } from '../schema/loaders.ts'
import { Member } from './cohort.ts'
import { UsedPermissions } from './rights.ts'
import { Teller, type Viewer } from './teller.ts'

/** As graphql's own `subscribe`, but for what is read and executed once for many. */
export async function subscribe(
  args: ExecutionArgs,
): Promise<AsyncIterable<ExecutionResult> | ExecutionResult> {
  const source = await createSourceEventStream(args)
  if (!isAsyncIterable(source)) return source
  const viewer = args.contextValue
  if (!isViewer(viewer)) {
    return mapped(source, (event) => execute({ ...args, rootValue: event }))
  }
  const teller = new Teller(args, viewer)
  if (isResumable(source) && isContext(viewer)) return new Member(source, teller, viewer)
  return mapped(source, (event) => teller.tell(event))
}

/** Each result as another, for as long as the source goes on. */
export function mapped<From, To>(
  source: AsyncIterable<From>,
  map: (from: From) => To | PromiseLike<To>,
): AsyncIterable<To> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = source[Symbol.asyncIterator]()
      return {
        async next() {
          const next = await iterator.next()
          return next.done === true ? next : { done: false, value: await map(next.value) }
        },
        async return(value: unknown) {
          await iterator.return?.(value)
          return { done: true, value: undefined }
        },
      }
    },
  }
}

const isViewer = (context: unknown): context is Viewer =>
  typeof context === 'object' &&
  context !== null &&
  'project' in context &&
  'permissions' in context &&
  context.permissions instanceof UsedPermissions

/** No other object has loaders. */
const isContext = (viewer: Viewer): viewer is Viewer & Context =>
  'loaders' in viewer && viewer.loaders instanceof Loaders
