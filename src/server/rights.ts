import { type ExecutionResult, GraphQLError } from 'graphql'
import type { Clock } from '../schema/context.ts'
import { forbidden, unauthenticated } from '../schema/failures.ts'
import type { Credentials } from './caller.ts'
import type { Admitted, Door } from './scope.ts'

/** Whoever keeps a connection open is identified anew this often, in milliseconds. */
const AGAIN = 30_000
/** While rights can't be checked those of the last time hold, but no longer than this. */
const FORGIVEN = 60_000

export type RightsOptions = {
  door: Door
  clock: Clock
  place: string
  credentials: Credentials
  admitted: Admitted
  /** Called once, when they are gone. */
  onLost: (error: GraphQLError) => void
}

/** What a caller may do for as long as their connection lives. It has to be closed. */
export class Rights {
  readonly #options: RightsOptions
  readonly #views = new Set<UsedPermissions>()
  #admitted: Admitted
  #checkedAt: number
  #lost: GraphQLError | undefined
  #cancel: () => void = () => undefined
  #closed = false

  constructor(options: RightsOptions) {
    this.#options = options
    this.#admitted = options.admitted
    this.#checkedAt = this.#now()
    this.#wait()
  }

  /** As they were found last. */
  get admitted(): Admitted {
    return this.#admitted
  }

  /** Why they are gone; undefined while they hold. Cheap enough to be asked for every event. */
  get lost(): GraphQLError | undefined {
    if (this.#lost === undefined && this.#hasExpired()) this.#lose(expired())
    return this.#lost
  }

  /** Permissions for one stream: once it has used one, that one going ends it. */
  watched(): { permissions: ReadonlySet<string>; forget: () => void } {
    const view = new UsedPermissions(this.#admitted.permissions)
    this.#views.add(view)
    return { permissions: view, forget: () => void this.#views.delete(view) }
  }

  close(): void {
    this.#closed = true
    this.#cancel()
  }

  #now(): number {
    return this.#options.clock.now().getTime()
  }

  #hasExpired(): boolean {
    const { expiresAt } = this.#admitted.caller
    return expiresAt !== undefined && this.#now() >= expiresAt
  }

  #wait(): void {
    const { expiresAt = Number.POSITIVE_INFINITY } = this.#admitted.caller
    const left = Math.max(0, expiresAt - this.#now())
    this.#cancel = this.#options.clock.after(Math.min(AGAIN, left), () => void this.#check())
  }

  async #check(): Promise<void> {
    const { door, place, credentials } = this.#options
    if (this.lost !== undefined) return
    try {
      const admitted = await door.admit(place, credentials)
      this.#admitted = admitted
      this.#checkedAt = this.#now()
      for (const view of this.#views) {
        const missing = view.missingFrom(admitted.permissions)
        if (missing !== undefined) return this.#lose(forbidden(`You lost ${missing}.`))
        view.become(admitted.permissions)
      }
    } catch (error) {
      const final = error instanceof GraphQLError && error.extensions['code'] !== TEMPORARY
      if (final) return this.#lose(error)
      if (this.#now() - this.#checkedAt > FORGIVEN) {
        return this.#lose(unauthenticated('Your rights could not be checked again.'))
      }
    }
    if (!this.#closed) this.#wait()
  }

  #lose(error: GraphQLError): void {
    if (this.#lost !== undefined || this.#closed) return
    this.#lost = error
    this.#cancel()
    this.#options.onLost(error)
  }
}

const DONE = { done: true, value: undefined } as const
const TEMPORARY = 'INTERNAL_SERVER_ERROR'
const expired = () => unauthenticated('Your token has expired.')
const broken = (thrown: unknown) =>
  new GraphQLError('a stream broke', {
    originalError: thrown instanceof Error ? thrown : new Error(String(thrown)),
  })

/** Permissions that remember which of them were asked for and there. */
export class UsedPermissions extends Set<string> {
  readonly #used = new Set<string>()
  #text: string | undefined

  /** All of them: equal for equal ones. */
  get text(): string {
    this.#text ??= JSON.stringify([...this])
    return this.#text
  }

  /** How many of them were. */
  get used(): number {
    return this.#used.size
  }

  /** What others used for an answer that is given here too was used here. */
  useAs(other: UsedPermissions): void {
    for (const permission of other.#used) this.#used.add(permission)
  }

  override has(permission: string): boolean {
    const has = super.has(permission)
    if (has) this.#used.add(permission)
    return has
  }

  missingFrom(permissions: ReadonlySet<string>): string | undefined {
    for (const permission of this.#used) if (!permissions.has(permission)) return permission
    return undefined
  }

  become(permissions: ReadonlySet<string>): void {
    this.clear()
    for (const permission of permissions) this.add(permission)
    this.#text = undefined
  }
}

/**
 * The stream for as long as the rights hold and it can be told; then an answer that says why not, and the
 * end. Whoever loses them has to be told by `end`, or a stream that waits would wait on.
 */
export function whileRightsHold(
  rights: Rights,
  source: AsyncIterable<ExecutionResult>,
): { stream: AsyncIterableIterator<ExecutionResult>; end: () => void } {
  const iterator = source[Symbol.asyncIterator]()
  let over = false
  const end = () => void iterator.return?.(undefined)
  const last = (error?: GraphQLError): IteratorResult<ExecutionResult> => {
    if (over) return DONE
    over = true
    end()
    return { done: false, value: { errors: [rights.lost ?? error ?? expired()] } }
  }
  const held = (next: IteratorResult<ExecutionResult>) =>
    rights.lost === undefined ? next : last()
  const failed = (thrown: unknown) => last(thrown instanceof GraphQLError ? thrown : broken(thrown))
  const stream: AsyncIterableIterator<ExecutionResult> = {
    next() {
      if (over) return Promise.resolve(DONE)
      if (rights.lost !== undefined) return Promise.resolve(last())
      return iterator.next().then(held, failed)
    },
    async return() {
      over = true
      await iterator.return?.(undefined)
      return DONE
    },
    [Symbol.asyncIterator]() {
      return this
    },
  }
  return { stream, end }
}
