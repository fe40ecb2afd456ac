import { NotFound, type Refusal } from '../domain/refusals.ts'
import { isUuid, type NodeType, uuidOf } from '../schema/ids.ts'

/** The ids that one mutation was given: UUIDs for the domain, and back again for its refusals. */
export class GivenIds {
  readonly #given = new Map<string, string>()

  /**
   * The UUID in an id of that type. Whatever else was given goes on as it is, and names nothing; so
   * a bare UUID, which would, doesn't go on.
   */
  uuid(type: NodeType, id: string): string {
    const uuid = uuidOf(type, id) ?? (isUuid(id.toLowerCase()) ? `(${id})` : id)
    this.#given.set(uuid, id)
    return uuid
  }

  /** The answer, with ids as the caller gave them. */
  told<T extends object>(answer: T | Refusal): T | Refusal {
    if (!(answer instanceof NotFound) || answer.missingId === null) return answer
    const { message, path, hint, retryable, missingId } = answer
    const given = this.#given.get(missingId) ?? missingId
    return new NotFound({ message, path, hint, retryable, missingId: given })
  }
}
