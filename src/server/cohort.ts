/**
 * A stream of one object for all who asked for it alike, may see the same of it and know the same: it is read and
 * executed once, and each is handed what comes of it. Whoever takes longer than the next, or whose rights
 * become others, goes on alone from what they know, and comes back when they have caught up.
 */
import type { ExecutionResult } from 'graphql'
import type { EventLog } from '../domain/events/log.ts'
import type { Resumable, Standing } from '../resolvers/streams/resumable.ts'
import type { Context } from '../schema/context.ts'
import { Loaders } from '../schema/loaders.ts'
import { UsedPermissions } from './rights.ts'
import type { Teller } from './teller.ts'

type Next = IteratorResult<ExecutionResult, undefined>

const DONE = { done: true, value: undefined } as const

/** By what the answers depend on; of each log, whose positions are its own. */
const cohorts = new WeakMap<EventLog, Map<string, Cohort>>()

/** One who subscribed. It has to be returned. */
export class Member implements AsyncIterableIterator<ExecutionResult, undefined> {
  readonly teller: Teller
  readonly #context: Context
  #source: Resumable<object>
  #cohort: Cohort | undefined
  /** Hands over what is waited for. */
  #resolve: ((next: Next | Promise<Next>) => void) | undefined
  /** Of what the cohort used of its rights, so much is used here. */
  #used = 0
  #over = false

  constructor(source: Resumable<object>, teller: Teller, context: Context) {
    this.#source = source
    this.teller = teller
    this.#context = context
  }

  next(): Promise<Next> {
    if (this.#over) return Promise.resolve(DONE)
    if (this.#cohort === undefined) this.#join()
    if (this.#cohort === undefined) return this.#alone()
    return new Promise((resolve) => {
      this.#resolve = resolve
    })
  }

  async return(): Promise<Next> {
    this.#over = true
    this.#cohort?.delete(this)
    this.#resolve?.(DONE)
    await this.#source.return(undefined)
    return DONE
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  /** Is handed what came; answers whether it could take it. */
  take(next: Next, { teller: { key, permissions } }: Cohort): boolean {
    const resolve = this.#resolve
    if (resolve === undefined || this.teller.key !== key) return false
    // Losing a right that the answer took has to end this stream too.
    if (this.#used !== permissions.used) {
      this.teller.permissions.useAs(permissions)
      this.#used = permissions.used
    }
    this.#resolve = undefined
    resolve(next)
    return true
  }

  /** Goes on alone after what it knows. */
  leave(standing: Standing): void {
    this.#cohort = undefined
    this.#source = this.#source.from(standing, this.#context)
    this.#resolve?.(this.#alone())
    this.#resolve = undefined
  }

  async #alone(): Promise<Next> {
    const next = await this.#source.next()
    return next.done === true ? DONE : { done: false, value: await this.teller.tell(next.value) }
  }

  #join(): void {
    const standing = this.#source.standing()
    if (standing === undefined) return
    const cohort = Cohort.of(this.teller, this.#context, this.#source, standing)
    if (cohort.version !== standing.version) return
    this.#cohort = cohort
    this.#used = 0
    cohort.add(this)
    void this.#source.return(undefined)
  }
}

class Cohort {
  readonly teller: Teller
  readonly #source: Resumable<object>
  readonly #forget: () => void
  readonly #members = new Set<Member>()
  /** What all members know. */
  #standing: Standing
  #over = false

  /** The one of those who are told the same; it begins with the first who asks. */
  static of(
    teller: Teller,
    context: Context,
    source: Resumable<object>,
    standing: Standing,
  ): Cohort {
    const known = cohorts.get(context.log) ?? new Map<string, Cohort>()
    cohorts.set(context.log, known)
    const { key } = teller
    const there = known.get(key)
    if (there !== undefined) return there
    const { store, project } = context
    // Its own, as it may outlast whoever began it, and their rights.
    const permissions = new UsedPermissions(context.permissions)
    const loaders = new Loaders(store, project)
    const own = { ...context, permissions, loaders, noted: undefined }
    const cohort = new Cohort(teller.for(own), source.from(standing, own), standing, () =>
      known.delete(key),
    )
    known.set(key, cohort)
    return cohort
  }

  private constructor(
    teller: Teller,
    source: Resumable<object>,
    standing: Standing,
    forget: () => void,
  ) {
    this.teller = teller
    this.#source = source
    this.#standing = standing
    this.#forget = forget
  }

  get version(): number {
    return this.#standing.version
  }

  add(member: Member): void {
    this.#members.add(member)
    if (this.#members.size === 1) void this.#run()
  }

  delete(member: Member): void {
    this.#members.delete(member)
    if (this.#members.size === 0) this.#end()
  }

  async #run(): Promise<void> {
    try {
      while (!this.#over) {
        const next = await this.#source.next()
        const standing = this.#source.standing()
        if (next.done === true || standing === undefined) break
        this.#hand({ done: false, value: await this.teller.tell(next.value) }, standing)
      }
    } catch {
      // Each meets it alone, or doesn't any more.
    }
    this.#end()
  }

  #hand(next: Next, standing: Standing): void {
    const before = this.#standing
    this.#standing = standing
    for (const member of this.#members) {
      if (member.take(next, this)) continue
      this.#members.delete(member)
      member.leave(before)
    }
    if (this.#members.size === 0) this.#end()
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#forget()
    void this.#source.return(undefined)
    for (const member of this.#members) member.leave(this.#standing)
    this.#members.clear()
  }
}
