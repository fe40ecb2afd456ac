import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isAsWanted } from '../../src/rules/comparison.ts'
import { type Desired, desired } from '../../src/rules/desired.ts'
import {
  GENERATION_ANNOTATION,
  INSTANCE_LABEL,
  MANAGED_BY_LABEL,
  type NetworkRule,
  type ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import type { Observed } from '../../src/rules/observed.ts'
import { steps } from '../../src/rules/steps.ts'
import { ModelCluster } from './modelCluster.ts'
import {
  anyCapabilities,
  anyWanted,
  BACKENDS,
  backend,
  endpoint,
  SELECTOR,
  vip,
  wanted,
} from './wishes.ts'

const nothing: Observed = { rules: [], bindings: [], advertisements: [], gateways: [] }

const observed = (change: Partial<Observed>): Observed => ({ ...nothing, ...change })

const asIs = (wish: Desired): Observed =>
  structuredClone(observed({ rules: wish.rules, bindings: wish.bindings, labelled: wish.labels }))

const first = <T>(items: T[]): T => {
  const [item] = items
  if (item === undefined) throw new Error('there is none')
  return item
}

const told = (wish: Desired, seen: Observed) =>
  steps(wish, seen).now.map((step) =>
    step.act === 'apply'
      ? `apply ${step.resource.kind} ${step.object.metadata.name}`
      : `${step.act} ${step.resource.kind} ${step.where.name}`,
  )

/** More than enough for: remove bindings, remove rules, write rules, write bindings, mend. */
const ROUNDS = 8

/** What somebody may have done to our objects. */
const meddling = fc.constantFrom<((rule: NetworkRule) => void)[]>(
  () => undefined,
  () => undefined,
  (rule) => {
    rule.spec.port = 4711
  },
  (rule) => {
    rule.spec.vipAddresses.push('2001:db8:bad::1')
  },
  (rule) => {
    rule.spec.sessionAffinity = 'Strange'
  },
  (rule) => {
    rule.metadata.annotations = {}
  },
  (rule) => {
    rule.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
  },
  (rule) => {
    Reflect.deleteProperty(rule, 'spec')
  },
)

const meddlingWithBindings = fc.constantFrom<((binding: ServiceVIPBinding) => void)[]>(
  () => undefined,
  () => undefined,
  (binding) => {
    binding.spec.backendPort = 4711
  },
  (binding) => {
    binding.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
  },
  (binding) => {
    binding.metadata.labels = {}
  },
)

const anyStart = fc
  .tuple(
    anyWanted,
    anyCapabilities,
    fc.array(meddling, { minLength: 3, maxLength: 3 }),
    fc.array(meddlingWithBindings, { minLength: 9, maxLength: 9 }),
    fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
  )
  .map(([want, can, withRules, withBindings, kept]) => {
    const before = structuredClone(desired(want, can))
    for (const [index, rule] of before.rules.entries()) withRules[index]?.(rule)
    for (const [index, binding] of before.bindings.entries()) withBindings[index]?.(binding)
    return {
      rules: before.rules.filter((_, index) => kept[index]),
      bindings: before.bindings.filter((_, index) => kept[3 + index] ?? true),
      labels: before.labels,
    }
  })

describe('steps', () => {
  test('from any state they lead to what is desired, and then there are none', () => {
    fc.assert(
      fc.property(anyStart, anyWanted, anyCapabilities, (start, want, can) => {
        const wish = desired(want, can)
        const cluster = new ModelCluster(structuredClone(start))
        for (const label of start.labels) cluster.labelled.set(label.uid, label)
        for (let round = 0; round < ROUNDS; round++) {
          for (const step of steps(wish, cluster.observe()).now) cluster.do(step)
          cluster.advance(wish)
        }
        const end = cluster.observe()
        expect(steps(wish, end)).toEqual({ now: [], waitingFor: [] })
        expect(end.rules).toHaveLength(wish.rules.length)
        for (const rule of wish.rules) {
          const there = end.rules.find(({ metadata }) => metadata.name === rule.metadata.name)
          expect(there?.spec).toEqual(rule.spec)
          expect(there?.metadata).toMatchObject(rule.metadata)
        }
        const ours = end.bindings.filter(({ metadata }) => metadata.labels?.[INSTANCE_LABEL])
        expect(ours.map(({ spec }) => spec)).toEqual(
          expect.arrayContaining(wish.bindings.map(({ spec }) => spec)),
        )
        expect(ours).toHaveLength(wish.bindings.length)
        expect(end.labelled?.map(({ uid }) => uid).toSorted()).toEqual(
          wish.labels.map(({ uid }) => uid).toSorted(),
        )
      }),
      { numRuns: 400 },
    )
  })

  test('done twice they do nothing more', () => {
    fc.assert(
      fc.property(anyStart, anyWanted, anyCapabilities, (start, want, can) => {
        const wish = desired(want, can)
        const cluster = new ModelCluster(structuredClone(start))
        const now = steps(wish, cluster.observe()).now
        for (const step of now) cluster.do(step)
        const once = cluster.observe()
        for (const step of now.filter(({ act }) => act !== 'apply')) cluster.do(step)
        expect(cluster.observe()).toEqual(once)
      }),
    )
  })

  test('nothing is done where all is as desired', () => {
    for (const can of [BACKENDS, SELECTOR]) {
      const wish = desired(wanted(), can)
      expect(steps(wish, asIs(wish))).toEqual({ now: [], waitingFor: [] })
    }
  })

  test("others' labels, annotations, status and managed fields are left alone", () => {
    const wish = desired(wanted(), BACKENDS)
    const seen = asIs(wish)
    for (const object of [...seen.rules, ...seen.bindings]) {
      object.metadata.labels = { ...object.metadata.labels, theirs: 'yes' }
      object.metadata.annotations = { ...object.metadata.annotations, theirs: 'yes' }
      object.metadata.finalizers = ['galactic.datum.net/networkrule-teardown']
      Object.assign(object.metadata, { managedFields: [{ manager: 'galactic' }] })
      Object.assign(object, { status: { conditions: [] } })
    }
    expect(steps(wish, seen).now).toEqual([])
  })

  test('a deleted rule is written again', () => {
    const wish = desired(wanted(), BACKENDS)
    const name = first(wish.rules).metadata.name
    expect(told(wish, { ...asIs(wish), rules: [] })).toEqual([`apply NetworkRule ${name}`])
  })

  test('a rule that is being deleted is waited for', () => {
    const wish = desired(wanted(), BACKENDS)
    const seen = asIs(wish)
    first(seen.rules).metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    expect(steps(wish, seen)).toEqual({
      now: [],
      waitingFor: [first(wish.rules).metadata.name],
    })
  })

  test('a binding that is being deleted is waited for', () => {
    const wish = desired(wanted(), BACKENDS)
    const seen = asIs(wish)
    const { metadata } = first(seen.bindings)
    metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    expect(steps(wish, seen)).toEqual({ now: [], waitingFor: [metadata.name] })
  })

  test('an edited binding is removed first and written only once it is gone', () => {
    const wish = desired(wanted({ backends: [backend(1)] }), BACKENDS)
    const seen = asIs(wish)
    const binding = first(seen.bindings)
    binding.spec.port = 81
    const { name } = binding.metadata
    expect(told(wish, seen)).toEqual([`remove ServiceVIPBinding ${name}`])
    binding.metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    expect(steps(wish, seen)).toEqual({ now: [], waitingFor: [name] })
    expect(told(wish, { ...seen, bindings: [] })).toEqual([`apply ServiceVIPBinding ${name}`])
  })

  test('a binding of which a field was lost is made whole, and not removed', () => {
    const wish = desired(wanted(), BACKENDS)
    const seen = asIs(wish)
    const binding = first(seen.bindings)
    Reflect.deleteProperty(binding.spec, 'backendPort')
    Reflect.deleteProperty(binding.spec.targetRef, 'kind')
    const apply = [`apply ServiceVIPBinding ${binding.metadata.name}`]
    expect(told(wish, seen)).toEqual(apply)
    expect(steps(wish, seen).waitingFor).toEqual([])
    // Unless another field is another one's.
    binding.spec.port = 4711
    expect(told(wish, seen)).toEqual([`remove ServiceVIPBinding ${binding.metadata.name}`])
  })

  test('the next backend of a node is bound only when the one before is gone', () => {
    const next = backend(2, { endpoint: endpoint(2, 'worker-1') })
    const before = desired(wanted({ backends: [backend(1), next] }), BACKENDS)
    const after = desired(wanted({ backends: [next] }), BACKENDS)
    const now = told(after, asIs(before))
    expect(now).toContain(`remove ServiceVIPBinding ${first(before.bindings).metadata.name}`)
    expect(now).not.toContain(`apply ServiceVIPBinding ${first(after.bindings).metadata.name}`)
  })

  test('a rule goes only after its bindings', () => {
    const before = desired(wanted(), BACKENDS)
    const after = desired(wanted({ placed: false }), BACKENDS)
    const rule = first(before.rules).metadata.name
    expect(told(after, asIs(before))).toEqual(
      before.bindings.map(({ metadata }) => `remove ServiceVIPBinding ${metadata.name}`),
    )
    expect(told(after, observed({ rules: before.rules }))).toEqual([`remove NetworkRule ${rule}`])
    expect(steps(after, nothing)).toEqual({ now: [], waitingFor: [] })
  })

  test('an object of another installation is never touched', () => {
    const before = desired(wanted({ instance: 'another' }), BACKENDS)
    const after = desired(wanted({ placed: false }), BACKENDS)
    expect(steps(after, observed({ bindings: before.bindings })).now).toEqual([])
  })

  test("the data plane's own binding, whose name begins with our rule's too, is never touched", () => {
    const wish = desired(wanted({ backends: [backend(1)] }), SELECTOR)
    const rule = first(wish.rules).metadata.name
    const own = structuredClone(first(desired(wanted(), BACKENDS).bindings))
    own.metadata = { name: `${rule}-worker-1-0123456789ab`, labels: { theirs: 'yes' } }
    expect(steps(wish, { ...asIs(wish), bindings: [own] })).toEqual({ now: [], waitingFor: [] })
    own.metadata = { name: `${rule}-0123456789ab`, labels: { [MANAGED_BY_LABEL]: 'galactic' } }
    expect(steps(wish, { ...asIs(wish), bindings: [own] })).toEqual({ now: [], waitingFor: [] })
  })

  test('a binding that lost its labels gets them back', () => {
    const wish = desired(wanted({ backends: [backend(1)] }), BACKENDS)
    const seen = asIs(wish)
    const { metadata } = first(seen.bindings)
    delete metadata.labels
    expect(told(wish, seen)).toEqual([`apply ServiceVIPBinding ${metadata.name}`])
  })

  test('a binding waits while one of another load balancer stands in its place', () => {
    const held = backend(1, { nodeHeldBy: 'another' })
    const wish = desired(wanted({ backends: [held, backend(2)] }), BACKENDS)
    expect(wish.bindings.map(({ spec }) => spec.backendAddress)).toEqual([backend(2).address])
    expect(wish.backends[held.id]?.placed.reason).toBe('NodeConflict')
    expect(steps(wish, asIs(wish)).waitingFor).toEqual(['another'])
  })

  test('where another binding came into its place its own goes too, since its row is not its own any more', () => {
    const before = desired(wanted({ backends: [backend(1)] }), BACKENDS)
    const held = backend(1, { nodeHeldBy: 'another' })
    const wish = desired(wanted({ backends: [held] }), BACKENDS)
    expect(told(wish, asIs(before))).toEqual([
      `remove ServiceVIPBinding ${first(before.bindings).metadata.name}`,
    ])
  })

  test('a rule goes although the data plane can not let go of its binding any more', () => {
    const before = desired(wanted({ backends: [backend(1)] }), BACKENDS)
    const after = desired(wanted({ backends: [backend(1, { endpoint: null })] }), BACKENDS)
    const seen = asIs(before)
    const { metadata } = first(seen.bindings)
    metadata.deletionTimestamp = '2026-01-01T00:00:00Z'
    expect(told(after, seen)).toEqual([])
    expect(told(after, { ...seen, stranded: [metadata.name] })).toEqual([
      `remove NetworkRule ${first(before.rules).metadata.name}`,
    ])
  })

  test('what moves stays until it is in effect where it goes', () => {
    const before = desired(wanted(), BACKENDS)
    const waiting = desired(wanted({ placed: false, awaitsSuccessor: true }), BACKENDS)
    expect(steps(waiting, asIs(before)).now).toEqual([])
    const leaving = desired(wanted({ placed: false, awaitsSuccessor: false }), BACKENDS)
    expect(steps(leaving, asIs(before)).now).not.toEqual([])
  })

  test('a VIP that somebody added to our rule is taken out', () => {
    const wish = desired(wanted(), BACKENDS)
    const seen = asIs(wish)
    first(seen.rules).spec.vipAddresses.push('2001:db8:bad::1')
    expect(isAsWanted(first(wish.rules), first(seen.rules))).toBe(false)
    expect(steps(wish, seen).now).toContainEqual(
      expect.objectContaining({ act: 'merge', patch: { spec: { vipAddresses: [vip().address] } } }),
    )
  })

  test('an affinity that somebody else set is taken out', () => {
    const wish = desired(wanted(), BACKENDS)
    const seen = asIs(wish)
    first(seen.rules).spec.sessionAffinity = 'Strange'
    expect(steps(wish, seen).now).toContainEqual(
      expect.objectContaining({ act: 'merge', patch: { spec: { sessionAffinity: null } } }),
    )
  })

  test('a label more in our selector is a difference, since it chooses fewer', () => {
    const wish = desired(wanted(), SELECTOR)
    const seen = asIs(wish)
    const { spec } = first(seen.rules)
    if (!('backendSelector' in spec)) throw new Error('not a selector rule')
    Object.assign(spec.backendSelector.matchLabels, { theirs: 'yes' })
    expect(steps(wish, seen).now).toHaveLength(1)
  })

  test('nothing is written below a rule that is newer than the store', () => {
    const wish = desired(wanted({ port: 81 }), BACKENDS)
    const seen = asIs(desired(wanted(), BACKENDS))
    first(seen.rules).metadata.annotations = { [GENERATION_ANNOTATION]: '9' }
    expect(steps(wish, seen)).toEqual({ now: [], waitingFor: [] })
  })

  test('a missing schema empties nothing', () => {
    const wish = desired(wanted(), { ...BACKENDS, dialect: undefined })
    expect(steps(wish, asIs(desired(wanted(), BACKENDS)))).toEqual({ now: [], waitingFor: [] })
  })

  test('labels come before the rule that selects by them', () => {
    const wish = desired(wanted({ backends: [backend(1)] }), SELECTOR)
    expect(steps(wish, nothing).now.map(({ act }) => act)).toEqual(['merge', 'apply'])
  })

  test('after a switch of dialect our bindings stay until the data plane has its own', () => {
    const before = desired(wanted({ backends: [backend(1)] }), BACKENDS)
    const wish = desired(wanted({ backends: [backend(1)] }), SELECTOR)
    const seen = { ...asIs(wish), bindings: before.bindings }
    expect(steps(wish, seen)).toEqual({
      now: [],
      waitingFor: [first(before.bindings).metadata.name],
    })
    const own = structuredClone(first(before.bindings))
    own.metadata = { name: 'worker-1-of-the-data-plane' }
    expect(told(wish, { ...seen, bindings: [...before.bindings, own] })).toEqual([
      `remove ServiceVIPBinding ${first(before.bindings).metadata.name}`,
    ])
  })
})
