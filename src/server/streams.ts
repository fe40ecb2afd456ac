import type { ExecutionResult } from 'graphql'
import type { Clock } from '../schema/context.ts'
import { tooManyRequests } from '../schema/failures.ts'
import type { Credentials } from './caller.ts'
import { Places } from './limits/places.ts'
import { Rights, whileRightsHold } from './rights.ts'
import type { Admitted, Door } from './scope.ts'

type Opened = { place: string; credentials: Credentials; admitted: Admitted }
type Source = AsyncIterable<ExecutionResult>

/** The streams that are open, over whichever transport: no more than a few of each caller. */
export class Streams {
  readonly #door: Door
  readonly #clock: Clock
  readonly #places: Places
  readonly #most: number

  constructor({ door, clock, most }: { door: Door; clock: Clock; most: number }) {
    this.#door = door
    this.#clock = clock
    this.#most = most
    this.#places = new Places(most)
  }

  /** How many are open. */
  get count(): number {
    return this.#places.taken
  }

  /** Takes a place for one more; refuses by throwing. Answers how to give it back. */
  take({ caller }: Admitted): () => void {
    const free = this.#places.take(caller.subject)
    if (free !== null) return free
    throw tooManyRequests(
      `You have ${this.#most} streams open; close one before you open another.`,
      'streams',
    )
  }

  /** A stream that has a connection of its own, whose rights are watched with it. */
  open({ place, credentials, admitted }: Opened) {
    const free = this.take(admitted)
    let end: () => void = () => undefined
    const rights = new Rights({
      ...{ door: this.#door, clock: this.#clock },
      ...{ place, credentials, admitted },
      onLost: () => end(),
    })
    const { permissions } = rights.watched()
    return {
      permissions,
      guard(source: Source): Source {
        const guarded = whileRightsHold(rights, source)
        end = guarded.end
        return guarded.stream
      },
      close(): void {
        rights.close()
        free()
      },
    }
  }
}
