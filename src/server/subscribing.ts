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
type Viewer = { project: string | null; permissions: UsedPermissions }

type Result = ReturnType<typeof execute>
type Executed = { result: Result; by: Listener; key: string }
const executed = new WeakMap<object, Map<string, Executed>>()
const documents = new WeakMap<DocumentNode, number>()
let documentsSeen = 0

/** As graphql's own `subscribe`, but for what is executed once for many. */
export async function subscribe(
  args: ExecutionArgs,
): Promise<AsyncIterable<ExecutionResult> | ExecutionResult> {
  const source = await createSourceEventStream(args)
  if (!isAsyncIterable(source)) return source
  const viewer = args.contextValue
  const listener = isViewer(viewer) ? new Listener(args, viewer) : undefined
  return mapped(source, (event) => {
    const run = () => execute({ ...args, rootValue: event })
    return listener === undefined || typeof event !== 'object' || event === null
      ? run()
      : executeOnce(listener, event, run)
  })
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

/** Who is told of events, and how: those of the same key are given the same answers. */
class Listener {
  readonly permissions: UsedPermissions
  readonly #asked: string
  #granted = ''
  #key = ''

  constructor(args: ExecutionArgs, { project, permissions }: Viewer) {
    const { document, operationName, variableValues } = args
    this.permissions = permissions
    this.#asked = JSON.stringify([numberOf(document), operationName, variableValues, project])
  }

  /** Another one once their rights are others. */
  get key(): string {
    const granted = this.permissions.text
    if (granted !== this.#granted) {
      this.#granted = granted
      this.#key = `${this.#asked} ${granted}`
    }
    return this.#key
  }
}

function executeOnce(listener: Listener, event: object, run: () => Result): Result {
  const known = executed.get(event) ?? new Map<string, Executed>()
  executed.set(event, known)
  const { key } = listener
  const found = known.get(key)
  if (found !== undefined) return sharing(listener, found, run)
  const result = run()
  known.set(key, { result, by: listener, key })
  return result
}

/**
 * The answer that another listener is given, unless the rights of one of the two became others while it
 * was made. Losing a right that it took ends the stream of everyone who was given it.
 */
async function sharing(
  listener: Listener,
  { result, by, key }: Executed,
  run: () => Result,
): Promise<ExecutionResult> {
  const shown = await result
  if (listener.key !== key || by.key !== key) return run()
  listener.permissions.useAs(by.permissions)
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
  context.permissions instanceof UsedPermissions
