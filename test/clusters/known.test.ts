import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Known } from '../../src/clusters/known.ts'
import type { KubeObject } from '../../src/rules/objects.ts'
import { rule } from './follow-setup.ts'

type Event = { type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: KubeObject; version: number }

/** A server's history, and a follower that hears of it by lists, events and late answers. */
class World {
  readonly log: Event[] = []
  readonly state = new Map<string, KubeObject>()
  /** What writes answered and nobody has learned yet. */
  readonly answers: KubeObject[] = []
  version = 100
  heard = 0
  listing: { items: KubeObject[]; version: number; heard: number } | undefined
  /** Per name, what `changed` made of it, and the newest version or end that was told. */
  readonly told = new Map<string, KubeObject>()
  readonly faults: string[] = []
  readonly known = new Known<KubeObject>((object, previous) => {
    const { name = '' } = (object ?? previous)?.metadata ?? {}
    if (this.told.get(name) !== previous) this.faults.push(`${name}: previous is not what was told`)
    if (object === undefined) this.told.delete(name)
    else this.told.set(name, object)
    if (object && previous && object.metadata.uid !== previous.metadata.uid)
      this.faults.push(`${name}: another uid without a removal`)
    if (object && previous && versionOf(object) <= versionOf(previous))
      this.faults.push(`${name}: went back`)
    if (!object && previous && !this.ended(previous)) this.faults.push(`${name}: gone though alive`)
    if (object && this.endHeard(object)) this.faults.push(`${name}: back from the dead`)
  })

  constructor() {
    this.known.takeList([], '100', () => true)
  }

  write(name: string, observed: boolean): void {
    const before = this.state.get(name)
    const version = ++this.version
    const object = rule(name, version, before?.metadata.uid ?? `${name}-${version}`)
    this.state.set(name, object)
    this.log.push({ type: before === undefined ? 'ADDED' : 'MODIFIED', object, version })
    if (observed) this.answers.push(object)
  }

  remove(name: string): void {
    const before = this.state.get(name)
    if (before === undefined) return
    const version = ++this.version
    this.state.delete(name)
    const object = rule(name, version, before.metadata.uid)
    this.log.push({ type: 'DELETED', object, version })
  }

  hear(): void {
    const event = this.listing === undefined ? this.log[this.heard] : undefined
    if (event === undefined) return
    this.heard += 1
    this.known.takeEvent(event.type, event.object)
  }

  bookmark(): void {
    const caughtUp = this.listing === undefined && this.heard === this.log.length
    if (caughtUp) this.known.sawVersion(String(this.version))
  }

  learn(at: number): void {
    const [answer] = this.answers.splice(at % Math.max(1, this.answers.length), 1)
    if (answer !== undefined) this.known.learn(answer)
  }

  /** The list is read as of now and taken over at the next call. */
  list(): void {
    if (this.listing === undefined) {
      this.known.beginList()
      const items = [...this.state.values()]
      this.listing = { items, version: this.version, heard: this.log.length }
      return
    }
    const { items, version, heard } = this.listing
    this.listing = undefined
    this.heard = Math.max(this.heard, heard)
    this.known.takeList(items, String(version), () => true)
  }

  ended(object: KubeObject): boolean {
    return this.#endsIn(this.log, object)
  }

  /** The end of this very object has been heard of, as an event or by its absence from a list. */
  endHeard(object: KubeObject): boolean {
    return this.#endsIn(this.log.slice(0, this.heard), object)
  }

  #endsIn(events: Event[], { metadata: { uid } }: KubeObject): boolean {
    return events.some(({ type, object }) => type === 'DELETED' && object.metadata.uid === uid)
  }
}

function versionOf(object: KubeObject): number {
  return Number(object.metadata.resourceVersion)
}

test('however lists, events and late answers interleave, nothing is lost, told twice or revived', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const step = fc.oneof(
    fc.record({ do: fc.constant('write' as const), name, observed: fc.boolean() }),
    fc.record({ do: fc.constant('remove' as const), name }),
    fc.record({ do: fc.constant('learn' as const), at: fc.nat(5) }),
    fc.record({ do: fc.constantFrom('hear' as const, 'list' as const, 'bookmark' as const) }),
  )
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const world = new World()
      for (const one of steps) {
        if (one.do === 'write') world.write(one.name, one.observed)
        else if (one.do === 'remove') world.remove(one.name)
        else if (one.do === 'learn') world.learn(one.at)
        else world[one.do]()
      }
      if (world.listing !== undefined) world.list()
      while (world.heard < world.log.length) world.hear()
      while (world.answers.length > 0) world.learn(0)
      expect(world.faults).toEqual([])
      expect([...world.known.objects.values()].sort(byName)).toEqual(
        [...world.state.values()].sort(byName),
      )
      expect(world.told).toEqual(new Map([...world.state]))
    }),
    { numRuns: 2_000 },
  )
})

function byName(one: KubeObject, other: KubeObject): number {
  return one.metadata.name < other.metadata.name ? -1 : 1
}

test('what a list shows otherwise at the same version is taken over, and what is equal is not told', () => {
  const told: (object | undefined)[] = []
  const known = new Known<KubeObject>((object) => told.push(object))
  const whole = { ...rule('a', 7, 'uid'), spec: { port: 80, backends: [] } }
  // As while the definition of its kind lacks a field.
  const less = { ...whole, spec: { port: 80 } }
  for (const shown of [less, whole, structuredClone(whole)])
    known.takeList([shown], '9', () => true)
  expect(told).toEqual([less, whole])
})
