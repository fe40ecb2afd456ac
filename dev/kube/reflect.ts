/**
 * The few methods of the metadata proposal that tsyringe, below @peculiar/x509, demands at import.
 * Import this before it.
 */
const kept = new WeakMap<object, Map<unknown, unknown>>()

const own = (key: unknown, target: object): unknown => kept.get(target)?.get(key)

const inherited = (key: unknown, target: object | null): unknown =>
  target === null ? undefined : (own(key, target) ?? inherited(key, Object.getPrototypeOf(target)))

if (!('getMetadata' in Reflect)) {
  Object.assign(Reflect, {
    getMetadata: inherited,
    getOwnMetadata: own,
    defineMetadata: (key: unknown, value: unknown, target: object) => {
      const values = kept.get(target) ?? new Map<unknown, unknown>()
      kept.set(target, values.set(key, value))
    },
  })
}
