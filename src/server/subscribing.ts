/**
 * Subscriptions, executed for many at once: all who are told of the same event, by the same document
 * and variables, in the same project and with the same rights, get one result.
 */
import {
  createSourceEventStream,
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
} from 'graphql'
import { isAsyncIterable } from 'graphql-yoga'
import { UsedPermissions } from './rights.ts'

/** What an answer depends on besides the event, the document and its variables. */
type Viewer = { project: string | null; permissions: ReadonlySet<string> }

type Result = ReturnType<typeof execute>
type Executed = { result: Result; by: Viewer; key: string }
const executed = new WeakMap<object, Map<string, Executed>>()
const documents = new WeakMap<DocumentNode, number>()
let documentsSeen = 0

/** As graphql's own `subscribe`, but for what is executed once for many. */
export async function subscribe(
  args: ExecutionArgs,
): Promise<AsyncIterable<ExecutionResult> | ExecutionResult> {
  const source = await createSourceEventStream(args)
  return isAsyncIterable(source) ? mapped(source, (event) => executeOnce(args, event)) : source
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

function executeOnce(args: ExecutionArgs, event: unknown): Result {
  const run = () => execute({ ...args, rootValue: event })
  const viewer = args.contextValue
  if (typeof event !== 'object' || event === null || !isViewer(viewer)) return run()
  const known = executed.get(event) ?? new Map<string, Executed>()
  executed.set(event, known)
  const key = keyOf(args, viewer)
  const found = known.get(key)
  if (found !== undefined) return sharing(args, viewer, found, run)
  const result = run()
  known.set(key, { result, by: viewer, key })
  return result
}

const keyOf = (args: ExecutionArgs, { project, permissions }: Viewer): string =>
  JSON.stringify([
    numberOf(args.document),
    args.operationName,
    args.variableValues,
    project,
    ...permissions,
  ])

/**
 * The answer that another viewer is given, unless the rights of one of the two became others while it was
 * made. Losing a right that it took ends the stream of everyone who was given it.
 */
async function sharing(
  args: ExecutionArgs,
  viewer: Viewer,
  { result, by, key }: Executed,
  run: () => Result,
): Promise<ExecutionResult> {
  const shown = await result
  if (keyOf(args, viewer) !== key || keyOf(args, by) !== key) return run()
  if (viewer.permissions instanceof UsedPermissions && by.permissions instanceof UsedPermissions) {
    viewer.permissions.useAs(by.permissions)
  }
  return shown
}

function numberOf(document: DocumentNode): number {
  const known = documents.get(document)
  if (known !== undefined) return known
  documentsSeen += 1
  documents.set(document, documentsSeen)
  return documentsSeen
}

const isViewer = (context: unknown): context is Viewer =>
  typeof context === 'object' &&
  context !== null &&
  'project' in context &&
  'permissions' in context &&
  context.permissions instanceof Set
