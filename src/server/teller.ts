/**
 * What one who subscribed is told of events: all who ask by the same document and variables, in the same project
 * and with the same rights, are given one answer to each.
 */
import {
  type DocumentNode,
  type ExecutionArgs,
  type ExecutionResult,
  execute,
  Kind,
  visit,
} from 'graphql'
import type { UsedPermissions } from './rights.ts'

/** What an answer depends on besides the event, the document and its variables. */
export type Viewer = { project: string | null; permissions: UsedPermissions }

type Answer = ReturnType<typeof execute>
type Executed = { answer: Answer; by: Teller; key: string }
const executed = new WeakMap<object, Map<string, Executed>>()
type Known = { number: number; startsOnly: ReadonlySet<string> }
const documents = new WeakMap<DocumentNode, Known>()
let documentsSeen = 0

export class Teller {
  readonly permissions: UsedPermissions
  readonly #args: ExecutionArgs
  readonly #asked: string
  #granted = ''
  #key = ''

  constructor(args: ExecutionArgs, { project, permissions }: Viewer) {
    const { document, operationName, variableValues } = args
    this.permissions = permissions
    this.#args = args
    const { number, startsOnly } = knownOf(document)
    const variables = Object.entries(variableValues ?? {}).filter(([name]) => !startsOnly.has(name))
    this.#asked = JSON.stringify([number, operationName, variables, project])
  }

  /** Equal for those who are given the same answers. Another one once their rights are others. */
  get key(): string {
    const granted = this.permissions.text
    if (granted !== this.#granted) {
      this.#granted = granted
      this.#key = `${this.#asked} ${granted}`
    }
    return this.#key
  }

  /** The same as somebody else asks for it. */
  for<V extends Viewer>(viewer: V): Teller {
    return new Teller({ ...this.#args, contextValue: viewer }, viewer)
  }

  tell(event: unknown): Answer {
    if (typeof event !== 'object' || event === null) return this.#execute(event)
    const known = executed.get(event) ?? new Map<string, Executed>()
    executed.set(event, known)
    const { key } = this
    const found = known.get(key)
    if (found !== undefined) return this.#share(event, found)
    const answer = this.#execute(event)
    known.set(key, { answer, by: this, key })
    return answer
  }

  #execute(event: unknown): Answer {
    return execute({ ...this.#args, rootValue: event })
  }

  /**
   * The answer that another is given, unless the rights of one of the two became others while it was made. Losing a
   * right that it took ends the stream of everyone who was given it.
   */
  async #share(event: object, { answer, by, key }: Executed): Promise<ExecutionResult> {
    const shown = await answer
    if (this.key !== key || by.key !== key) return this.#execute(event)
    this.permissions.useAs(by.permissions)
    return shown
  }
}

function knownOf(document: DocumentNode): Known {
  const known = documents.get(document)
  if (known !== undefined) return known
  documentsSeen += 1
  const read = { number: documentsSeen, startsOnly: startsOnly(document) }
  documents.set(document, read)
  return read
}

/**
 * The variables that say where a stream goes on from, and nothing else: what it tells then is the same, wherever
 * it began.
 */
function startsOnly(document: DocumentNode): ReadonlySet<string> {
  const fields = document.definitions
    .flatMap((one) => (one.kind === Kind.OPERATION_DEFINITION ? one.selectionSet.selections : []))
    .flatMap((one) => (one.kind === Kind.FIELD ? (one.arguments ?? []) : []))
  const starts = new Map<unknown, string>(
    fields.flatMap(({ name, value }) =>
      name.value === 'after' && value.kind === Kind.VARIABLE ? [[value, value.name.value]] : [],
    ),
  )
  const found = new Set(starts.values())
  visit(document, {
    VariableDefinition: () => false,
    Variable: (variable) => {
      if (!starts.has(variable)) found.delete(variable.name.value)
    },
  })
  return found
}
