import { expect } from 'vitest'
import type { AttachmentLabel, Desired } from '../../src/rules/desired.ts'
import {
  type KubeObject,
  NETWORK_RULES,
  type NetworkRule,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
} from '../../src/rules/objects.ts'
import type { Observed } from '../../src/rules/observed.ts'
import type { Step } from '../../src/rules/steps.ts'

/**
 * A cluster as far as the steps of one load balancer can see it: what was removed waits for a
 * finalizer, other field managers' items outlive an apply, and the *selector* data plane writes
 * bindings of its own. It fails the test when a step breaks a rule of the data plane.
 */
export class ModelCluster {
  readonly rules = new Map<string, NetworkRule>()
  readonly bindings = new Map<string, ServiceVIPBinding>()
  readonly labelled = new Map<string, AttachmentLabel>()

  constructor(start: { rules: NetworkRule[]; bindings: ServiceVIPBinding[] }) {
    for (const rule of start.rules) this.rules.set(rule.metadata.name, rule)
    for (const binding of start.bindings) this.bindings.set(binding.metadata.name, binding)
  }

  observe(): Observed {
    return structuredClone({
      rules: [...this.rules.values()],
      bindings: [...this.bindings.values()],
      advertisements: [],
      gateways: [],
      labelled: [...this.labelled.values()],
    })
  }

  do(step: Step): void {
    if (step.act === 'remove') this.remove(step)
    else if (step.act === 'merge') this.merge(step)
    else if (isRule(step.object)) this.applyRule(step.object)
    else this.applyBinding(step.object)
  }

  /** The data plane lets go of what was removed, and in the *selector* dialect binds. */
  advance(now: Desired): void {
    for (const objects of [this.rules, this.bindings])
      for (const [name, object] of objects)
        if (object.metadata.deletionTimestamp !== undefined) objects.delete(name)
    if (now.dialect !== 'selector') return
    for (const rule of this.rules.values())
      for (const { listed, node = '', address } of Object.values(now.backends))
        if (listed) {
          const name = `${node}-of-the-data-plane-${rule.metadata.name}-${address}`
          this.bindings.set(name, ownBinding(name, rule, node, address))
        }
    for (const [name, binding] of this.bindings)
      if (name.includes('of-the-data-plane') && !this.isServed(binding)) this.bindings.delete(name)
  }

  private isServed(binding: ServiceVIPBinding): boolean {
    return [...this.rules.values()].some(({ spec }) =>
      spec.vipAddresses.includes(binding.spec.vipAddress),
    )
  }

  private remove({ resource, where }: Extract<Step, { act: 'remove' }>): void {
    const objects: Map<string, KubeObject> = resource === NETWORK_RULES ? this.rules : this.bindings
    const object = objects.get(where.name)
    if (!object) return
    if (resource === NETWORK_RULES)
      for (const name of this.bindings.keys())
        expect(name, 'bindings go before their rule').not.toMatch(new RegExp(`^${where.name}-`))
    object.metadata.deletionTimestamp ??= '2026-01-01T00:00:00Z'
  }

  private merge({ resource, where, patch }: Extract<Step, { act: 'merge' }>): void {
    const { spec, metadata } = patch
    if (resource !== NETWORK_RULES) {
      const uid = metadata?.uid ?? ''
      const [value] = Object.values(metadata?.labels ?? {})
      if (value === null) this.labelled.delete(uid)
      else this.labelled.set(uid, { namespace: where.namespace ?? '', name: where.name, uid })
      return
    }
    const rule = this.rules.get(where.name)
    if (!rule) return
    for (const [key, value] of Object.entries(spec ?? {}))
      if (value === null) Reflect.deleteProperty(rule.spec, key)
      else Reflect.set(rule.spec, key, value)
  }

  private applyRule(wish: NetworkRule): void {
    const rule = this.rules.get(wish.metadata.name)
    expect(rule?.metadata.deletionTimestamp, 'what is going is waited for').toBeUndefined()
    const theirs = rule?.spec?.vipAddresses ?? []
    const affinity = rule?.spec?.sessionAffinity
    this.rules.set(wish.metadata.name, {
      ...overlaid(wish, rule),
      spec: {
        ...(affinity === undefined ? {} : { sessionAffinity: affinity }),
        ...structuredClone(wish.spec),
        vipAddresses: [...new Set([...theirs, ...wish.spec.vipAddresses])],
      },
    })
  }

  private applyBinding(wish: ServiceVIPBinding): void {
    const { name } = wish.metadata
    const binding = this.bindings.get(name)
    if (binding) expect(binding.spec, 'a binding is never edited').toMatchObject(wish.spec)
    for (const [other, { spec }] of this.bindings)
      if (other !== name && spec.vipAddress === wish.spec.vipAddress)
        expect(spec.targetRef.name, 'one binding a node').not.toBe(wish.spec.targetRef.name)
    this.bindings.set(name, overlaid(wish, binding))
  }
}

const isRule = (object: NetworkRule | ServiceVIPBinding): object is NetworkRule =>
  object.kind === NETWORK_RULES.kind

const overlaid = <T extends KubeObject>(wish: T, object: T | undefined): T => ({
  ...structuredClone(wish),
  metadata: {
    ...structuredClone(wish.metadata),
    labels: { ...object?.metadata.labels, ...wish.metadata.labels },
    annotations: { ...object?.metadata.annotations, ...wish.metadata.annotations },
  },
})

const ownBinding = (
  name: string,
  { spec }: NetworkRule,
  node: string,
  address: string,
): ServiceVIPBinding => ({
  apiVersion: 'network.datumapis.com/v1alpha1',
  kind: SERVICE_VIP_BINDINGS.kind,
  metadata: { name },
  spec: {
    targetRef: { kind: 'Node', name: node },
    vipAddress: spec.vipAddresses[0] ?? '',
    port: spec.port,
    protocol: spec.protocol,
    backendAddress: address,
    backendPort: spec.port,
    egressKind: 'veth',
  },
})
