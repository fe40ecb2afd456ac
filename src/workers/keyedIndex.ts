/** Objects found by any of the keys that they have now. */
export class KeyedIndex<T> {
  readonly #keysOf: (object: T) => string[]
  readonly #nameOf: (object: T) => string
  readonly #byKey = new Map<string, Map<string, T>>()
  /** By name: the keys by which an object is found. */
  readonly #keys = new Map<string, string[]>()

  constructor(nameOf: (object: T) => string, keysOf: (object: T) => string[]) {
    this.#nameOf = nameOf
    this.#keysOf = keysOf
  }

  /** Takes in a change as a follow tells it: whole, or not at all where it throws. */
  change(object: T | undefined, previous: T | undefined): void {
    const known = object ?? previous
    if (known === undefined) return
    const name = this.#nameOf(known)
    const keys = object === undefined ? [] : this.#keysOf(object)
    for (const key of this.#keys.get(name) ?? []) {
      const objects = this.#byKey.get(key)
      objects?.delete(name)
      if (objects?.size === 0) this.#byKey.delete(key)
    }
    if (keys.length === 0) this.#keys.delete(name)
    else this.#keys.set(name, keys)
    if (object === undefined) return
    for (const key of keys) {
      const objects = this.#byKey.get(key) ?? new Map<string, T>()
      objects.set(name, object)
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
