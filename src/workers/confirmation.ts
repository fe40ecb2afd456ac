import { ApiFailure, type Cluster, Unreachable } from '../clusters/cluster.ts'
import type { TakenPlacement } from '../domain/placements/wanted.ts'
import { canonical } from '../rules/addresses.ts'
import type { Desired } from '../rules/desired.ts'
import {
  ADVERTISEMENT_RULE_LABEL,
  BGP_ADVERTISEMENTS,
  DATA_PLANE_NAMESPACE,
  LOAD_BALANCER_LABEL,
  NETWORK_RULES,
  type Resource,
  SERVICE_VIP_BINDINGS,
  type ServiceVIPBinding,
} from '../rules/objects.ts'
import { gone, type Observed } from '../rules/observed.ts'
import type { Step } from '../rules/steps.ts'

/** A call that was given up here may be done within this time (ms): API servers end requests after it. */
export const UNSURE = 60_000
/** What the watch hasn't told yet is looked at again after this time (ms). */
const UNSETTLED = 500

/**
 * Makes sure that nothing is left of a VIP. What is followed may be some milliseconds old, and a write
 * whose answer was lost may have been done: so the API server itself is asked before a hold is given up.
 */
export class Confirmation {
  readonly #cluster: Cluster
  readonly #signal: AbortSignal
  readonly #lookAgain: (loadBalancer: string, after: number) => void
  readonly #unsureUntil: number
  /** By rule: until when (ms) an apply whose answer was lost may still be done. */
  readonly #unsure = new Map<string, number>()

  constructor(parts: {
    cluster: Cluster
    /** From then on nothing may be written. */
    signal: AbortSignal
    /** Has a load balancer looked at again after a while (ms). */
    lookAgain: (loadBalancer: string, after: number) => void
    /** Until then (ms) calls of the owner before may still be under way, since it didn't end in order. */
    unsureUntil: number
  }) {
    this.#cluster = parts.cluster
    this.#signal = parts.signal
    this.#lookAgain = parts.lookAgain
    this.#unsureUntil = parts.unsureUntil
  }

  /** The answers to these were lost. */
  noteUnsure(todo: readonly Step[]): void {
    const until = performance.now() + UNSURE
    for (const step of todo) {
      if (step.act === 'apply') this.#unsure.set(step.object.metadata.name, until)
    }
  }

  /** The held VIPs of which nothing is left here, and what kept us from asking after all of them. */
  async ofGone(
    taken: TakenPlacement,
    wish: Desired,
    observed: Observed,
  ): Promise<{ gone: string[]; failure?: ApiFailure | Unreachable }> {
    const found: string[] = []
    try {
      for (const { vip, rule } of taken.holds) {
        if (wish.vips[vip]?.wanted || !gone(vip, rule, observed)) continue
        if (await this.#isGone(taken.wanted.loadBalancer, vip, rule)) found.push(vip)
      }
      return { gone: found }
    } catch (error) {
      if (!(error instanceof ApiFailure || error instanceof Unreachable)) throw error
      return { gone: found, failure: error }
    }
  }

  async #isGone(loadBalancer: string, vip: string, rule: string): Promise<boolean> {
    const wait = this.#unsureFor(rule)
    if (wait > 0) {
      this.#lookAgain(loadBalancer, wait)
      return false
    }
    const namespace = DATA_PLANE_NAMESPACE
    const options = { signal: this.#signal }
    const removed = await this.#cluster.remove(NETWORK_RULES, { name: rule, namespace }, options)
    if (removed === 'deleting') return false
    const labelled = (resource: Resource, labelSelector: string) =>
      this.#cluster.list<ServiceVIPBinding>(resource, { namespace, labelSelector }, options)
    const advertised = await labelled(BGP_ADVERTISEMENTS, `${ADVERTISEMENT_RULE_LABEL}=${rule}`)
    const bound = await labelled(SERVICE_VIP_BINDINGS, `${LOAD_BALANCER_LABEL}=${loadBalancer}`)
    if (advertised.length === 0 && bound.every(({ spec }) => canonical(spec.vipAddress) !== vip))
      return true
    this.#lookAgain(loadBalancer, UNSETTLED)
    return false
  }

  /** For how long (ms) yet a write of before may be done to a rule. */
  #unsureFor(rule: string): number {
    const now = performance.now()
    for (const [name, until] of this.#unsure) if (until <= now) this.#unsure.delete(name)
    return Math.max(this.#unsure.get(rule) ?? 0, this.#unsureUntil) - now
  }
}
