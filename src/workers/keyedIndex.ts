/** Objects found by any of the keys that they have now. */
export class KeyedIndex<T> {
  readonly #keysOf: (object: T) => string[]
  readonly #nameOf: (object: T) => string
  readonly #byKey = new Map<string, Map<string, T>>()

  constructor(nameOf: (object: T) => string, keysOf: (object: T) => string[]) {
    this.#nameOf = nameOf
    this.#keysOf = keysOf
  }

  /** Takes in a change as a follow tells it. */
  change(object: T | undefined, previous: T | undefined): void {
    if (previous !== undefined) {
      for (const key of this.#keysOf(previous)) {
        const objects = this.#byKey.get(key)
        objects?.delete(this.#nameOf(previous))
        if (objects?.size === 0) this.#byKey.delete(key)
      }
    }
    if (object === undefined) return
    for (const key of this.#keysOf(object)) {
      const objects = this.#byKey.get(key) ?? new Map<string, T>()
      objects.set(this.#nameOf(object), object)
      this.#byKey.set(key, objects)
    }
  }

  /** The objects that have one of the keys, each once. */
  find(...keys: string[]): T[] {
    const found = new Map<string, T>()
    for (const key of keys) {
      for (const [name, object] of this.#byKey.get(key) ?? []) found.set(name, object)
    }
    return [...found.values()]
  }

  keys(): IterableIterator<string> {
    return this.#byKey.keys()
  }
}
