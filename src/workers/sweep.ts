import { ApiFailure, type Cluster, Unreachable } from '../clusters/cluster.ts'
import type { Store } from '../db/client.ts'
import { isId } from '../domain/ids.ts'
import type { Ownership } from '../domain/placements/ownership.ts'
import {
  countOnFrom,
  holdStrays,
  isSweepAllowed,
  readOwners,
  readStrayHolds,
  recordSweep,
  releaseStrays,
  type StrayVip,
  withdrawStrays,
} from '../domain/placements/sweep.ts'
import type { Desired } from '../rules/desired.ts'
import { found } from '../rules/findings.ts'
import {
  ADVERTISEMENT_RULE_LABEL,
  BGP_ADVERTISEMENTS,
  DATA_PLANE_NAMESPACE,
  NETWORK_RULES,
} from '../rules/objects.ts'
import { gone, newestGeneration, vipsOf } from '../rules/observed.ts'
import { REASONS } from '../rules/reasons.ts'
import type { Finding } from '../rules/report.ts'
import { steps } from '../rules/steps.ts'
import type { ClusterView } from './clusterView.ts'
import type { Logger } from './logger.ts'

type Surroundings = {
  store: Store
  cluster: Cluster
  view: ClusterView
  instance: string
  owner: Ownership
  /** From then on nothing may be written. */
  signal: AbortSignal
  log: Logger
}

/**
 * Looks through what a cluster carries of ours for what has no owner. Only what certainly has none goes:
 * a tombstone says so, or the load balancer is there and not placed in this cluster. What the store
 * never heard of may be newer than a restored backup: it stays, with its addresses held, until an
 * operator lets it go.
 */
export class Sweep {
  readonly #with: Surroundings

  constructor(surroundings: Surroundings) {
    this.#with = surroundings
  }

  /** Answers whether something is under way that another look will find done. */
  async run(): Promise<boolean> {
    const { store, view, owner } = this.#with
    const allowed = await isSweepAllowed(store, owner.cluster)
    const { certain, labelled } = view.owners()
    const traced = certain.filter(isId)
    const owners = await readOwners(store, owner.cluster, [
      ...new Set([...traced, ...labelled.filter(isId)]),
    ])
    const fated = (fate: string) => traced.filter((id) => owners.get(id)?.fate === fate)
    await withdrawStrays(store, owner.cluster, fated('elsewhere'))
    const buried = [...owners].flatMap(([id, { fate }]) => (fate === 'gone' ? [id] : []))
    const unknown = fated('unknown')
    await holdStrays(
      store,
      owner,
      unknown.flatMap((id) => this.#vipsOf(id)),
    )
    let removed = 0
    for (const id of allowed ? [...buried, ...unknown] : buried)
      removed += await this.#tried(id, () => this.#remove(id))
    const behind = traced.flatMap((id): [string, number][] => {
      const known = owners.get(id)
      if (known === undefined || !('rulesGeneration' in known)) return []
      const newest = newestGeneration(view.observed(id, { rules: [], vips: [] }))
      const ahead = newest > (known.storeBehind ? 0 : known.rulesGeneration)
      return ahead ? [[id, newest]] : []
    })
    if (allowed) for (const [id, newest] of behind) await countOnFrom(store, id, newest)
    const held = await this.#release()
    const finding = judge(unknown.length, allowed ? 0 : behind.length, held)
    // Bindings go before rules, in a sweep of their own: what was allowed is until all is gone.
    const done = allowed && removed + behind.length === 0
    await recordSweep(store, owner, { finding, gateways: view.gateways, allowed: done })
    return removed > 0 || allowed
  }

  #vipsOf(loadBalancer: string): StrayVip[] {
    const { rules } = this.#with.view.observed(loadBalancer, { rules: [], vips: [] })
    return rules.flatMap((rule) =>
      vipsOf(rule).map((vip) => ({ loadBalancer, vip, rule: rule.metadata.name })),
    )
  }

  /** Removes all that is left of a load balancer, in the order that the data plane needs. */
  async #remove(loadBalancer: string): Promise<number> {
    const { cluster, view, instance, signal, log } = this.#with
    const vips = this.#vipsOf(loadBalancer).map(({ vip }) => vip)
    const observed = view.observed(loadBalancer, { rules: [], vips })
    const todo = steps(nothing(loadBalancer, instance), observed)
    for (const step of todo.now) {
      if (step.act === 'remove') await cluster.remove(step.resource, step.where, { signal })
      if (step.act === 'merge') {
        const object = await cluster.merge(step.resource, step.where, step.patch, { signal })
        if (object !== undefined) view.learn(object)
      }
    }
    if (todo.now.length > 0) log.warn({ loadBalancer }, 'what had no owner is removed')
    return todo.now.length + todo.waitingFor.length
  }

  /** Lets go of addresses of which nothing is left; the API server itself is asked. Answers how many are held. */
  async #release(): Promise<number> {
    const { store, view, owner } = this.#with
    const held = await readStrayHolds(store, owner.cluster)
    const left: StrayVip[] = []
    for (const stray of held) {
      const { vip, rule, loadBalancer } = stray
      const observed = view.observed(loadBalancer, { rules: [rule], vips: [vip] })
      if (!gone(vip, rule, observed)) continue
      if ((await this.#tried(loadBalancer, () => this.#confirmGone(rule))) > 0) left.push(stray)
    }
    await releaseStrays(store, owner, left)
    return held.length - left.length
  }

  /** It is gone as far as anybody saw: this asks the server itself, and makes sure. 1: it is. */
  async #confirmGone(rule: string): Promise<number> {
    const { cluster, signal } = this.#with
    const namespace = DATA_PLANE_NAMESPACE
    const removed = await cluster.remove(NETWORK_RULES, { name: rule, namespace }, { signal })
    const labelSelector = `${ADVERTISEMENT_RULE_LABEL}=${rule}`
    const told = await cluster.list(BGP_ADVERTISEMENTS, { namespace, labelSelector }, { signal })
    return removed !== 'deleting' && told.length === 0 ? 1 : 0
  }

  /** What the cluster refuses, or doesn't answer, keeps nothing else waiting: the next sweep tries again. */
  async #tried(loadBalancer: string, work: () => Promise<number>): Promise<number> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof ApiFailure || error instanceof Unreachable)) throw error
      this.#with.log.warn({ err: error, loadBalancer }, 'what has no owner could not be removed')
      return 0
    }
  }
}

function judge(unknown: number, behind: number, held: number): Finding {
  if (unknown > 0) {
    const message = `${REASONS.UnknownOwners} There are ${unknown} such load balancers with ${held} addresses, which are held.`
    return found('FALSE', 'UnknownOwners', message)
  }
  if (behind > 0) {
    const message = `${REASONS.StoreBehind} This is so of ${behind} load balancers.`
    return found('FALSE', 'StoreBehind', message)
  }
  return found('TRUE', 'Swept', REASONS.Swept)
}

/** Of a load balancer that is no more nothing is wanted, whatever generation its rules are of. */
const nothing = (loadBalancer: string, instance: string): Desired => ({
  loadBalancer,
  instance,
  dialect: undefined,
  rulesGeneration: Number.POSITIVE_INFINITY,
  blocked: null,
  rules: [],
  bindings: [],
  labels: [],
  vips: {},
  backends: {},
  affinity: found('TRUE', 'Honoured', REASONS.Honoured),
  awaited: [],
})
